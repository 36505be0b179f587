//! What a session does with files: tasks write, change and fail; files are moved, brought home,
//! copied ahead and dropped, several at a time.

use std::path::{Path, PathBuf};

use fastrand::Rng;
use ops::catalog::{self, Entry, Record, Step};

use super::disk::Disks;
use super::shell::{id, note, written, Act, Call, Shell, CATALOG, CATALOGS};
use super::truth::{File, News};
use super::{canary, Canary};
use crate::checkers::Fault;
use crate::hash::mix_all;

/// How many jobs are under way at once.
const JOBS_MAX: usize = 4;
/// Files of a session, at most.
const FILES_MAX: usize = 4;
/// Bytes of a file, at most.
const BYTES_MAX: usize = 12;
/// The name of a session's folder on a layer.
pub(super) const FOLDER: &str = "session";

/// What is done with a file, decided when its turn comes.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A version that was written here is the current one from now on.
    Land { file: usize, version: usize, place: PathBuf },
    /// A task changes the file where it is (or from a copy to here) into this version.
    Change { file: usize, version: usize, place: PathBuf, fails: bool },
    /// It is moved here; or it begins to, and is given up.
    Move { file: usize, to: PathBuf, given_up: bool },
    /// It is brought to its own path.
    Home { file: usize, renamed: bool, given_up: bool },
    /// A scratch file is deleted.
    Drop { file: usize },
    /// A copy that no record names.
    CopyAhead { file: usize, to: PathBuf, deleted: bool },
}

/// The machine of a seed: file systems, and files that were there before the session.
pub(super) fn machine(rng: &mut Rng) -> (Disks, usize) {
    let layers = rng.usize(1..=3);
    let mut systems = vec![(PathBuf::from("/disk"), false)];
    systems.extend((0..layers).map(|layer| (PathBuf::from(format!("/layer{layer}")), rng.bool())));
    let roots = systems.len();
    (Disks::new(systems), roots)
}

/// A version's bytes: no other version of any file begins like it.
fn content(file: usize, version: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![1 + (file * 32 + version % 32) as u8, version as u8 | 128];
    let more = (2..length).map(|at| {
        let number = mix_all(&[file as u64, version as u64, at as u64]);
        number as u8 | 1
    });
    bytes.extend(more);
    bytes
}

/// A session that does things at random until it is to stop.
pub(super) struct Session {
    layers: Vec<PathBuf>,
    places: u64,
}

impl Session {
    /// The session's files, and what is on the disks before it begins.
    pub(super) fn new(shell: &mut Shell, roots: usize) -> Result<Session, Fault> {
        let mut layers: Vec<PathBuf> = vec!["/disk".into()];
        layers.extend((0..roots - 1).map(|layer| PathBuf::from(format!("/layer{layer}"))));
        // A folder per file system that is there already, and has a file of somebody else.
        for root in &layers {
            let folder = root.join("data");
            let other = (folder.join("other"), b"nobody's business".to_vec());
            make(shell, &other.0, &other.1).map_err(|what| Fault::new("machine", what))?;
            shell.truth.others.push(other);
        }
        let other = (PathBuf::from(CATALOGS).join("other"), b"of another session".to_vec());
        make(shell, &other.0, &other.1).map_err(|what| Fault::new("machine", what))?;
        shell.truth.others.push(other);
        for file in 0..shell.rng.usize(1..=FILES_MAX) {
            let root = if shell.rng.u8(0..4) == 0 { shell.rng.choice(&layers) } else { None };
            let root = root.cloned().unwrap_or("/disk".into());
            let folder = if shell.rng.u8(0..4) == 0 { "new/deep" } else { "data" };
            let home = root.join(folder).join(format!("file{file}"));
            let scratch = shell.rng.u8(0..4) == 0;
            let mut truth = File { home: home.clone(), scratch, ..File::default() };
            if !scratch && folder == "data" && shell.rng.bool() {
                truth.versions.push(content(file, 0, 6));
                (truth.original, truth.reported, truth.at_home) = (true, Some(0), Some(0));
                let bytes = truth.versions[0].clone();
                make(shell, &home, &bytes).map_err(|what| Fault::new("machine", what))?;
            }
            truth.places.push(home);
            shell.truth.files.push(truth);
        }
        Ok(Session { layers, places: 0 })
    }

