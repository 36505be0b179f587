//! Files on layers: what they take up, what moves down, what is copied up, what is removed.

mod driver;

use driver::*;
use sched::{Config, Direction, Event, Instruction, Kind, Layer, LayerId, TaskSpec, Watermarks};

/// Fast and small above slow and large; E0 does I/O, E1 computes.
fn two_layers(flush: bool, prefetch: bool) -> Driver {
    let layers = vec![layer("fast", 1000, Some(100)), layer("slow", 100, Some(1000))];
    let mut driver = Driver::new(Config { layers, flush, prefetch, ..config() });
    driver.up(E0, Kind::Io, 0, 4);
    driver.up(E1, Kind::Compute, 0, 1);
    driver
}

fn stored(driver: &Driver) -> (u64, u64) {
    let on = |layer| driver.sched.stored(LayerId(layer)).expect("known");
    (on(0), on(1))
}

fn done(driver: &mut Driver, datum: sched::DatumId, bytes: u64) -> Vec<Instruction> {
    driver.event(Event::MoveDone { datum, bytes })
}

#[test]
fn bytes_of_files_stay_when_their_tasks_have_ended() {
    let mut driver = two_layers(false, false);
    let file = driver.file();
    let spec = TaskSpec { accesses: vec![uses(file, Direction::Out)], ..driver.io("w", 1, 80) };
    let task = driver.submit(spec);
    assert_eq!(task.out, [run_at(task.id, E0, 1, Some(0))]);
    assert_eq!(driver.file_at(file, Some(0), 90, Some(1)), [], "it is still being written");
    driver.done(task.id, E0);
    assert_eq!(stored(&driver), (90, 0));
    let next = driver.submit(driver.io("w", 1, 20));
    assert_eq!(next.out, [run_at(next.id, E0, 1, Some(1))], "10 bytes are left above");
    driver.file_at(file, Some(0), 80, Some(1));
    let last = driver.submit(driver.io("w", 1, 20));
    assert_eq!(last.out, [run_at(last.id, E0, 1, Some(0))], "it was less than was thought");
    driver.event(Event::FileGone { datum: file });
    assert_eq!(stored(&driver), (0, 0));
}

#[test]
fn a_cold_file_goes_home_while_no_io_goes_on() {
    let mut driver = two_layers(true, false);
    let (file, other) = (driver.file(), driver.file());
    let spec = TaskSpec { accesses: vec![uses(file, Direction::Out)], ..driver.io("w", 1, 50) };
    let task = driver.submit(spec);
    driver.file_at(file, Some(0), 50, Some(1));
    assert_eq!(driver.done(task.id, E0).last(), Some(&moves(file, 0, Some(1), false)));
    assert_eq!(stored(&driver), (50, 0));
    let io = driver.submit(driver.io("r", 1, 0));
    let hold = Instruction::HoldMoves { hold: true };
    assert_eq!(io.out, [run_at(io.id, E0, 1, Some(0)), hold]);
    assert_eq!(driver.done(io.id, E0)[2..], [Instruction::HoldMoves { hold: false }]);
    assert_eq!(done(&mut driver, file, 50), []);
    assert_eq!(stored(&driver), (0, 50));
    assert_eq!(driver.file_at(other, Some(1), 7, Some(0)), [], "home is above: it stays");
    let outside = driver.file_at(other, Some(0), 7, None);
    assert_eq!(outside, [moves(other, 0, None, false)]);
    done(&mut driver, other, 7);
    assert_eq!(stored(&driver), (0, 50));
}

#[test]
fn a_file_with_readers_to_come_stays() {
    let mut driver = two_layers(true, false);
    let file = driver.file();
    let gate = driver.submit(driver.compute("gate"));
    let mut spec = driver.io("r", 1, 0);
    spec.accesses = vec![uses(file, Direction::In), reads(gate.outputs[0])];
    let reader = driver.submit(spec);
    assert_eq!(driver.file_at(file, Some(0), 50, Some(1)), []);
    driver.done(gate.id, E1);
    assert_eq!(driver.done(reader.id, E0)[2..], [moves(file, 0, Some(1), false)]);
}

