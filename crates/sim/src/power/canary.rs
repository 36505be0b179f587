//! Ways to do a move, a task's end or a recovery wrong: each leaves out or swaps one step, and
//! shows by what is then lost why the step is there.

use ops::catalog::{Record, Step};

/// One thing that is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// A copy's content is not flushed.
    CopyUnflushed,
    /// The names in the folder that a file was moved to are not flushed before the record.
    MoveUnflushed,
    /// The names at the file's own path are not flushed before the record.
    HomeUnflushed,
    /// Folders that had to be made are not flushed.
    FoldersUnflushed,
    /// Folders that are there are taken for durable: another made them and flushes them later.
    FoldersTrusted,
    /// The record of a copy is not flushed before it is relied on.
    CopyRecordUnflushed,
    /// The record that a file is leaving is not flushed.
    LeavingUnflushed,
    /// The record that a file is being changed is not flushed.
    ChangingUnflushed,
    /// The record that a file is at its own path is not flushed.
    HomeRecordUnflushed,
    /// The old copy is deleted before the record of the new one.
    DeleteBeforeRecord,
    /// The record that a file is at its own path comes before the file does.
    RecordBeforeHome,
    /// It is not said that a file is leaving.
    LeavingUnsaid,
    /// It is not said that a file is being changed.
    ChangingUnsaid,
    /// A file is copied straight onto the old one at its own path.
    NoTemporary,
    /// A task is reported done before the record of its file.
    ReportEarly,
    /// What a task wrote is not flushed.
    TaskUnflushed,
    /// The name of what a task wrote is not flushed.
    TaskNameUnflushed,
    /// Recovery leaves the half made files beside own paths.
    TemporaryKept,
    /// The record of a new version does not wait for the move of the old one.
    MovesOverlap,
    /// A session's folder is made before the record of it.
    FolderUnsaid,
    /// The catalog's own name is not flushed when a session starts.
    CatalogNameUnflushed,
    /// Recovery relies on records that were not flushed.
    CatalogTrusted,
    /// Recovery adds records behind a torn one.
    TornKept,
    /// A file that is seen at its own path is taken for durable there.
    AtHomeTrusted,
    /// Recovery does not flush what it deleted before it deletes the catalog.
    SweepUnflushed,
    /// Recovery takes a folder that is missing for durably deleted.
    MissingTrusted,
    /// Recovery deletes the catalog, then the rest.
    CatalogFirst,
    /// Recovery empties the session's folders before it brings the files home.
    SweepFirst,
}

impl Canary {
    /// Every one.
    pub const ALL: [Canary; 28] = [
        Canary::CopyUnflushed,
        Canary::MoveUnflushed,
        Canary::HomeUnflushed,
        Canary::FoldersUnflushed,
        Canary::FoldersTrusted,
        Canary::CopyRecordUnflushed,
        Canary::LeavingUnflushed,
        Canary::ChangingUnflushed,
        Canary::HomeRecordUnflushed,
        Canary::DeleteBeforeRecord,
        Canary::RecordBeforeHome,
        Canary::LeavingUnsaid,
        Canary::ChangingUnsaid,
        Canary::NoTemporary,
        Canary::ReportEarly,
        Canary::TaskUnflushed,
        Canary::TaskNameUnflushed,
        Canary::TemporaryKept,
        Canary::MovesOverlap,
        Canary::FolderUnsaid,
        Canary::CatalogNameUnflushed,
        Canary::CatalogTrusted,
        Canary::TornKept,
        Canary::AtHomeTrusted,
        Canary::SweepUnflushed,
        Canary::MissingTrusted,
        Canary::CatalogFirst,
        Canary::SweepFirst,
    ];
}

/// Whether a canary does not flush this record.
pub(super) fn is_unflushed(record: &Record, canary: Option<Canary>) -> bool {
    matches!(
        (canary, record),
        (Some(Canary::CopyRecordUnflushed), Record::Copy { .. })
            | (Some(Canary::LeavingUnflushed), Record::Leaving { .. })
            | (Some(Canary::ChangingUnflushed), Record::Changing { .. })
            | (Some(Canary::HomeRecordUnflushed), Record::Home { .. })
    )
}

/// The steps of a move as a canary has them.
pub(super) fn steps(mut steps: Vec<Step>, canary: Option<Canary>) -> Vec<Step> {
    let note = |step: &Step| matches!(step, Step::Note(Record::Copy { .. } | Record::Home { .. }));
    let at = steps.iter().position(note);
    match (canary, at) {
        (Some(Canary::DeleteBeforeRecord), Some(at)) if at + 1 < steps.len() => {
            steps.swap(at, at + 1);
        }
        (Some(Canary::RecordBeforeHome), Some(at)) => {
            if matches!(steps[at], Step::Note(Record::Home { .. })) {
                let note = steps.remove(at);
                steps.insert(at.saturating_sub(2), note);
            }
        }
        (Some(Canary::MoveUnflushed), Some(at)) => {
            if matches!(steps[at], Step::Note(Record::Copy { .. })) {
                steps.retain(|step| !matches!(step, Step::SyncFolder(_)));
            }
        }
        (Some(Canary::HomeUnflushed), Some(at)) => {
            if matches!(steps[at], Step::Note(Record::Home { .. })) {
                steps.retain(|step| !matches!(step, Step::SyncFolder(_)));
            }
        }
        (Some(Canary::LeavingUnsaid), _) => {
            steps.retain(|step| !matches!(step, Step::Note(Record::Leaving { .. })));
        }
        (Some(Canary::NoTemporary), _) => straight_home(&mut steps),
        _ => {}
    }
    steps
}

/// Makes "copy beside, rename" of the steps "copy over".
fn straight_home(steps: &mut Vec<Step>) {
    let copied = steps.iter().position(|step| matches!(step, Step::Copy { .. }));
    let Some(copied) = copied else { return };
    let Some(Step::Rename { to: home, .. }) = steps.get(copied + 1).cloned() else { return };
    steps.remove(copied + 1);
    if let Step::Copy { to, .. } = &mut steps[copied] {
        *to = home;
    }
}