    /// Makes the catalog and the session's folders.
    fn begin(&self, shell: &mut Shell) {
        let mut acts: Vec<Act> = written(CATALOG.as_ref(), catalog::HEADER.as_bytes(), true)
            .into_iter()
            .map(Act::Call)
            .collect();
        if !shell.is(Canary::CatalogNameUnflushed) {
            acts.push(Act::Call(Call::FlushFolder(CATALOGS.into())));
        }
        for layer in &self.layers {
            let folder = layer.join(FOLDER);
            let made = Act::Step(Step::MakeFolders(folder.join("file")));
            let said = note(Record::Folder { path: folder });
            match shell.is(Canary::FolderUnsaid) {
                true => acts.extend([made, said]),
                false => acts.extend([said, made]),
            }
        }
        shell.add(acts, None);
    }

    /// Works until the session is to stop; `false`: it was stopped in the middle.
    pub(super) fn run(&mut self, shell: &mut Shell, calls_left: &mut u64) -> Result<bool, Fault> {
        self.begin(shell);
        if !shell.work(calls_left)? {
            return Ok(false);
        }
        let jobs = shell.rng.usize(1..=16);
        for _ in 0..jobs {
            self.start(shell);
            while shell.jobs() >= JOBS_MAX || shell.jobs() > 0 && shell.rng.u8(0..8) != 0 {
                if !shell.turn(calls_left)? {
                    return Ok(false);
                }
            }
        }
        shell.work(calls_left)
    }

    /// A place that was never used before, in a session's folder.
    fn place(&mut self, rng: &mut Rng) -> PathBuf {
        self.places += 1;
        let layer = rng.choice(&self.layers).expect("there is one");
        layer.join(FOLDER).join(self.places.to_string())
    }

    /// One more job with some file.
    fn start(&mut self, shell: &mut Shell) {
        let file = shell.rng.usize(0..shell.truth.files.len());
        let is_free = !shell.writing.contains(&file);
        let place = self.place(&mut shell.rng);
        let given_up = shell.rng.u8(0..6) == 0;
        let scratch = shell.truth.files[file].scratch;
        let (acts, writes) = match shell.rng.u8(0..16) {
            0..=5 if is_free => (self.written_by_task(shell, file, place, given_up), Some(file)),
            6..=7 if is_free => {
                let version = self.version(shell, file);
                let fails = given_up;
                let work = Work::Change { file, version, place, fails };
                (vec![Act::Lock(file), Act::Work(work)], Some(file))
            }
            8..=10 => {
                let work = Work::Move { file, to: place, given_up };
                (vec![Act::Lock(file), Act::Work(work)], None)
            }
            11..=13 if !scratch || given_up => {
                let renamed = shell.rng.bool();
                let given_up = shell.rng.u8(0..6) == 0;
                let work = Work::Home { file, renamed, given_up };
                (vec![Act::Lock(file), Act::Work(work)], None)
            }
            14 if scratch => (vec![Act::Lock(file), Act::Work(Work::Drop { file })], None),
            _ => {
                let work = Work::CopyAhead { file, to: place, deleted: given_up };
                (vec![Act::Work(work)], None)
            }
        };
        shell.add(acts, writes);
    }

    /// The number of a new version.
    fn version(&mut self, shell: &mut Shell, file: usize) -> usize {
        let truth = &mut shell.truth.files[file];
        let version = truth.versions.len();
        // Often as long as the one before: lengths do not tell them apart.
        let same = truth.versions.last().map(Vec::len).filter(|_| shell.rng.bool());
        let length = same.unwrap_or_else(|| shell.rng.usize(2..=BYTES_MAX));
        truth.versions.push(content(file, version, length));
        version
    }

