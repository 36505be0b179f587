//! Style as a test: each rule is a function from the tree to violations, in a file of its own.
//!
//! | file | rules |
//! |---|---|
//! | `text` | line 1 doc, columns, file length, notes of unfinished work, paths of one machine |
//! | `functions` | function length, Rust and Python |
//! | `edges` | which crate may use which; purity of the pure ones |
//! | `dead_rust`, `dead_python`, `dead_pages` | files that nothing reaches; links to nowhere |
//! | `decisions` | numbers and headings of `docs/decisions/` |
//!
//! There is no list of exceptions. A rule that is wrong is changed here, with its test.

mod dead_pages;
mod dead_python;
mod dead_rust;
mod decisions;
mod edges;
mod functions;
mod python;
mod text;

use crate::tree::Tree;

/// One place that breaks one rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    path: String,
    line: usize,
    what: String,
}

impl Violation {
    fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }

    fn file(path: &str, what: impl Into<String>) -> Self {
        Self::at(path, 1, what)
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Every violation in the tree, in order of place.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let rules = [
        text::check,
        functions::check,
        edges::check,
        dead_rust::check,
        dead_python::check,
        dead_pages::check,
        decisions::check,
    ];
    let mut found: Vec<_> = rules.iter().flat_map(|rule| rule(tree)).collect();
    found.extend(tree.empty_folders().map(|folder| Violation::file(folder, "an empty folder")));
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a rule says about a tree, as lines.
    pub(super) fn said(rule: fn(&Tree) -> Vec<Violation>, files: &[(&str, &str)]) -> Vec<String> {
        rule(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_rule_has_its_say() {
        let tidy = [
            ("README.md", "# T\n[decision](docs/decisions/0001-a.md) [script](run.py)\n"),
            (
                "docs/decisions/0001-a.md",
                "# 1\n## Objective\n## Design\n## Alternatives\n## How it was tested\n",
            ),
            ("run.py", "\"\"\"Doc.\"\"\"\n"),
            ("crates/graph/Cargo.toml", "[lints]\nworkspace = true\n"),
            ("crates/graph/clippy.toml", "disallowed-types = [\"std::time::Instant\"]\n"),
            ("crates/graph/src/lib.rs", "//! Doc.\n#![no_std]\n"),
        ];
        assert_eq!(check(&Tree::of(&tidy)), []);
        let long = format!("//! D.\nfn f() {{\n{}}}\n", "    g();\n".repeat(70));
        let breaches = [
            ("loose.py", "\"\"\"Doc.\"\"\"\n"),
            ("README.md", "# T\n[gone](gone.md)\n"),
            ("docs/decisions/0002-b.md", "# 2\n"),
            ("run.py", "print()\n"),
            (
                "crates/graph/Cargo.toml",
                "[lints]\nworkspace = true\n[dependencies]\nsched = { path = \"../sched\" }\n",
            ),
            ("crates/graph/src/other.rs", "//! Doc.\n"),
            ("crates/graph/src/lib.rs", long.as_str()),
        ];
        for breach in breaches {
            let kept = tidy.iter().filter(|(path, _)| *path != breach.0);
            let files: Vec<_> = kept.copied().chain([breach]).collect();
            assert_ne!(check(&Tree::of(&files)), [], "{breach:?}");
        }
    }
}
