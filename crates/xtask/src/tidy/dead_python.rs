//! Python files that nothing imports, runs or names.
//!
//! In the package: a module lives if the package itself, its `__main__`, or a module that is
//! named in full (`alongside.x`) by the settings, the Rust sources or a page leads to it by
//! imports. Elsewhere: a file lives if pytest collects it, if another file imports it, or if a
//! page, the Makefile, the settings or another script names it.

use std::collections::{BTreeMap, BTreeSet};

use super::{python, Violation};
use crate::tree::Tree;

const PACKAGE_FOLDER: &str = "python/";
const PACKAGE: &str = "alongside";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = dead_modules(tree);
    found.extend(dead_scripts(tree));
    found.extend(dead_stubs(tree));
    found
}

/// The dotted name of a module of the package.
fn dotted(path: &str) -> Option<String> {
    let inside = path.strip_prefix(PACKAGE_FOLDER)?.strip_suffix(".py")?;
    Some(inside.strip_suffix("/__init__").unwrap_or(inside).replace('/', "."))
}

/// The package that a module is in: itself, for an `__init__.py`.
fn package_of(path: &str, name: &str) -> String {
    let inside = if path.ends_with("/__init__.py") { Some(name) } else { None };
    inside.or(name.rsplit_once('.').map(|(package, _)| package)).unwrap_or_default().to_owned()
}

fn dead_modules(tree: &Tree) -> Vec<Violation> {
    let modules: BTreeMap<_, _> =
        tree.files().filter_map(|(path, text)| Some((dotted(path)?, (path, text)))).collect();
    let is_outside = |path: &str| {
        path.ends_with(".rs")
            || path.ends_with(".md")
            || path == "pyproject.toml"
            || path == "Makefile"
    };
    let outside: Vec<_> = tree.files().filter(|(path, _)| is_outside(path)).collect();
    let mut waiting: Vec<String> = modules
        .keys()
        .filter(|name| {
            *name == PACKAGE
                || **name == format!("{PACKAGE}.__main__")
                || name.ends_with(".__main__")
                || outside.iter().any(|(_, text)| names(text, name))
        })
        .cloned()
        .collect();
    let mut reached = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let Some((path, text)) = modules.get(&name) else { continue };
        if !reached.insert(name.clone()) {
            continue;
        }
        waiting.extend(python::imports(&python::logical_lines(text), &package_of(path, &name)));
        waiting.extend(modules.keys().filter(|other| loads(text, other)).cloned());
        waiting.extend(name.rsplit_once('.').map(|(package, _)| package.to_owned()));
    }
    modules
        .iter()
        .filter(|(name, _)| !reached.contains(*name))
        .map(|(_, (path, _))| Violation::file(path, "a dead module: nothing imports or names it"))
        .collect()
}

/// Whether a dotted name stands in the text in full, or its beginning in a formatted string,
/// as in `import_module(f"alongside.cli.{command}")`.
fn loads(text: &str, name: &str) -> bool {
    let least = name.find('.').map_or(name.len(), |dot| dot + 1);
    names(text, name)
        || (least..name.len()).any(|end| text.contains(&format!("f\"{}{{", &name[..end])))
}

/// Whether a name stands in the text as a word of its own.
fn names(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(|c| is_part(c) || c == '.' || c == '/') && !after.is_some_and(is_part)
    })
}

fn dead_scripts(tree: &Tree) -> Vec<Violation> {
    let scripts = tree.files().filter(|(path, _)| path.ends_with(".py") && dotted(path).is_none());
    let imported: BTreeSet<_> = tree
        .files()
        .filter(|(path, _)| path.ends_with(".py"))
        .flat_map(|(path, text)| {
            let package = path.rsplit_once('/').map_or("", |(folder, _)| folder).replace('/', ".");
            python::imports(&python::logical_lines(text), &package)
                .into_iter()
                .map(move |name| (path, name))
        })
        .collect();
    let lives = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let module = path.trim_end_matches(".py").replace('/', ".");
        let stem = name.trim_end_matches(".py");
        let collected = name.starts_with("test_") || name == "conftest.py";
        let entry = name == "__main__.py" || name == "__init__.py";
        collected
            || entry
            || imported.iter().any(|(from, import)| {
                *from != path
                    && (import == stem
                        || *import == module
                        || module.ends_with(&format!(".{import}")))
            })
            || tree.files().any(|(from, text)| {
                let is_named = names(text, name) || loads(text, &module);
                from != path && !from.ends_with(".rs") && is_named
            })
            || names_path(tree, path)
    };
    scripts
        .filter(|(path, _)| !lives(path))
        .map(|(path, _)| Violation::file(path, "a dead script: nothing imports, runs or names it"))
        .collect()
}

/// Whether another file names this one by its path from the root, or by `folder/name`.
fn names_path(tree: &Tree, path: &str) -> bool {
    let mut parts = path.rsplitn(3, '/');
    let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let short = format!("{folder}/{name}");
    tree.files().any(|(from, text)| from != path && text.contains(&short))
}

/// A stub without its module: neither a file beside it nor the built one.
fn dead_stubs(tree: &Tree) -> Vec<Violation> {
    let settings = tree.text("pyproject.toml").unwrap_or_default();
    tree.files()
        .filter(|(path, _)| path.ends_with(".pyi"))
        .filter(|(path, _)| {
            let source = path.trim_end_matches('i');
            let built = dotted(source).is_some_and(|name| names(settings, &name));
            tree.text(source).is_none() && !built
        })
        .map(|(path, _)| Violation::file(path, "a dead stub: there is no such module"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;

    fn tree(extra: &'static str) -> Vec<(&'static str, &'static str)> {
        vec![
            (
                "pyproject.toml",
                "alongside = \"alongside.cli:main\"\nmodule-name = \"alongside._native\"",
            ),
            ("crates/exec/src/process.rs", "// runs python -m alongside._worker\n"),
            ("python/alongside/__init__.py", "from .task import task\n"),
            ("python/alongside/task.py", "from alongside import errors\n"),
            ("python/alongside/errors.py", ""),
            ("python/alongside/_worker.py", "import alongside.wire as wire\n"),
            ("python/alongside/wire.py", ""),
            ("python/alongside/_native.pyi", ""),
            ("python/alongside/cli/__init__.py", "import_module(f\"alongside.cli.{name}\")\n"),
            ("python/alongside/cli/run.py", ""),
            ("tests/python/test_a.py", "from helpers import x\n"),
            ("tests/python/helpers.py", ""),
            ("apps/hmmer/run.py", "import pairs\n"),
            ("apps/hmmer/pairs.py", ""),
            ("bench/peers/on_dask.py", "load('bench.peers.measure', f\"bench.peers.on_{peer}\")"),
            ("bench/peers/measure.py", "load(f\"bench.peers.on_{peer}\")"),
            ("Makefile", "demo:\n\tpython apps/hmmer/run.py\n"),
            (extra, ""),
        ]
    }

    #[test]
    fn used_files_live() {
        assert_eq!(said(check, &tree("tests/python/conftest.py")), [""; 0]);
    }

    #[test]
    fn unused_files_are_dead() {
        for dead in [
            "python/alongside/extra.py",
            "python/alongside/more/worker.py",
            "bench/peers/off_dask.py",
            "tests/python/more.py",
            "apps/hmmer/old.py",
            "python/alongside/gone.pyi",
        ] {
            let found = said(check, &tree(dead));
            assert_eq!(found.len(), 1, "{dead}: {found:?}");
            assert!(found[0].starts_with(&format!("{dead}:1: a dead")), "{found:?}");
        }
    }
}