#[test]
fn a_writer_waits_for_the_end_of_a_move_and_a_reader_does_not() {
    let mut driver = two_layers(true, false);
    let file = driver.file();
    assert_eq!(driver.file_at(file, Some(0), 50, Some(1)), [moves(file, 0, Some(1), false)]);
    let use_as = |driver: &Driver, direction| TaskSpec {
        accesses: vec![uses(file, direction)],
        ..driver.io("io", 1, 0)
    };
    let reader = driver.submit(use_as(&driver, Direction::In));
    let hold = |hold| Instruction::HoldMoves { hold };
    assert_eq!(reader.out, [run_at(reader.id, E0, 1, Some(0)), hold(true)]);
    let writer = driver.submit(use_as(&driver, Direction::Out));
    assert_eq!(writer.out, []);
    let out = driver.done(reader.id, E0);
    assert_eq!(out[2..], [hold(false)], "somebody waits for the move");
    let other = driver.submit(driver.io("io", 1, 0));
    assert_eq!(other.out, [run_at(other.id, E0, 1, Some(0))], "and so it goes on");
    let out = done(&mut driver, file, 50);
    assert_eq!(out, [run_at(writer.id, E0, 1, Some(0))]);
    driver.done(writer.id, E0);
    driver.done(other.id, E0);
}

#[test]
fn a_file_that_is_renewed_is_still_moving() {
    let mut driver = two_layers(true, false);
    let (old, new) = (driver.file(), driver.file());
    assert_eq!(driver.file_at(old, Some(0), 50, Some(1)), [moves(old, 0, Some(1), false)]);
    driver.sched.renew_file(old, new);
    assert_eq!(driver.drop_datum(old), []);
    let spec = TaskSpec { accesses: vec![uses(new, Direction::Out)], ..driver.io("w", 1, 0) };
    let writer = driver.submit(spec);
    assert_eq!(writer.out, [], "it waits for the move");
    assert_eq!(done(&mut driver, old, 50), [], "the driver knows the new one");
    assert_eq!(done(&mut driver, new, 50), [run_at(writer.id, E0, 1, Some(0))]);
    assert_eq!(stored(&driver), (0, 50));
}

#[test]
fn a_hold_ends_with_the_file_that_moved() {
    let mut driver = two_layers(true, false);
    let file = driver.file();
    driver.file_at(file, Some(0), 50, Some(1));
    let task = driver.submit(driver.io("io", 1, 0));
    assert_eq!(task.out.last(), Some(&Instruction::HoldMoves { hold: true }));
    let out = driver.event(Event::FileGone { datum: file });
    assert_eq!(out, [Instruction::HoldMoves { hold: false }]);
    assert_eq!(done(&mut driver, file, 50), [], "nobody asks for it any more");
}

#[test]
fn a_scratch_file_sinks_while_it_has_a_name_and_goes_with_it() {
    let mut driver = two_layers(true, false);
    let file = driver.file();
    assert_eq!(driver.scratch_at(file, 0, 30), [moves(file, 0, Some(1), false)]);
    assert_eq!(driver.drop_datum(file), [], "first the move");
    assert_eq!(done(&mut driver, file, 30), [Instruction::Remove { datum: file }]);
    assert_eq!(stored(&driver), (0, 30));
    driver.event(Event::FileGone { datum: file });
    assert_eq!(stored(&driver), (0, 0));
    let (file, reader) = (driver.file(), TaskSpec { ..driver.io("r", 1, 0) });
    let reader = driver.submit(TaskSpec { accesses: vec![uses(file, Direction::In)], ..reader });
    driver.scratch_at(file, 0, 30);
    assert_eq!(driver.drop_datum(file), []);
    assert_eq!(driver.done(reader.id, E0)[2..], [Instruction::Remove { datum: file }]);
}

#[test]
fn a_move_that_finds_no_room_is_tried_again_when_room_came() {
    let mut driver = two_layers(true, false);
    let (file, full) = (driver.file(), driver.file());
    driver.file_at(full, Some(1), 990, Some(1));
    assert_eq!(driver.file_at(file, Some(0), 50, Some(1)), []);
    let out = driver.event(Event::FileGone { datum: full });
    assert_eq!(out, [moves(file, 0, Some(1), false)]);
    let failed = |no_room| Event::MoveFailed { datum: file, no_room };
    assert_eq!(driver.event(failed(true)), []);
    let more = Event::LayerCapacity { layer: LayerId(1), bytes: Some(2000) };
    assert_eq!(driver.event(more), [moves(file, 0, Some(1), false)]);
    assert_eq!(driver.event(failed(false)), [moves(file, 0, Some(1), false)]);
    assert_eq!(driver.event(failed(false)), [], "three times are enough");
    assert_eq!(stored(&driver), (50, 0));
}

