//! Chooses an engine: io_uring where it is to be had, else threads, with the reason.

use std::io;
use std::sync::Arc;

use crate::threads::Threads;
use crate::uring::{probe, NoRing, Uring};
use crate::{About, Engine};

/// The environment variable that [`open`] honours when it may choose: `auto`, `io_uring` or
/// `threads`.
pub const ENVIRONMENT: &str = "ALONGSIDE_ENGINE";

/// The largest depth: what the kernel allows a ring.
pub const DEPTH_MAX: u32 = 32_768;

const DEPTH_DEFAULT: u32 = 256;
const THREADS_DEFAULT: u32 = 32;
const ABOUT_DEPTH: u32 = 8;

/// What to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Operations in flight at most, 1 to [`DEPTH_MAX`].
    pub depth: u32,
    /// Which engine.
    pub prefer: Prefer,
    /// Threads at most, of the engine of threads. Beside a ring there are at most 8 of them.
    pub threads: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { depth: DEPTH_DEFAULT, prefer: Prefer::Auto, threads: THREADS_DEFAULT }
    }
}

/// Which engine to open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// What [`ENVIRONMENT`] says, and without that: io_uring, or threads where it is not available.
    #[default]
    Auto,
    /// io_uring or nothing.
    Uring,
    /// Threads.
    Threads,
}

impl Prefer {
    /// What a value of [`ENVIRONMENT`] means.
    fn parse(value: &str) -> io::Result<Self> {
        match value {
            "" | "auto" => Ok(Self::Auto),
            "io_uring" => Ok(Self::Uring),
            "threads" => Ok(Self::Threads),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{ENVIRONMENT}=\"{value}\": must be auto, io_uring or threads"),
            )),
        }
    }
}

/// What is called, by any thread, when something has completed: for who does not sleep on the
/// descriptor. It may be called with nothing there, and must not wait for the engine's owner.
pub type Tell = Arc<dyn Fn() + Send + Sync>;

/// An engine of so many threads for so many operations, which tells. Nothing of it depends on its
/// descriptor, as long as nobody asks for it.
pub fn threads(depth: u32, threads: u32, tell: Tell) -> io::Result<Box<dyn Engine>> {
    let reason = "as asked for".into();
    Ok(Box::new(Threads::new(depth as usize, threads as usize, reason, Some(tell))?))
}

/// Opens an engine.
///
/// Threads take the place of a ring only where a ring is unavailable (`ENOSYS`, `EPERM`,
/// `EACCES`). Other errors, such as `ENOMEM` or too many open files, are errors: threads would not
/// do better.
pub fn open(options: &Options) -> io::Result<Box<dyn Engine>> {
    if options.depth == 0 || options.depth > DEPTH_MAX {
        let message = format!("depth {}: must be 1 to {DEPTH_MAX}", options.depth);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if options.threads == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "threads 0: must be 1 or more"));
    }
    let asked = match options.prefer {
        Prefer::Auto => std::env::var_os(ENVIRONMENT).filter(|value| !value.is_empty()),
        Prefer::Uring | Prefer::Threads => None,
    };
    let Some(asked) = asked else { return choose(options, options.prefer, "as asked for") };
    let prefer = Prefer::parse(&asked.to_string_lossy())?;
    choose(options, prefer, &format!("as {ENVIRONMENT} says"))
}

fn choose(options: &Options, prefer: Prefer, why: &str) -> io::Result<Box<dyn Engine>> {
    let (capacity, threads) = (options.depth as usize, options.threads as usize);
    let with_threads = |reason| -> io::Result<Box<dyn Engine>> {
        Ok(Box::new(Threads::new(capacity, threads, reason, None)?))
    };
    if prefer == Prefer::Threads {
        return with_threads(why.into());
    }
    match probe(options.depth) {
        Ok(probed) => {
            let why = if prefer == Prefer::Auto { "available" } else { why };
            Ok(Box::new(Uring::new(probed, capacity, threads, why.into())?))
        }
        Err(NoRing::Failed(error)) => Err(error),
        Err(NoRing::Unavailable(reason)) if prefer == Prefer::Auto => {
            with_threads(format!("io_uring is not available: {reason}"))
        }
        Err(NoRing::Unavailable(reason)) => {
            let message = format!("io_uring was asked for and is not available: {reason}");
            Err(io::Error::new(io::ErrorKind::Unsupported, message))
        }
    }
}

/// What [`Prefer::Auto`] gives on this machine, and why.
pub fn about() -> About {
    let options = Options { depth: ABOUT_DEPTH, ..Options::default() };
    match open(&options) {
        Ok(engine) => engine.about(),
        Err(error) => About { name: "none", reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_to_be_had_everywhere_and_say_why() {
        let options = Options { prefer: Prefer::Threads, ..Options::default() };
        let about = open(&options).expect("threads").about();
        assert_eq!((about.name, about.reason.as_str()), ("threads", "as asked for"));
    }

    #[test]
    fn impossible_options_are_refused_with_the_value() {
        for (depth, threads) in [(0, 1), (DEPTH_MAX + 1, 1), (1, 0)] {
            let options = Options { depth, threads, ..Options::default() };
            let error = open(&options).err().expect("an error");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{options:?}");
        }
    }

    #[test]
    fn the_environments_words_are_three() {
        assert_eq!(Prefer::parse("io_uring").expect("a word"), Prefer::Uring);
        assert_eq!(Prefer::parse("threads").expect("a word"), Prefer::Threads);
        assert_eq!(Prefer::parse("auto").expect("a word"), Prefer::Auto);
        let error = Prefer::parse("aio").expect_err("not a word").to_string();
        assert!(error.contains("ALONGSIDE_ENGINE=\"aio\""), "{error}");
    }
}
