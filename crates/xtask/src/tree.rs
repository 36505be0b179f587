//! The files of the repository: everything that the root's `.gitignore` does not leave out.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// All files with their text (empty where it is not UTF-8), by path from the root with `/`.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    empty_folders: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree below `root`.
    pub fn load(root: &Path) -> io::Result<Self> {
        let ignored = Ignored::parse(&std::fs::read_to_string(root.join(".gitignore"))?);
        let mut tree = Self::default();
        tree.load_folder(root, "", &ignored)?;
        Ok(tree)
    }

    /// Reads one folder; says whether there was anything in it, ignored or not.
    fn load_folder(&mut self, root: &Path, folder: &str, ignored: &Ignored) -> io::Result<bool> {
        let mut occupied = false;
        for entry in std::fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if ignored.matches(&path, kind.is_dir()) {
                occupied = true;
            } else if kind.is_dir() {
                if self.load_folder(root, &path, ignored)? {
                    occupied = true;
                } else {
                    self.empty_folders.insert(path);
                }
            } else if kind.is_file() {
                occupied = true;
                let bytes = std::fs::read(entry.path())?;
                self.files.insert(path, String::from_utf8(bytes).unwrap_or_default());
            }
        }
        Ok(occupied)
    }

    /// A tree made up for a test.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| (path.to_string(), text.to_string()));
        Self { files: files.collect(), empty_folders: BTreeSet::new() }
    }

    /// Every file and its text, in order of path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether a file or folder of this path is there.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&folder))
    }

    /// Folders with nothing in them at all.
    pub fn empty_folders(&self) -> impl Iterator<Item = &str> {
        self.empty_folders.iter().map(String::as_str)
    }
}

/// The patterns of `.gitignore`, in the forms that this repository uses: a leading `/` anchors
/// to the root, a trailing `/` means folders only, one `*` stands for anything.
struct Ignored(Vec<Pattern>);

struct Pattern {
    anchored: bool,
    folders_only: bool,
    before: String,
    after: Option<String>,
}

impl Ignored {
    fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
        let mut patterns: Vec<_> = lines.map(Pattern::parse).collect();
        patterns.push(Pattern::parse("/.git"));
        Self(patterns)
    }

    fn matches(&self, path: &str, is_folder: bool) -> bool {
        self.0.iter().any(|pattern| pattern.matches(path, is_folder))
    }
}

impl Pattern {
    fn parse(line: &str) -> Self {
        let body = line.trim_start_matches('/').trim_end_matches('/');
        let (before, after) = match body.split_once('*') {
            Some((before, after)) => (before, Some(after.to_owned())),
            None => (body, None),
        };
        Self {
            anchored: line.trim_end_matches('/').contains('/'),
            folders_only: line.ends_with('/'),
            before: before.to_owned(),
            after,
        }
    }

    fn matches(&self, path: &str, is_folder: bool) -> bool {
        if self.folders_only && !is_folder {
            return false;
        }
        let name = if self.anchored { path } else { path.rsplit('/').next().unwrap_or(path) };
        match &self.after {
            None => name == self.before,
            Some(after) => name.strip_prefix(&self.before).is_some_and(|r| r.ends_with(after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_gitignore() {
        let ignored = Ignored::parse("# built\n/target/\n__pycache__/\n*.so\n/out-*/\n");
        assert!(ignored.matches("target", true));
        assert!(!ignored.matches("crates/target", true), "anchored to the root");
        assert!(!ignored.matches("target", false), "folders only");
        assert!(ignored.matches("python/alongside/__pycache__", true));
        assert!(ignored.matches("python/alongside/_native.abi3.so", false));
        assert!(ignored.matches("out-1", true));
        assert!(ignored.matches(".git", true));
        assert!(!ignored.matches(".gitignore", false));
    }

    #[test]
    fn has_knows_files_and_folders() {
        let tree = Tree::of(&[("docs/a.md", ""), ("docs-old/b.md", "")]);
        assert!(tree.has("docs") && tree.has("docs/a.md") && tree.has(""));
        assert!(!tree.has("doc") && !tree.has("docs/b.md"));
    }

    #[test]
    fn empty_folders_are_found_on_disk() {
        let root = std::env::temp_dir().join(format!("alongside-tree-{}", std::process::id()));
        std::fs::create_dir_all(root.join("full/empty")).unwrap();
        std::fs::create_dir_all(root.join("built/__pycache__")).unwrap();
        std::fs::write(root.join(".gitignore"), "__pycache__/\n").unwrap();
        std::fs::write(root.join("full/a.txt"), "a").unwrap();
        let tree = Tree::load(&root).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(tree.empty_folders().collect::<Vec<_>>(), ["full/empty"]);
        assert_eq!(tree.text("full/a.txt"), Some("a"));
    }
}
