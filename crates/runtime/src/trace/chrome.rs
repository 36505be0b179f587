//! The trace as Chrome JSON, which Perfetto opens: a row a compute worker, a row an I/O
//! executor, counters of what each layer grants and moves, and arrows from producer to consumer.

use std::collections::HashMap;
use std::io::{self, Write};

use super::achieved::{achieved, Achieved};
use super::{Record, RecordKind, Snapshot, NOTHING};

/// Process numbers in the file group the rows.
const COMPUTE: u32 = 1;
const IO: u32 = 2;
const LAYERS: u32 = 3;

/// Where a body ran.
#[derive(Clone, Copy)]
struct Row {
    group: u32,
    row: u32,
}

/// One run of a body, with its place in the picture.
struct Run {
    record: Record,
    row: Row,
    end: u64,
}

/// Everything of the trace that the rows need.
#[derive(Default)]
struct Picture {
    runs: Vec<Run>,
    last_run: HashMap<u64, usize>,
    ends: HashMap<u64, u64>,
    edges: Vec<(u64, u64)>,
    counters: Vec<Record>,
    moves: Vec<Record>,
    executors: HashMap<u32, Record>,
    compute_rows: Vec<(u32, String)>,
    io_rows: u32,
}

impl Picture {
    fn read(trace: &Snapshot) -> io::Result<Picture> {
        let mut picture = Picture::default();
        trace.for_each(&mut |record| match record.kind {
            RecordKind::Ran => {
                let end = record.time_ns + record.amount;
                let row = Row { group: COMPUTE, row: record.executor };
                picture.runs.push(Run { record, row, end });
            }
            RecordKind::Edge => picture.edges.push((record.other, record.task)),
            RecordKind::Over => {
                picture.ends.insert(record.task, record.amount);
            }
            RecordKind::Granted | RecordKind::Store => picture.counters.push(record),
            RecordKind::Moved => picture.moves.push(record),
            RecordKind::ExecutorUp => {
                picture.executors.insert(record.executor, record);
            }
            RecordKind::Submitted | RecordKind::Sent | RecordKind::ExecutorLost => {}
        })?;
        picture.place();
        Ok(picture)
    }

    /// Gives every run its row. The threads of an I/O worker have no numbers: a run goes to
    /// the first row that is free when it starts.
    fn place(&mut self) {
        self.runs.sort_by_key(|run| run.record.time_ns);
        let mut busy_until: Vec<u64> = Vec::new();
        for (position, run) in self.runs.iter_mut().enumerate() {
            self.last_run.insert(run.record.task, position);
            let io = match self.executors.get(&run.record.executor) {
                Some(up) => up.other == 1,
                None => run.record.layer != NOTHING,
            };
            if !io {
                continue;
            }
            let free = busy_until.iter().position(|until| *until <= run.record.time_ns);
            let row = free.unwrap_or_else(|| {
                busy_until.push(0);
                busy_until.len() - 1
            });
            busy_until[row] = run.end;
            run.row = Row { group: IO, row: row as u32 };
        }
        self.io_rows = busy_until.len() as u32;
        let mut compute: Vec<_> = self.executors.values().filter(|up| up.other == 0).collect();
        compute.sort_by_key(|up| up.executor);
        self.compute_rows = compute
            .into_iter()
            .map(|up| (up.executor, format!("worker {} (process {})", up.executor, up.task)))
            .collect();
    }
}

/// Writes the whole file.
pub(crate) fn write_chrome(trace: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let picture = Picture::read(trace)?;
    writeln!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    write_rows(&picture, out)?;
    for run in &picture.runs {
        write_run(trace, &picture, run, out)?;
    }
    write_arrows(trace, &picture, out)?;
    for record in &picture.counters {
        write_counter(trace, record, out)?;
    }
    for moved in &picture.moves {
        write_move(trace, moved, out)?;
    }
    for rate in achieved(picture.runs.iter().map(|run| &run.record)) {
        write_achieved(trace, &rate, out)?;
    }
    writeln!(out, "{{\"name\":\"end\",\"ph\":\"M\",\"pid\":{LAYERS}}}\n]}}")
}