#[test]
fn tasks_that_wait_for_room_get_it_from_a_move() {
    let mut driver = two_layers(true, false);
    let file = driver.file();
    let only = |driver: &Driver| TaskSpec { layer: Some(LayerId(0)), ..driver.io("w", 1, 60) };
    let first = driver.submit(only(&driver));
    let second = driver.submit(only(&driver));
    assert_eq!(second.out, []);
    driver.file_at(file, Some(0), 60, Some(1));
    assert_eq!(driver.done(first.id, E0)[2..], [moves(file, 0, Some(1), false)]);
    assert_eq!(done(&mut driver, file, 60), [run_at(second.id, E0, 1, Some(0))]);
}

#[test]
fn an_input_is_copied_up_for_a_task_that_is_about_to_run() {
    let mut driver = two_layers(false, true);
    let file = driver.file();
    driver.file_at(file, Some(1), 40, Some(1));
    let (before, gate) = (driver.submit(driver.compute("b")), driver.submit(driver.compute("g")));
    let mut spec = driver.compute("r");
    spec.accesses = vec![uses(file, Direction::In), reads(gate.outputs[0])];
    let reader = driver.submit(spec);
    assert_eq!(reader.out, [], "what it waits for does not run yet");
    let out = driver.done(before.id, E1);
    assert_eq!(out[2..], [run(&gate, E1), moves(file, 1, Some(0), true)]);
    assert_eq!(done(&mut driver, file, 40), []);
    assert_eq!(stored(&driver), (40, 40));
    assert_eq!(driver.done(gate.id, E1)[2..], [run(&reader, E1)]);
    let drop = Instruction::DropCopy { datum: file, layer: LayerId(0) };
    assert_eq!(driver.done(reader.id, E1)[2..], [drop]);
    assert_eq!(stored(&driver), (0, 40));
}

#[test]
fn a_file_that_was_there_before_is_copied_up_and_takes_no_room_below() {
    let mut driver = two_layers(true, true);
    let file = driver.file();
    let gate = driver.submit(driver.compute("gate"));
    let found = |bytes| Event::FileFound { datum: file, layer: LayerId(1), bytes };
    assert_eq!(driver.event(found(2000)), [], "more than the layer has, and nobody reads it");
    assert_eq!(driver.event(found(40)), [], "it is known");
    driver.event(Event::FileGone { datum: file });
    assert_eq!(driver.event(found(40)), []);
    let read = TaskSpec { accesses: vec![uses(file, Direction::In)], ..driver.compute("r") };
    let reader = driver.submit(read);
    assert_eq!(reader.out, [moves(file, 1, Some(0), true)]);
    done(&mut driver, file, 40);
    assert_eq!(stored(&driver), (40, 0));
    driver.done(gate.id, E1);
    let drop = Instruction::DropCopy { datum: file, layer: LayerId(0) };
    assert_eq!(driver.done(reader.id, E1)[2..], [drop]);
    assert_eq!(stored(&driver), (0, 0));
    driver.file_at(file, Some(1), 60, Some(1));
    assert_eq!(stored(&driver), (0, 60), "a task wrote it");
}

#[test]
fn a_second_copy_goes_before_a_writer_begins() {
    let mut driver = two_layers(false, true);
    let file = driver.file();
    driver.file_at(file, Some(1), 40, Some(1));
    let gate = driver.submit(driver.compute("gate"));
    let later = driver
        .submit(TaskSpec { accesses: vec![uses(file, Direction::In)], ..driver.compute("r") });
    assert_eq!(later.out, [moves(file, 1, Some(0), true)], "it is ready, E1 is not");
    done(&mut driver, file, 40);
    let writer = TaskSpec { accesses: vec![uses(file, Direction::InOut)], ..driver.io("w", 1, 0) };
    let writer = driver.submit(writer);
    driver.done(gate.id, E1);
    let out = driver.done(later.id, E1);
    let drop = Instruction::DropCopy { datum: file, layer: LayerId(0) };
    assert_eq!(out[2..], [drop, run_at(writer.id, E0, 1, Some(0))]);
}

