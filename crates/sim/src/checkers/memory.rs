//! No version leaks and none is lost: each settles before it is discarded, is discarded once and
//! only when nobody names it or has it to read, and in the end all are.

use graph::VersionId;
use sched::{Failure, Instruction};

use super::Fault;
use crate::hash::Map;

#[derive(Clone, Copy, Debug, Default)]
struct Version {
    names: u32,
    readers: u32,
    latest_of: u32,
    settled: Option<bool>,
    discarded: bool,
}

/// The account of every version.
#[derive(Debug, Default)]
pub struct Memory {
    versions: Map<VersionId, Version>,
}

fn fault(message: String) -> Fault {
    Fault::new("memory", message)
}

impl Memory {
    /// The program got a name of a version.
    pub fn named(&mut self, version: VersionId) -> Result<(), Fault> {
        let entry = self.versions.entry(version).or_default();
        if entry.discarded {
            return Err(fault(format!("{version:?} was named after it was discarded")));
        }
        entry.names += 1;
        Ok(())
    }

    /// A version that was there from the start.
    pub fn given(&mut self, version: VersionId) -> Result<(), Fault> {
        self.named(version)?;
        self.versions.entry(version).or_default().settled = Some(true);
        Ok(())
    }

    /// The program gave a name up.
    pub fn unnamed(&mut self, version: VersionId) {
        let entry = self.versions.entry(version).or_default();
        assert!(entry.names > 0, "the program gives up what it has");
        entry.names -= 1;
    }

    /// A datum has (or no longer has) this as its latest version.
    pub fn latest(&mut self, version: VersionId, is: bool) {
        let entry = self.versions.entry(version).or_default();
        entry.latest_of = if is { entry.latest_of + 1 } else { entry.latest_of - 1 };
    }

    /// A task that is not over makes a version.
    pub fn made(&mut self, version: VersionId) -> Result<(), Fault> {
        let entry = self.versions.entry(version).or_default();
        match entry.discarded {
            true => Err(fault(format!("{version:?} is made after it was discarded"))),
            false => Ok(()),
        }
    }

    /// A task reads a version until it is over.
    pub fn reads(&mut self, version: VersionId) -> Result<(), Fault> {
        let entry = self.versions.entry(version).or_default();
        if entry.discarded {
            return Err(fault(format!("{version:?} is to be read after it was discarded")));
        }
        entry.readers += 1;
        Ok(())
    }

    /// A reader is over.
    pub fn read(&mut self, version: VersionId) {
        self.versions.entry(version).or_default().readers -= 1;
    }

    /// Whether a version has come, or never will.
    pub fn settled(&self, version: VersionId) -> Option<bool> {
        self.versions.get(&version).and_then(|entry| entry.settled)
    }

    /// How many tasks that are not over have a version to read; `None`: it was discarded.
    pub fn readers(&self, version: VersionId) -> Option<u32> {
        let entry = self.versions.get(&version).filter(|entry| !entry.discarded);
        entry.map(|entry| entry.readers)
    }

    /// Looks at one instruction. The readers that are over with its batch have been taken off.
    pub fn instruction(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        match instruction {
            Instruction::Resolve { version, failure } => self.resolve(*version, failure.as_deref()),
            Instruction::Discard { version } => self.discard(*version),
            _ => Ok(()),
        }
    }

    fn resolve(&mut self, version: VersionId, failure: Option<&Failure>) -> Result<(), Fault> {
        let entry = self.versions.entry(version).or_default();
        if entry.discarded || entry.settled.is_some() {
            return Err(fault(format!("{version:?} is resolved again: {entry:?}, {failure:?}")));
        }
        entry.settled = Some(failure.is_none());
        Ok(())
    }

    fn discard(&mut self, version: VersionId) -> Result<(), Fault> {
        let entry = self.versions.entry(version).or_default();
        let wanted = entry.names > 0 || entry.readers > 0 || entry.latest_of > 0;
        if entry.discarded || entry.settled.is_none() || wanted {
            return Err(fault(format!("{version:?} is discarded, but: {entry:?}")));
        }
        entry.discarded = true;
        Ok(())
    }

    /// Everything was forgotten: nothing may be left.
    pub fn end(&self) -> Result<(), Fault> {
        let mut left: Vec<_> = self.versions.iter().filter(|(_, v)| !v.discarded).collect();
        left.sort_by_key(|(id, _)| **id);
        match left.first() {
            Some((id, entry)) => {
                let count = left.len();
                Err(fault(format!("{count} versions are never discarded, {id:?}: {entry:?}")))
            }
            None => Ok(()),
        }
    }
}
