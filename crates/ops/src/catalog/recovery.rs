//! What is to be done after a crash, by what the catalog knows and the disks still have.

use std::path::Path;

use super::{bring_home, Catalog, Entry, FileId, Record, Step};

/// The length of the file at a path; `None`: there is none.
pub type Look<'a> = dyn FnMut(&Path) -> Option<u64> + 'a;

/// What is to become of a file that was not at its own path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is whole where the catalog says: it is to be brought to its own path.
    BringHome,
    /// As `BringHome`, but a task was changing it in place: it may be half changed.
    HalfChanged,
    /// It stands at its own path already.
    AtHome,
    /// It was not to be kept, or there is a later version.
    Delete,
    /// Its copy has another length than it should: somebody else changed it. It is left alone.
    Damaged,
    /// Its copy is gone, as in memory after a restart of the machine.
    Lost,
}

fn fate(entry: &Entry, look: &mut Look<'_>) -> Fate {
    let found = look(&entry.place);
    match found {
        _ if entry.scratch => Fate::Delete,
        // It was going to be changed at its own path: nobody had begun.
        _ if entry.place == entry.home && !entry.changing => Fate::AtHome,
        Some(_) if entry.changing => Fate::HalfChanged,
        Some(bytes) if bytes == entry.bytes => Fate::BringHome,
        Some(_) => Fate::Damaged,
        // Only a rename takes a copy away before the record that it is at home. The length of one
        // that was being changed is not known.
        None if entry.leaving == Some(None) => match look(&entry.home) {
            Some(bytes) if bytes == entry.bytes || entry.changing => Fate::AtHome,
            _ => Fate::Lost,
        },
        None => Fate::Lost,
    }
}

/// The steps that carry a fate out; `temporary` as for [`bring_home`].
///
/// Before the first of them, and before anything is deleted: what [`decode`](super::decode) calls
/// torn is cut off the catalog, or the next record would be unreadable behind it, and the catalog
/// is flushed, for a program that was killed may have left records that nobody flushed.
///
/// After the last of them: what is left in the session's folders is deleted, and the folders, and
/// the temporaries; the folders that they were in are flushed, also if nothing was left, for a
/// recovery that was killed may have deleted it; and then the catalog is deleted.
///
/// A file that was half changed and only renamed is `AtHome` to a recovery that is begun again:
/// with a temporary it stays `HalfChanged` until the record that it is at home.
pub fn settle(file: FileId, entry: &Entry, fate: Fate, temporary: Option<&Path>) -> Vec<Step> {
    match fate {
        // It was changed where it belongs.
        _ if entry.place == entry.home => vec![Step::Note(Record::Home { file })],
        Fate::BringHome | Fate::HalfChanged => bring_home(file, entry, temporary),
        // The rename was seen: it is not known to be durable.
        Fate::AtHome => {
            vec![Step::SyncFolder(entry.home.clone()), Step::Note(Record::Home { file })]
        }
        Fate::Delete => {
            vec![Step::Note(Record::Gone { file }), Step::Remove(entry.place.clone())]
        }
        Fate::Damaged => Vec::new(),
        Fate::Lost => vec![Step::Note(Record::Gone { file })],
    }
}

/// What is to become of each version of each file.
pub fn recover(catalog: &Catalog, look: &mut Look<'_>) -> Vec<(FileId, Entry, Fate)> {
    let latest = catalog.latest();
    let fate = |(file, entry): (FileId, &Entry)| {
        let fate = match latest[entry.home.as_path()] == file {
            true => fate(entry, look),
            false => Fate::Delete,
        };
        (file, entry.clone(), fate)
    };
    catalog.entries().map(fate).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const FILE: FileId = FileId(1);

    fn entry(changing: bool, leaving: Option<Option<PathBuf>>) -> Entry {
        let (home, place) = (PathBuf::from("/own/a"), PathBuf::from("/fast/1"));
        Entry { home, place, bytes: 5, scratch: false, changing, leaving }
    }

    fn fate_of(entry: &Entry, place: Option<u64>, home: Option<u64>) -> Fate {
        fate(entry, &mut |path| if path == entry.place { place } else { home })
    }

    #[test]
    fn only_a_rename_takes_a_file_home_without_its_record() {
        let over = Some(Some(PathBuf::from("/own/.a")));
        assert_eq!(fate_of(&entry(false, Some(None)), None, Some(5)), Fate::AtHome);
        assert_eq!(fate_of(&entry(false, Some(None)), None, Some(4)), Fate::Lost);
        assert_eq!(fate_of(&entry(false, over), None, Some(5)), Fate::Lost);
        assert_eq!(fate_of(&entry(false, None), None, Some(5)), Fate::Lost);
    }

    #[test]
    fn a_half_changed_file_that_was_renamed_home_is_not_lost() {
        let renamed = entry(true, Some(None));
        assert_eq!(fate_of(&renamed, Some(9), Some(4)), Fate::HalfChanged);
        assert_eq!(fate_of(&renamed, None, Some(9)), Fate::AtHome);
        assert_eq!(fate_of(&renamed, None, None), Fate::Lost);
    }

    #[test]
    fn what_is_seen_at_home_is_flushed_before_it_is_recorded() {
        let steps = settle(FILE, &entry(false, Some(None)), Fate::AtHome, None);
        let home = PathBuf::from("/own/a");
        let said = Record::Home { file: FILE };
        assert_eq!(steps, [Step::SyncFolder(home), Step::Note(said)]);
    }

    #[test]
    fn of_two_versions_the_older_is_deleted() {
        let copy = |file, place: &str| {
            let (home, place) = (PathBuf::from("/own/a"), PathBuf::from(place));
            Record::Copy { file, home, place, bytes: 5, scratch: false }
        };
        let (old, new) = (FileId(1), FileId(2));
        let catalog = Catalog::replay([copy(old, "/fast/1"), copy(new, "/slow/2")]);
        let found = recover(&catalog, &mut |_| Some(5));
        let fates: Vec<_> = found.iter().map(|(file, _, fate)| (*file, *fate)).collect();
        assert_eq!(fates, [(old, Fate::Delete), (new, Fate::BringHome)]);
    }

    #[test]
    fn what_is_at_its_own_path_is_never_removed() {
        let mut at_home = entry(false, None);
        at_home.place = at_home.home.clone();
        assert_eq!(fate_of(&at_home, Some(9), Some(9)), Fate::AtHome);
        at_home.changing = true;
        assert_eq!(fate_of(&at_home, Some(9), Some(9)), Fate::HalfChanged);
        for fate in [Fate::AtHome, Fate::HalfChanged, Fate::Delete] {
            let steps = settle(FILE, &at_home, fate, None);
            assert_eq!(steps, [Step::Note(Record::Home { file: FILE })]);
        }
    }

    #[test]
    #[should_panic = "half changed"]
    fn a_half_changed_file_is_not_moved() {
        super::super::move_to(FILE, &entry(true, None), Path::new("/slow/1"));
    }
}