fn write_rows(picture: &Picture, out: &mut dyn Write) -> io::Result<()> {
    if !picture.moves.is_empty() {
        writeln!(
            out,
            "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{LAYERS},\"tid\":0,\
             \"args\":{{\"name\":\"files moved\"}}}},"
        )?;
    }
    let groups = [(COMPUTE, "compute workers"), (IO, "I/O executors"), (LAYERS, "layers")];
    for (group, name) in groups {
        writeln!(
            out,
            "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{group},\
             \"args\":{{\"name\":\"{name}\"}}}},\n\
             {{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":{group},\
             \"args\":{{\"sort_index\":{group}}}}},"
        )?;
    }
    let compute = picture.compute_rows.iter().map(|(row, name)| (COMPUTE, *row, name.clone()));
    let io = (0..picture.io_rows).map(|row| (IO, row, format!("I/O executor {row}")));
    for (group, row, name) in compute.chain(io) {
        writeln!(
            out,
            "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{group},\"tid\":{row},\
             \"args\":{{\"name\":{}}}}},",
            quoted(&name)
        )?;
    }
    Ok(())
}

fn write_run(
    trace: &Snapshot,
    picture: &Picture,
    run: &Run,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Run { record, row, .. } = run;
    let end = match picture.ends.get(&record.task) {
        Some(0) => "done",
        Some(2) => "cancelled",
        Some(_) => "failed",
        None => "open",
    };
    let category = if row.group == IO { "io" } else { "compute" };
    write!(
        out,
        "{{\"name\":{},\"cat\":\"{category}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\
         \"dur\":{},\"args\":{{\"task\":\"t{}\",\"end\":\"{end}\",\"bytes\":{}",
        quoted(trace.name(record.function)),
        row.group,
        row.row,
        micros(record.time_ns.saturating_sub(trace.base_ns)),
        micros(record.amount),
        record.task,
        record.other
    )?;
    if record.layer != NOTHING {
        write!(out, ",\"layer\":{}", quoted(trace.layer(record.layer)))?;
    }
    writeln!(out, "}}}},")
}

fn write_arrows(trace: &Snapshot, picture: &Picture, out: &mut dyn Write) -> io::Result<()> {
    for (number, (from, to)) in picture.edges.iter().enumerate() {
        let places = (picture.last_run.get(from), picture.last_run.get(to));
        let (Some(&from), Some(&to)) = places else { continue };
        let (from, to) = (&picture.runs[from], &picture.runs[to]);
        // The arrow starts inside the slice: viewers bind it to the slice around its time.
        let leave = (from.end.saturating_sub(1)).max(from.record.time_ns);
        for (phase, row, time) in [("s", from.row, leave), ("f", to.row, to.record.time_ns)] {
            let bind = if phase == "f" { ",\"bp\":\"e\"" } else { "" };
            writeln!(
                out,
                "{{\"name\":\"needs\",\"cat\":\"edge\",\"ph\":\"{phase}\",\"id\":{number}{bind},\
                 \"pid\":{},\"tid\":{},\"ts\":{}}},",
                row.group,
                row.row,
                micros(time.saturating_sub(trace.base_ns))
            )?;
        }
    }
    Ok(())
}

fn write_counter(trace: &Snapshot, record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let time = micros(record.time_ns.saturating_sub(trace.base_ns));
    if record.kind == RecordKind::Store {
        return writeln!(
            out,
            "{{\"name\":\"object store (MB)\",\"ph\":\"C\",\"pid\":{COMPUTE},\"ts\":{time},\
             \"args\":{{\"MB\":{}}}}},",
            record.amount as f64 / 1e6
        );
    }
    let layer = trace.layer(record.layer);
    let granted = quoted(&format!("{layer}: granted (MB/s)"));
    let tasks = quoted(&format!("{layer}: I/O tasks"));
    writeln!(
        out,
        "{{\"name\":{granted},\"ph\":\"C\",\"pid\":{LAYERS},\"ts\":{time},\
         \"args\":{{\"MB/s\":{}}}}},\n\
         {{\"name\":{tasks},\"ph\":\"C\",\"pid\":{LAYERS},\"ts\":{time},\
         \"args\":{{\"tasks\":{}}}}},",
        record.amount as f64 / 1e6,
        record.other
    )
}

