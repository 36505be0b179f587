//! Carries out jobs on the modelled disks, one operation at a time, several jobs in turn: what a
//! driver and its helpers do with threads. It can be stopped between any two operations, and
//! within a write.

use std::collections::{BTreeSet, VecDeque};
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use ops::catalog::{Catalog, FileId, Record, Step};

use super::disk::{Disks, Failed};
use super::session::Work;
use super::truth::{News, Truth};
use super::{canary, Canary, Report};
use crate::checkers::Fault;
use crate::hash::Fold;

/// The folder that the catalog is in: on a disk.
pub(super) const CATALOGS: &str = "/disk/catalogs";
/// Where the catalog is.
pub(super) const CATALOG: &str = "/disk/catalogs/catalog";
/// In how many pieces a copy is written, at most.
const PIECES_MAX: usize = 3;

/// One call to a file system. Programs stop between two of them.
#[derive(Clone, Debug)]
pub(super) enum Call {
    MakeFolder(PathBuf),
    FlushFolder(PathBuf),
    Create(PathBuf),
    Append(PathBuf, Vec<u8>),
    Write(PathBuf, usize, Vec<u8>),
    Cut(PathBuf, usize),
    Flush(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    /// No call: it is true at the very moment in which the call before is done.
    News(News),
}

/// A part of a job; it is spelled out when its turn comes.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Call(Call),
    Step(Step),
    /// What a session does with a file, by what is known of it then.
    Work(Work),
    /// No other job moves the file from here to the end of this job.
    Lock(usize),
    /// The folder and all in it are deleted.
    Empty(PathBuf),
}

#[derive(Default)]
struct Job {
    acts: VecDeque<Act>,
    calls: VecDeque<Call>,
    locked: Option<usize>,
    /// No other job writes the file until the end of this one.
    writes: Option<usize>,
}

/// The machine, the program on it, and what is true.
pub(super) struct Shell {
    pub disks: Disks,
    pub truth: Truth,
    pub rng: Rng,
    pub report: Report,
    pub canary: Option<Canary>,
    pub trace: Option<Vec<String>>,
    /// What the program knows of its files: forgotten when it stops.
    pub catalog: Catalog,
    /// Files that some job locked, or writes.
    locks: BTreeSet<usize>,
    pub writing: BTreeSet<usize>,
    jobs: Vec<Job>,
    pub log: Fold,
}

impl Shell {
    pub(super) fn new(disks: Disks, rng: Rng, canary: Option<Canary>) -> Shell {
        Shell {
            disks,
            truth: Truth::default(),
            rng,
            report: Report::default(),
            canary,
            trace: None,
            catalog: Catalog::default(),
            locks: BTreeSet::new(),
            writing: BTreeSet::new(),
            jobs: Vec::new(),
            log: Fold::default(),
        }
    }

    pub(super) fn is(&self, canary: Canary) -> bool {
        self.canary == Some(canary)
    }

