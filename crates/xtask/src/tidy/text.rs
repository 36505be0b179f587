//! Rules on lines: the doc on line 1, columns, file length, unfinished work, machine paths.

use super::Violation;
use crate::tree::Tree;

const COLUMNS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 800;

/// Notes of unfinished work, spelled apart so that this file does not contain them.
const UNFINISHED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimpl", "emented!"),
    concat!("#[ign", "ore"),
];

/// Top folders that exist on one person's machine only.
const MACHINE_FOLDERS: [&str; 5] = ["work", "root", "home", "Users", "scratch"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.files() {
        let kind = Kind::of(path, text);
        if kind == Kind::Other {
            continue;
        }
        if let Some(missing) = kind.missing_doc(text) {
            found.push(Violation::file(path, missing));
        }
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            let what = format!("{lines} lines, at most {FILE_LINES_MAX}: split it by concept");
            found.push(Violation::file(path, what));
        }
        for (line, text) in (1..).zip(text.lines()) {
            found.extend(line_faults(kind, text).map(|what| Violation::at(path, line, what)));
        }
    }
    found
}

/// What a file is, as far as these rules care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rust,
    Python,
    Stub,
    Shell,
    Page,
    Settings,
    Other,
}

impl Kind {
    fn of(path: &str, text: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("rs") => Self::Rust,
            Some("py") => Self::Python,
            Some("pyi") => Self::Stub,
            Some("sh") => Self::Shell,
            Some("md") => Self::Page,
            Some("toml" | "yaml" | "yml" | "cfg" | "editorconfig" | "gitignore") => Self::Settings,
            _ if name == "Makefile" => Self::Settings,
            _ if text.starts_with("#!") => Self::Shell,
            _ => Self::Other,
        }
    }

    /// What the beginning of the file lacks.
    fn missing_doc(self, text: &str) -> Option<&'static str> {
        let after_shebang = match text.strip_prefix("#!") {
            Some(rest) if self != Self::Rust => rest.split_once('\n').map_or("", |(_, rest)| rest),
            _ => text,
        };
        let docstring = ["\"\"\"", "r\"\"\""].iter().any(|q| after_shebang.starts_with(q));
        match self {
            Self::Rust if !text.starts_with("//! ") => Some("line 1 is not a `//!` doc"),
            Self::Python if !docstring => Some("line 1 is not a docstring"),
            Self::Stub if !docstring && !text.starts_with("# ") => {
                Some("line 1 is neither a docstring nor a comment that says what this is")
            }
            Self::Shell if !text.starts_with("#!") => Some("line 1 is not a `#!` line"),
            Self::Shell if !after_shebang.starts_with("# ") => {
                Some("line 2 is not a comment that says what this does")
            }
            Self::Page if !text.starts_with("# ") => Some("line 1 is not a title"),
            _ => None,
        }
    }
}

/// What is wrong with one line.
fn line_faults(kind: Kind, line: &str) -> impl Iterator<Item = String> {
    let columns = line.chars().count();
    let table_row = match kind {
        Kind::Page => line.starts_with('|'),
        Kind::Rust => line.starts_with("//! |"),
        _ => false,
    };
    let long = (columns > COLUMNS_MAX && !table_row)
        .then(|| format!("{columns} columns, at most {COLUMNS_MAX}"));
    let unfinished = UNFINISHED
        .iter()
        .find(|note| has_word(line, note))
        .map(|note| format!("a note of unfinished work ({note}): finish it, or open an issue"));
    let machine = MACHINE_FOLDERS
        .iter()
        .find(|folder| has_absolute_path(line, folder))
        .map(|folder| format!("an absolute path of one machine (/{folder}/...)"));
    let blank = (line.ends_with([' ', '\t'])).then(|| "blanks at the end of the line".to_owned());
    [long, unfinished, machine, blank].into_iter().flatten()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `note` stands in the line as a word of its own.
fn has_word(line: &str, note: &str) -> bool {
    line.match_indices(note).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + note.len()..].chars().next();
        let ends_in_word = note.ends_with(is_word);
        !(before.is_some_and(is_word) || ends_in_word && after.is_some_and(is_word))
    })
}

/// Whether an absolute path that begins with this folder stands in the line.
fn has_absolute_path(line: &str, folder: &str) -> bool {
    line.match_indices(&format!("/{folder}/")).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| is_word(c) || "./-*})>$".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;

    #[test]
    fn line_one_is_a_doc() {
        assert_eq!(said(check, &[("a.rs", "//! Doc.\n"), ("b.py", "\"\"\"Doc.\"\"\"\n")]), [""; 0]);
        assert_eq!(said(check, &[("a.rs", "use x;\n")]), ["a.rs:1: line 1 is not a `//!` doc"]);
        assert_eq!(said(check, &[("a.py", "import x\n")]), ["a.py:1: line 1 is not a docstring"]);
        assert_eq!(said(check, &[("a.py", "#!/usr/bin/env python3\n\"\"\"D.\"\"\"\n")]), [""; 0]);
        assert_eq!(said(check, &[("a.pyi", "def f() -> int: ...\n")]).len(), 1);
        assert_eq!(said(check, &[("run", "#!/bin/sh\nset -e\n")]).len(), 1);
        assert_eq!(said(check, &[("run", "#!/bin/sh\n# Runs.\nset -e\n")]), [""; 0]);
        assert_eq!(said(check, &[("a.md", "text\n")]), ["a.md:1: line 1 is not a title"]);
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let fits = format!("//! {}\n", "é".repeat(96));
        let long = format!("//! {}\n", "é".repeat(97));
        assert_eq!(said(check, &[("a.rs", &fits)]), [""; 0]);
        assert_eq!(said(check, &[("a.rs", &long)]), ["a.rs:1: 101 columns, at most 100"]);
        let row = format!("# T\n\n| {} |\n", "x".repeat(120));
        assert_eq!(said(check, &[("a.md", &row)]), [""; 0], "a table row cannot be broken");
        let row = format!("//! D.\n//! | {} |\n", "x".repeat(120));
        assert_eq!(said(check, &[("a.rs", &row)]), [""; 0], "nor can one in a module's doc");
    }

    #[test]
    fn files_have_800_lines_at_most() {
        let fits = format!("//! Doc.\n{}", "// x\n".repeat(799));
        let long = format!("{fits}// x\n");
        assert_eq!(said(check, &[("a.rs", &fits)]), [""; 0]);
        assert_eq!(said(check, &[("a.rs", &long)]).len(), 1);
    }

    #[test]
    fn unfinished_work_is_named() {
        for note in UNFINISHED {
            let text = format!("//! Doc.\n// {note}: later\n");
            assert_eq!(said(check, &[("a.rs", &text)]).len(), 1, "{note}");
        }
        let harmless = format!("//! A {}M and a {}X.\n", UNFINISHED[0], UNFINISHED[2]);
        assert_eq!(said(check, &[("a.rs", &harmless)]), [""; 0]);
    }

    #[test]
    fn paths_of_one_machine_are_named() {
        for folder in MACHINE_FOLDERS {
            let text = format!("//! Doc.\nlet p = \"/{folder}/x\";\n");
            assert_eq!(said(check, &[("a.rs", &text)]).len(), 1, "{folder}");
            let inside = format!("//! See src/{folder}/x and $R/{folder}/y.\n");
            assert_eq!(said(check, &[("a.rs", &inside)]), [""; 0], "{folder}");
        }
    }

    #[test]
    fn blanks_at_the_end_are_named() {
        assert_eq!(said(check, &[("a.rs", "//! Doc. \n")]).len(), 1);
    }
}
