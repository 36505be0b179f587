//! Prints what a task record costs: a round trip through a sleeping worker, and the rate of many.

use std::time::Instant;

use exec::process::{Kind, Pool, Process, Spec};
use exec::wire::{Blob, FromWorker, Run};

const HOPS: u64 = 20_000;
const TASKS: u64 = 1_000_000;
const AHEAD: u64 = 1_000;

fn noop(task: u64) -> Run<'static> {
    Run {
        task,
        attempt: 1,
        claim: 0,
        function: 0,
        arguments: Blob::Inline(&[0; 32]),
        inputs: Default::default(),
        paths: Default::default(),
        returns: 1,
        writes: Default::default(),
        durable: false,
        processors: Default::default(),
        stream: None,
    }
}

struct Driver {
    pool: Pool,
    worker: Process,
    buffer: Vec<u8>,
}

impl Driver {
    /// Waits until something came; how many runs ended.
    fn ends(&mut self) -> u64 {
        loop {
            let (mut ends, mut records) = (0, 0);
            let handle = |record: FromWorker<'_>| {
                records += 1;
                ends += u64::from(matches!(record, FromWorker::Ended(_)));
            };
            self.worker.drain(&mut self.buffer, handle).expect("sound records");
            if records > 0 {
                return ends;
            }
            if self.pool.poller().prepare_sleep() {
                self.pool.poller().wait(None, &mut Vec::new()).expect("a wait");
            }
        }
    }
}

fn cpu_ns(who: libc::c_int) -> u64 {
    // SAFETY: zeros are a valid rusage, and it lives through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

fn main() {
    let pool = Pool::new(1 << 30).expect("shared memory");
    let command = vec![env!("CARGO_BIN_EXE_exec-test-worker").into()];
    let spec = Spec { kind: Kind::Compute, slots: 1, command, environment: Vec::new() };
    let started = Instant::now();
    let worker = pool.spawn(&spec, 1).expect("a worker");
    let mut driver = Driver { pool, worker, buffer: Vec::new() };
    driver.ends();
    println!("start to ready       {:>9.1} us", started.elapsed().as_nanos() as f64 / 1e3);

    let mut hops: Vec<u64> = (0..HOPS)
        .map(|task| {
            let started = Instant::now();
            driver.worker.send_run(&mut noop(task)).expect("sent");
            while driver.ends() == 0 {}
            started.elapsed().as_nanos() as u64
        })
        .collect();
    hops.sort_unstable();
    let at = |share: f64| hops[(HOPS as f64 * share) as usize] as f64 / 1e3;
    println!("round trip, median   {:>9.1} us", at(0.5));
    println!("round trip, 1% 99%   {:>9.1} us {:.1} us", at(0.01), at(0.99));

    let (started, cpu) = (Instant::now(), cpu_ns(libc::RUSAGE_SELF));
    let (mut sent, mut ended) = (0, 0);
    while ended < TASKS {
        while sent < TASKS && sent - ended < AHEAD {
            driver.worker.send_run(&mut noop(sent)).expect("sent");
            sent += 1;
        }
        ended += driver.ends();
    }
    let (wall, cpu) = (started.elapsed(), cpu_ns(libc::RUSAGE_SELF) - cpu);
    println!("many at once         {:>9.0} tasks/s", TASKS as f64 / wall.as_secs_f64());
    println!("driver's processor   {:>9.0} ns a task", cpu as f64 / TASKS as f64);
    driver.worker.send(&exec::wire::ToWorker::Stop).expect("sent");
    driver.worker.wait();
    let worker = cpu_ns(libc::RUSAGE_CHILDREN);
    let hops_and_tasks = (HOPS + TASKS) as f64;
    println!(
        "worker's processor   {:>9.0} ns a task, hops included",
        worker as f64 / hops_and_tasks
    );
}