    fn written_by_task(
        &mut self,
        shell: &mut Shell,
        file: usize,
        place: PathBuf,
        fails: bool,
    ) -> Vec<Act> {
        let version = self.version(shell, file);
        let bytes = &shell.truth.files[file].versions[version];
        let mut calls = written(&place, bytes, !fails && !shell.is(Canary::TaskUnflushed));
        if fails {
            let done = shell.rng.usize(1..=calls.len());
            calls.truncate(done);
            calls.push(Call::Remove(place));
            return calls.into_iter().map(Act::Call).collect();
        }
        let mut acts: Vec<Act> = calls.into_iter().map(Act::Call).collect();
        if !shell.is(Canary::TaskNameUnflushed) {
            acts.push(Act::Step(Step::SyncFolder(place.clone())));
        }
        if !shell.is(Canary::MovesOverlap) {
            acts.push(Act::Lock(file));
        }
        acts.push(Act::Work(Work::Land { file, version, place }));
        acts
    }
}

/// Puts a durable file there before the session begins.
fn make(shell: &mut Shell, path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().expect("below a root");
    let disks = &mut shell.disks;
    disks.make_folder(folder)?;
    disks.create(path)?;
    disks.append(path, bytes)?;
    disks.flush(path)?;
    disks.flush_folder(folder)?;
    disks.flush_folder(folder.parent().expect("below a root"))
}

impl Shell {
    /// What a work comes to, by what is known of its file now.
    pub(super) fn spell_out(&mut self, work: Work) -> Vec<Act> {
        match work {
            Work::Land { file, version, place } => self.land(file, version, place),
            Work::Change { file, version, place, fails } => {
                self.change(file, version, place, fails)
            }
            Work::Move { file, to, given_up } => {
                let Some(entry) = self.settled_entry(file) else { return Vec::new() };
                let steps = canary::steps(catalog::move_to(id(file), &entry, &to), self.canary);
                self.report.moves += 1;
                given_up_at(steps, given_up, to)
            }
            Work::Home { file, renamed, given_up } => {
                let Some(entry) = self.settled_entry(file) else { return Vec::new() };
                self.home(file, &entry, renamed, given_up)
            }
            Work::Drop { file } => match self.settled_entry(file) {
                Some(entry) => vec![
                    note(Record::Gone { file: id(file) }),
                    Act::Step(Step::Remove(entry.place)),
                ],
                None => Vec::new(),
            },
            Work::CopyAhead { file, to, deleted } => {
                let from = self.catalog.get(id(file)).map(|entry| &entry.place);
                let from = from.unwrap_or(&self.truth.files[file].home);
                let Some(content) = self.disks.read(from) else { return Vec::new() };
                let mut acts: Vec<Act> =
                    written(&to, content, true).into_iter().map(Act::Call).collect();
                acts.push(Act::Step(Step::SyncFolder(to.clone())));
                acts.extend(deleted.then_some(Act::Step(Step::Remove(to))));
                acts
            }
        }
    }

    /// A file that is away from its own path, and whole.
    fn settled_entry(&self, file: usize) -> Option<Entry> {
        self.catalog.get(id(file)).filter(|entry| !entry.changing).cloned()
    }

    fn copy_record(&self, file: usize, version: usize, place: &Path) -> Record {
        let File { home, scratch, versions, .. } = &self.truth.files[file];
        let (home, bytes) = (home.clone(), versions[version].len() as u64);
        Record::Copy { file: id(file), home, place: place.into(), bytes, scratch: *scratch }
    }