/// As [`two_layers`], and the fast one has watermarks at 80 and 40 of its 100 bytes.
fn marked(flush: bool, prefetch: bool) -> Driver {
    let watermarks = Some(Watermarks { high: 800, low: 400 });
    let fast = Layer { watermarks, ..layer("fast", 1000, Some(100)) };
    let layers = vec![fast, layer("slow", 100, Some(1000))];
    let mut driver = Driver::new(Config { layers, flush, prefetch, ..config() });
    driver.up(E0, Kind::Io, 0, 4);
    driver.up(E1, Kind::Compute, 0, 1);
    driver
}

#[test]
fn above_the_high_watermark_files_leave_while_io_goes_on_until_the_low_one() {
    for flush in [false, true] {
        let mut driver = marked(flush, false);
        let io = driver.submit(driver.io("io", 1, 0));
        let files: Vec<_> = (0..5).map(|_| driver.file()).collect();
        for file in &files[..4] {
            assert_eq!(driver.file_at(*file, Some(0), 20, Some(1)), [], "80 bytes: not above");
        }
        let leaves = |file: usize| [moves(files[file], 0, Some(1), false)];
        assert_eq!(driver.file_at(files[4], Some(0), 10, Some(1)), leaves(0), "90 bytes");
        assert_eq!(done(&mut driver, files[0], 20), leaves(1), "70: below the high one");
        assert_eq!(done(&mut driver, files[1], 20), leaves(2), "50");
        assert_eq!(done(&mut driver, files[2], 20), [], "30: below the low one");
        assert_eq!(stored(&driver), (30, 60));
        let out = driver.done(io.id, E0);
        let last = moves(files[3], 0, Some(1), false);
        assert_eq!(out.last() == Some(&last), flush, "the rest goes in a pause, if at all");
    }
}

#[test]
fn what_leaves_an_overfull_layer_is_not_held() {
    let mut driver = marked(true, false);
    let (small, large) = (driver.file(), driver.file());
    assert_eq!(driver.file_at(small, Some(0), 30, Some(1)), [moves(small, 0, Some(1), false)]);
    let io = driver.submit(driver.io("io", 1, 0));
    let hold = |hold| Instruction::HoldMoves { hold };
    assert_eq!(io.out, [run_at(io.id, E0, 1, Some(0)), hold(true)]);
    assert_eq!(driver.file_at(large, Some(0), 60, Some(1)), [hold(false)], "90 bytes");
    assert_eq!(done(&mut driver, small, 30), [moves(large, 0, Some(1), false)]);
    assert_eq!(done(&mut driver, large, 60), []);
    assert_eq!(stored(&driver), (0, 90));
}

#[test]
fn without_flush_files_also_leave_when_tasks_wait_for_room() {
    let mut driver = marked(false, false);
    let file = driver.file();
    assert_eq!(driver.file_at(file, Some(0), 60, Some(1)), [], "below the high one");
    let spec = TaskSpec { layer: Some(LayerId(0)), ..driver.io("w", 1, 50) };
    let waits = driver.submit(spec);
    assert_eq!(waits.out, [moves(file, 0, Some(1), false)]);
    assert_eq!(done(&mut driver, file, 60), [run_at(waits.id, E0, 1, Some(0))]);
}

#[test]
fn files_whose_own_path_is_outside_leave_the_lowest_layer_too() {
    let watermarks = Some(Watermarks { high: 500, low: 500 });
    for (watermarks, leaves) in [(watermarks, true), (None, false)] {
        let only = Layer { watermarks, ..layer("only", 100, Some(100)) };
        let mut driver = Driver::new(Config { layers: vec![only], flush: true, ..config() });
        driver.up(E0, Kind::Io, 0, 4);
        let file = driver.file();
        let out = driver.file_at(file, Some(0), 60, None);
        assert_eq!(out == [moves(file, 0, None, false)], leaves, "{out:?}");
    }
}

#[test]
fn nothing_is_prefetched_above_the_high_watermark() {
    for (bytes, fits) in [(80, true), (81, false)] {
        let mut driver = marked(false, true);
        let file = driver.file();
        driver.file_at(file, Some(1), bytes, Some(1));
        let busy = driver.submit(driver.compute("busy"));
        let read = TaskSpec { accesses: vec![uses(file, Direction::In)], ..driver.compute("r") };
        let reader = driver.submit(read);
        let copied = reader.out == [moves(file, 1, Some(0), true)];
        assert_eq!(copied, fits, "{bytes} bytes: {:?}", reader.out);
        driver.done(busy.id, E1);
    }
}