/// A file that the runtime moved: on a row of its own below the layers.
fn write_move(trace: &Snapshot, moved: &Record, out: &mut dyn Write) -> io::Result<()> {
    let name = |layer: u32| if layer == NOTHING { "own path" } else { trace.layer(layer) };
    writeln!(
        out,
        "{{\"name\":{},\"cat\":\"move\",\"ph\":\"X\",\"pid\":{LAYERS},\"tid\":0,\"ts\":{},\
         \"dur\":{},\"args\":{{\"bytes\":{}}}}},",
        quoted(&format!("{} to {}", name(moved.layer), name(moved.executor))),
        micros(moved.time_ns.saturating_sub(trace.base_ns)),
        micros(moved.amount),
        moved.other
    )
}

fn write_achieved(trace: &Snapshot, rate: &Achieved, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{{\"name\":{},\"ph\":\"C\",\"pid\":{LAYERS},\"ts\":{},\"args\":{{\"MB/s\":{}}}}},",
        quoted(&format!("{}: achieved (MB/s)", trace.layer(rate.layer))),
        micros(rate.time_ns.saturating_sub(trace.base_ns)),
        rate.bytes_s / 1e6
    )
}

/// Nanoseconds as microseconds with their fraction.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::super::Trace;
    use super::*;

    fn run(task: u64, executor: u32, start: u64, ns: u64) -> Record {
        let record = Record::new(start, RecordKind::Ran);
        Record { task, executor, amount: ns, function: 0, ..record }
    }

    fn sample() -> Trace {
        let mut trace = Trace::new(100, true, vec!["disk \"1\"".into()]).unwrap();
        trace.name("step\n\"one\"".into());
        for (executor, io) in [(0, 0), (1, 1)] {
            let up = Record::new(100, RecordKind::ExecutorUp);
            trace.push(Record { executor, other: io, task: 4711, ..up });
        }
        trace.push(run(1, 0, 1_000, 5_000));
        trace.push(run(2, 1, 7_000, 5_000));
        trace.push(Record { layer: 0, other: 2_000, ..run(3, 1, 8_000, 1_000) });
        let edge = Record::new(900, RecordKind::Edge);
        trace.push(Record { task: 2, other: 1, ..edge });
        let granted = Record::new(7_000, RecordKind::Granted);
        trace.push(Record { layer: 0, amount: 5_000_000, other: 1, ..granted });
        trace
    }

    #[test]
    fn rows_arrows_and_counters() {
        let mut bytes = Vec::new();
        write_chrome(&sample().snapshot(), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let has = |part: &str| assert!(text.contains(part), "{part} is not in\n{text}");
        has("\"name\":\"worker 0 (process 4711)\"");
        has("\"name\":\"I/O executor 1\"");
        has("\"name\":\"step\\u000a\\\"one\\\"\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1");
        has("\"cat\":\"io\",\"ph\":\"X\",\"pid\":2,\"tid\":1,\"ts\":7.900,\"dur\":1.000");
        has("\"ph\":\"s\",\"id\":0,\"pid\":1,\"tid\":0,\"ts\":5.899");
        has("\"ph\":\"f\",\"id\":0,\"bp\":\"e\",\"pid\":2,\"tid\":0,\"ts\":6.900");
        has("\"name\":\"disk \\\"1\\\": granted (MB/s)\",\"ph\":\"C\"");
        has("achieved (MB/s)\",\"ph\":\"C\",\"pid\":3,\"ts\":7.900,\"args\":{\"MB/s\":2000}");
        has("achieved (MB/s)\",\"ph\":\"C\",\"pid\":3,\"ts\":8.900,\"args\":{\"MB/s\":0}");
        assert!(!text.contains(",\n]"), "no comma after the last event");
    }
}