    fn land(&mut self, file: usize, version: usize, place: PathBuf) -> Vec<Act> {
        let said = note(self.copy_record(file, version, &place));
        let done = Act::Call(Call::News(News::Reported(file, version)));
        let old = self.catalog.get(id(file)).map(|entry| entry.place.clone());
        let old = old.map(|old| Act::Step(Step::Remove(old)));
        if self.is(Canary::DeleteBeforeRecord) {
            return old.into_iter().chain([said, done]).collect();
        }
        let first = if self.is(Canary::ReportEarly) { [done, said] } else { [said, done] };
        first.into_iter().chain(old).collect()
    }

    fn change(&mut self, file: usize, version: usize, place: PathBuf, fails: bool) -> Vec<Act> {
        let mut acts = Vec::new();
        let place = match self.catalog.get(id(file)) {
            Some(entry) => entry.place.clone(),
            None => {
                let File { home, at_home, .. } = &self.truth.files[file];
                let Some(before) = *at_home else { return Vec::new() };
                acts.push(Act::Step(Step::Copy { from: home.clone(), to: place.clone() }));
                acts.push(Act::Step(Step::SyncFolder(place.clone())));
                acts.push(note(self.copy_record(file, before, &place)));
                place
            }
        };
        self.report.changes += 1;
        if !self.is(Canary::ChangingUnsaid) {
            acts.push(note(Record::Changing { file: id(file) }));
        }
        let content = self.truth.files[file].versions[version].clone();
        let half = self.rng.usize(1..content.len());
        let (first, second) = content.split_at(half);
        let mut calls = vec![
            Call::Write(place.clone(), 0, first.to_vec()),
            Call::Write(place.clone(), half, second.to_vec()),
        ];
        if self.rng.bool() {
            calls.swap(0, 1);
        }
        calls.push(Call::Cut(place.clone(), content.len()));
        if fails {
            calls.truncate(1);
            acts.extend(calls.into_iter().map(Act::Call));
            return acts;
        }
        calls.extend((!self.is(Canary::TaskUnflushed)).then_some(Call::Flush(place.clone())));
        acts.extend(calls.into_iter().map(Act::Call));
        acts.push(note(self.copy_record(file, version, &place)));
        acts.push(Act::Call(Call::News(News::Reported(file, version))));
        acts
    }

    fn home(&mut self, file: usize, entry: &Entry, renamed: bool, given_up: bool) -> Vec<Act> {
        self.report.homes += 1;
        let over = self.temporary(entry, renamed);
        let steps = catalog::bring_home(id(file), entry, over.as_deref());
        let steps = canary::steps(steps, self.canary);
        let scratch = self.truth.files[file].scratch;
        let asked = scratch.then_some(Act::Call(Call::News(News::Asked(file))));
        let kept = (scratch && !given_up).then_some(Act::Call(Call::News(News::Kept(file))));
        let target = over.unwrap_or(entry.place.with_extension("none"));
        let steps = given_up_at(steps, given_up, target);
        asked.into_iter().chain(steps).chain(kept).collect()
    }

    /// The file beside a file's own path that it is copied to, unless it can be renamed there.
    pub(super) fn temporary(&mut self, entry: &Entry, renamed: bool) -> Option<PathBuf> {
        let is_near = self.disks.root(&entry.place) == self.disks.root(&entry.home);
        if renamed && is_near {
            return None;
        }
        let name = entry.home.file_name().expect("it is a file").to_string_lossy();
        // The same as the last time, or another.
        let number = self.rng.u8(0..3);
        Some(entry.home.with_file_name(format!(".{name}.alongside{number}")))
    }
}

/// The steps up to the one after which there is no way back; its new file is deleted again.
fn given_up_at(mut steps: Vec<Step>, given_up: bool, target: PathBuf) -> Vec<Act> {
    let is_last =
        |step: &Step| matches!(step, Step::Rename { .. } | Step::Note(Record::Copy { .. }));
    if let Some(last) = steps.iter().position(is_last).filter(|_| given_up) {
        steps.truncate(last);
        steps.push(Step::Remove(target));
    }
    steps.into_iter().map(Act::Step).collect()
}
