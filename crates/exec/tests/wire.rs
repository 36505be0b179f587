//! Records come back as they were sent, and no bytes at all make a decoder panic.

use exec::wire::{
    Blob, Credit, Ended, FromWorker, InputMode, List, Outcome, Path, Price, Run, ToWorker,
    RECORD_BYTES_MAX,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A blob that owns its bytes.
#[derive(Clone, Debug)]
enum Owned {
    Inline(Vec<u8>),
    Placed(u64, u64),
}

impl Owned {
    fn blob(&self) -> Blob<'_> {
        match self {
            Owned::Inline(bytes) => Blob::Inline(bytes),
            Owned::Placed(offset, len) => Blob::Placed { offset: *offset, len: *len },
        }
    }
}

fn owned() -> impl Strategy<Value = Owned> {
    prop_oneof![
        vec(any::<u8>(), 0..300).prop_map(Owned::Inline),
        any::<(u64, u64)>().prop_map(|(offset, len)| Owned::Placed(offset, len)),
    ]
}

fn mode() -> impl Strategy<Value = InputMode> {
    prop_oneof![Just(InputMode::Read), Just(InputMode::Private), Just(InputMode::Shared)]
}

fn to_worker(record: &ToWorker<'_>) -> Result<(), TestCaseError> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    let decoded = ToWorker::decode(&bytes).map(|it| format!("{it:?}"));
    prop_assert_eq!(decoded, Ok(format!("{record:?}")));
    for end in 0..bytes.len() {
        prop_assert!(ToWorker::decode(&bytes[..end]).is_err());
    }
    bytes.push(0);
    prop_assert!(ToWorker::decode(&bytes).is_err());
    prop_assert!(FromWorker::decode(&bytes).is_err());
    Ok(())
}

fn from_worker(record: &FromWorker<'_>) -> Result<(), TestCaseError> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    let decoded = FromWorker::decode(&bytes).map(|it| format!("{it:?}"));
    prop_assert_eq!(decoded, Ok(format!("{record:?}")));
    for end in 0..bytes.len() {
        prop_assert!(FromWorker::decode(&bytes[..end]).is_err());
    }
    bytes.push(0);
    prop_assert!(FromWorker::decode(&bytes).is_err());
    prop_assert!(ToWorker::decode(&bytes).is_err());
    Ok(())
}

proptest! {
    #[test]
    fn runs(
        (task, attempt, claim, function) in any::<(u64, u32, u64, u64)>(),
        arguments in owned(),
        inputs in vec((mode(), owned()), 0..9),
        paths in vec((vec(any::<u8>(), 0..40), option::of(any::<u32>()), any::<bool>()), 0..6),
        returns in any::<u32>(),
        writes in vec(any::<u32>(), 0..6),
        durable in any::<bool>(),
        processors in vec(any::<u32>(), 0..6),
        stream in option::of(any::<([u64; 5], bool)>()),
    ) {
        let paths: Vec<_> = paths;
        to_worker(&ToWorker::Run(Run {
            task,
            attempt,
            claim,
            function,
            arguments: arguments.blob(),
            inputs: inputs.iter().map(|(mode, blob)| (*mode, blob.blob())).collect(),
            paths: paths
                .iter()
                .map(|(bytes, limiter, written)| Path {
                    bytes,
                    limiter: *limiter,
                    written: *written,
                })
                .collect(),
            returns,
            writes: List::from_vec(writes),
            durable,
            processors: List::from_vec(processors),
            stream: stream.map(|([made, spent, granted, least, most], closed)| {
                Credit { made, spent, granted, closed, price: Price { least, most } }
            }),
        }))?;
    }

    #[test]
    fn other_records_to_workers(
        id in any::<u64>(),
        name in any::<String>(),
        asynchronous in any::<bool>(),
        blob in owned(),
        offset in option::of(any::<u64>()),
        len in any::<u64>(),
    ) {
        let blob = blob.blob();
        to_worker(&ToWorker::Function { id, name: &name, asynchronous, blob })?;
        to_worker(&ToWorker::ForgetFunction { id })?;
        to_worker(&ToWorker::RunPlaced { claim: id, offset: len, len })?;
        to_worker(&ToWorker::Allocated { request: id, offset })?;
        to_worker(&ToWorker::Granted { claim: id, granted: len, closed: asynchronous })?;
        to_worker(&ToWorker::Stop)?;
    }

    #[test]
    fn ends(
        (task, attempt, claim) in any::<(u64, u32, u64)>(),
        outputs in vec(owned(), 0..7),
        raised in option::of(owned()),
        [started_ns, since_ns, ended_ns, ran_ns, cpu_ns] in any::<[u64; 5]>(),
        [bytes_read, bytes_written] in any::<[u64; 2]>(),
        layer_errno in any::<u32>(),
        held in vec(any::<u64>(), 0..9),
    ) {
        let outcome = match &raised {
            Some(blob) => Outcome::Raised { blob: blob.blob() },
            None => Outcome::Done { outputs: outputs.iter().map(Owned::blob).collect() },
        };
        let held = List::from_vec(held);
        from_worker(&FromWorker::Ended(Ended {
            task, attempt, claim, outcome, started_ns, since_ns, ended_ns, ran_ns, cpu_ns,
            bytes_read, bytes_written, layer_errno, held,
        }))?;
    }

    #[test]
    fn other_records_from_workers(
        (task, attempt, output) in any::<(u64, u32, u32)>(),
        (request, bytes) in any::<(u64, u64)>(),
        times in any::<[u64; 2]>(),
        offsets in vec(any::<u64>(), 0..9),
        blob in owned(),
    ) {
        from_worker(&FromWorker::Ready)?;
        from_worker(&FromWorker::EndedPlaced { offset: request, len: bytes })?;
        from_worker(&FromWorker::Alloc { request, bytes })?;
        from_worker(&FromWorker::Free { offset: request })?;
        from_worker(&FromWorker::Unpin { offsets: List::from_vec(offsets) })?;
        from_worker(&FromWorker::Released { task, attempt, output, blob: blob.blob() })?;
        from_worker(&FromWorker::ReleasedFile { task, attempt, path: output })?;
        let number = request;
        from_worker(&FromWorker::Yielded { task, attempt, number, blob: blob.blob() })?;
        let (claim, granted, [since_ns, until_ns]) = (request, bytes, times);
        let stalled = FromWorker::Stalled { task, attempt, claim, granted, since_ns, until_ns };
        from_worker(&stalled)?;
    }

    #[test]
    fn any_bytes_are_a_record_or_an_error(mut bytes in vec(any::<u8>(), 1..400), tag in 0u8..80) {
        bytes[0] = tag;
        let _ = ToWorker::decode(&bytes);
        let _ = FromWorker::decode(&bytes);
    }
}

#[test]
fn errors_say_where() {
    let error = ToWorker::decode(&[3, 1, 2]).unwrap_err();
    let text = "a malformed record (byte 1): the record ends within a number";
    assert_eq!(error.to_string(), text);
    let error = FromWorker::decode(&[70, 255, 255, 255, 255]).unwrap_err();
    let text = "a malformed record (byte 5): a list is longer than its record";
    assert_eq!(error.to_string(), text);
    let large = exec::wire::TooLarge { bytes: 70_000 }.to_string();
    assert_eq!(large, "a record of 70000 bytes is longer than the 65536 that a ring takes");
    assert_eq!(RECORD_BYTES_MAX, 65536);
}