    pub(super) fn say(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(what());
        }
    }

    /// One more job; `writes`: the file that it writes, alone.
    pub(super) fn add(&mut self, acts: impl IntoIterator<Item = Act>, writes: Option<usize>) {
        self.writing.extend(writes);
        let acts = acts.into_iter().collect();
        self.jobs.push(Job { acts, writes, ..Job::default() });
    }

    pub(super) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Every job up to its end; `false`: stopped before.
    pub(super) fn work(&mut self, calls_left: &mut u64) -> Result<bool, Fault> {
        while !self.jobs.is_empty() {
            if !self.turn(calls_left)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One call of some job; `false`: it is time to stop.
    pub(super) fn turn(&mut self, calls_left: &mut u64) -> Result<bool, Fault> {
        if *calls_left == 0 {
            return Ok(false);
        }
        *calls_left -= 1;
        let at = self.rng.usize(0..self.jobs.len());
        // A job that waits for another's lock: that one goes on.
        let at = match self.waits_for(at) {
            Some(file) => {
                let holder = self.jobs.iter().position(|job| job.locked == Some(file));
                holder.expect("a lock has a holder")
            }
            None => at,
        };
        let mut job = self.jobs.swap_remove(at);
        let advanced = self.advance(&mut job);
        match job.acts.is_empty() && job.calls.is_empty() {
            true => {
                job.locked.iter().for_each(|file| _ = self.locks.remove(file));
                job.writes.iter().for_each(|file| _ = self.writing.remove(file));
                self.report.jobs += 1;
            }
            false => self.jobs.push(job),
        }
        advanced.map_err(|what| Fault::new("steps", what))?;
        Ok(true)
    }

    fn waits_for(&self, at: usize) -> Option<usize> {
        let job = &self.jobs[at];
        match job.acts.front() {
            Some(Act::Lock(file)) if job.calls.is_empty() && self.locks.contains(file) => {
                Some(*file)
            }
            _ => None,
        }
    }

    fn advance(&mut self, job: &mut Job) -> Result<(), Failed> {
        while job.calls.is_empty() {
            let Some(act) = job.acts.pop_front() else { return Ok(()) };
            match act {
                Act::Call(call) => job.calls.push_back(call),
                Act::Step(step) => job.calls.extend(self.calls(step)?),
                Act::Work(work) => {
                    let acts = self.spell_out(work);
                    acts.into_iter().rev().for_each(|act| job.acts.push_front(act));
                }
                Act::Lock(file) => {
                    if self.locks.contains(&file) {
                        job.acts.push_front(Act::Lock(file));
                        return Ok(());
                    }
                    job.locked = Some(file);
                    self.locks.insert(file);
                }
                Act::Empty(folder) => job.calls.extend(self.emptied(&folder)),
            }
        }
        let call = job.calls.pop_front().expect("there is one");
        self.call(&call)?;
        while let Some(Call::News(news)) = job.calls.front() {
            self.hear(&news.clone());
            job.calls.pop_front();
        }
        Ok(())
    }

    fn hear(&mut self, news: &News) {
        self.say(|| format!("    {news:?}"));
        if let News::Flushed(record) = news {
            self.catalog.apply(record.clone());
        }
        self.truth.hear(news, &self.disks);
    }

    /// The calls of a step.
    fn calls(&self, step: Step) -> Result<Vec<Call>, Failed> {
        let folder_of = |path: &Path| path.parent().expect("below a root").to_path_buf();
        Ok(match step {
            Step::Note(record) => {
                let line = record.encode().into_bytes();
                let unflushed = canary::is_unflushed(&record, self.canary);
                let mut calls = vec![
                    Call::Append(CATALOG.into(), line),
                    Call::News(News::Added(record.clone())),
                    Call::Flush(CATALOG.into()),
                    Call::News(News::Flushed(record)),
                ];
                if unflushed {
                    calls.remove(2);
                }
                calls
            }
            Step::MakeFolders(path) => self.folders_made(&path),
            Step::Copy { from, to } => {
                let content = self.disks.read(&from);
                let content = content.ok_or_else(|| format!("there is no {from:?} to copy"))?;
                written(&to, content, !self.is(Canary::CopyUnflushed))
            }
            Step::Rename { from, to } => vec![Call::Rename(from, to)],
            Step::SyncFolder(path) => vec![Call::FlushFolder(folder_of(&path))],
            Step::Remove(path) => vec![Call::Remove(path)],
        })
    }

    fn folders_made(&self, path: &Path) -> Vec<Call> {
        let root = self.disks.root(path);
        let above = path.ancestors().skip(1).take_while(|folder| *folder != root);
        let mut folders: Vec<&Path> = above.collect();
        if self.is(Canary::FoldersTrusted) {
            folders.retain(|folder| !self.disks.has_folder(folder));
        }
        let calls = folders.iter().rev().flat_map(|folder| {
            let above = folder.parent().expect("below a root").to_path_buf();
            [Call::MakeFolder(folder.to_path_buf()), Call::FlushFolder(above)]
        });
        let unflushed = self.is(Canary::FoldersUnflushed);
        calls.filter(|call| !unflushed || matches!(call, Call::MakeFolder(_))).collect()
    }

    fn emptied(&self, folder: &Path) -> Vec<Call> {
        let above = folder.parent().expect("below a root").to_path_buf();
        let mut calls = Vec::new();
        if self.disks.has_folder(folder) {
            calls.extend(self.disks.list(folder).into_iter().map(Call::Remove));
            calls.push(Call::FlushFolder(folder.to_path_buf()));
            calls.push(Call::Remove(folder.to_path_buf()));
        } else if self.is(Canary::MissingTrusted) {
            return calls;
        }
        // Also if it is missing: who deleted it may have been killed before flushing that.
        calls.push(Call::FlushFolder(above));
        let unflushed = self.is(Canary::SweepUnflushed);
        calls.retain(|call| !unflushed || matches!(call, Call::Remove(_)));
        calls
    }

    fn call(&mut self, call: &Call) -> Result<(), Failed> {
        self.report.calls += 1;
        self.say(|| match call {
            Call::Append(path, bytes) => {
                format!("  Append({path:?}, \"{}\")", bytes.escape_ascii())
            }
            Call::News(_) => "  and then".to_string(),
            call => format!("  {call:?}"),
        });
        let disks = &mut self.disks;
        let log = &mut self.log;
        let mut note = |kind: u64, path: &Path| {
            log.write_u64(kind);
            log.write(path.as_os_str().as_encoded_bytes());
        };
        match call {
            Call::MakeFolder(path) => {
                note(1, path);
                disks.make_folder(path)
            }
            Call::FlushFolder(path) => {
                note(2, path);
                disks.flush_folder(path)
            }
            Call::Create(path) => {
                note(3, path);
                disks.create(path)
            }
            Call::Append(path, bytes) => {
                note(4, path);
                log.write(bytes);
                disks.append(path, bytes)
            }
            Call::Write(path, at, bytes) => {
                note(5 + *at as u64, path);
                log.write(bytes);
                disks.write(path, *at, bytes)
            }
            Call::Cut(path, length) => {
                note(1000 + *length as u64, path);
                disks.cut(path, *length)
            }
            Call::Flush(path) => {
                note(2001, path);
                disks.flush(path)
            }
            Call::Rename(from, to) => {
                note(2002, from);
                note(2003, to);
                disks.rename(from, to)
            }
            Call::Remove(path) => {
                note(2004, path);
                disks.remove(path)
            }
            Call::News(news) => {
                let news = news.clone();
                self.hear(&news);
                Ok(())
            }
        }
    }

    /// Everything stops here: a call may have begun; with `power` the machine stops too.
    pub(super) fn stop(&mut self, power: bool) {
        if !self.jobs.is_empty() && self.rng.bool() {
            let at = self.rng.usize(0..self.jobs.len());
            let next = self.jobs[at].calls.front().cloned();
            let cut = |rng: &mut Rng, bytes: &[u8]| bytes[..rng.usize(0..=bytes.len())].to_vec();
            let begun = match next {
                Some(Call::Append(path, bytes)) => {
                    Some(Call::Append(path, cut(&mut self.rng, &bytes)))
                }
                Some(Call::Write(path, at, bytes)) => {
                    Some(Call::Write(path, at, cut(&mut self.rng, &bytes)))
                }
                _ => None,
            };
            // A call that fails is the end of its job, and everything ends here.
            _ = begun.map(|begun| self.call(&begun));
        }
        self.say(|| format!("stopped by {}", if power { "a loss of power" } else { "kill -9" }));
        self.jobs.clear();
        self.locks.clear();
        self.writing.clear();
        self.catalog = Catalog::default();
        match power {
            true => self.lose_power(),
            false => self.report.kills += 1,
        }
    }

    /// The machine stops.
    pub(super) fn lose_power(&mut self) {
        self.report.power_losses += 1;
        self.truth.power_lost(&self.disks);
        self.disks.lose_power(&mut self.rng);
    }
}

/// The calls that write a new file.
pub(super) fn written(path: &Path, content: &[u8], flushed: bool) -> Vec<Call> {
    let piece = content.len().div_ceil(PIECES_MAX).max(1);
    let mut calls = vec![Call::Create(path.to_path_buf())];
    let pieces = content.chunks(piece);
    calls.extend(pieces.map(|piece| Call::Append(path.to_path_buf(), piece.to_vec())));
    if flushed {
        calls.push(Call::Flush(path.to_path_buf()));
    }
    calls
}

/// The number of a file in records.
pub(super) fn id(file: usize) -> FileId {
    FileId(file as u64)
}

/// The step of a record.
pub(super) fn note(record: Record) -> Act {
    Act::Step(Step::Note(record))
}
