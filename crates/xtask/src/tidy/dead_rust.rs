//! Rust files that no crate root reaches by `mod` declarations.

use std::collections::BTreeSet;

use syn::{Item, Lit, Meta};
use toml::{Table, Value};

use super::Violation;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let sources: Vec<_> =
        tree.files().map(|(path, _)| path).filter(|p| p.ends_with(".rs")).collect();
    let mut reached = BTreeSet::new();
    for root in sources.iter().filter(|path| is_root(tree, path)) {
        reach(tree, root, true, &mut reached);
    }
    sources
        .iter()
        .filter(|path| !reached.contains(**path))
        .map(|path| Violation::file(path, "a dead file: no `mod` declaration reaches it"))
        .collect()
}

/// Whether Cargo compiles this file by itself.
fn is_root(tree: &Tree, path: &str) -> bool {
    let Some((crate_folder, inside)) = crate_folder(tree, path) else { return false };
    let parts: Vec<_> = inside.split('/').collect();
    match parts.as_slice() {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", _] | ["src", "bin", _, "main.rs"] => true,
        ["tests" | "benches" | "examples", _] => true,
        ["tests" | "benches" | "examples", _, "main.rs"] => true,
        _ => named_in_manifest(tree, crate_folder, &inside),
    }
}

/// The nearest folder above with a manifest of a package, and the path from there.
fn crate_folder<'a>(tree: &Tree, path: &'a str) -> Option<(&'a str, String)> {
    let mut folder = path;
    while let Some((up, _)) = folder.rsplit_once('/') {
        folder = up;
        if tree.text(&format!("{folder}/Cargo.toml")).is_some() {
            return Some((folder, path[folder.len() + 1..].to_owned()));
        }
    }
    None
}

/// Whether a target of the manifest has this path.
fn named_in_manifest(tree: &Tree, crate_folder: &str, inside: &str) -> bool {
    let text = tree.text(&format!("{crate_folder}/Cargo.toml")).unwrap_or_default();
    let manifest: Table = text.parse().unwrap_or_default();
    let path_of = |target: &Value| target.get("path").and_then(Value::as_str) == Some(inside);
    manifest.values().any(|value| match value {
        Value::Array(targets) => targets.iter().any(path_of),
        target => path_of(target),
    })
}

/// Marks a file and all that its `mod` declarations lead to.
fn reach(tree: &Tree, path: &str, is_root: bool, reached: &mut BTreeSet<String>) {
    let Some(text) = tree.text(path) else { return };
    if !reached.insert(path.to_owned()) {
        return;
    }
    let Ok(file) = syn::parse_file(text) else { return };
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let children = match name {
        "mod.rs" => folder.to_owned(),
        _ if is_root => folder.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    };
    for candidate in declared(&file.items, folder, &children) {
        reach(tree, &candidate, false, reached);
    }
}

/// The paths at which declared modules may be.
fn declared(items: &[Item], folder: &str, children: &str) -> Vec<String> {
    let mut found = Vec::new();
    for item in items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        match (&module.content, path_attribute(&module.attrs)) {
            (Some((_, inner)), _) => {
                found.extend(declared(inner, folder, &format!("{children}/{name}")));
            }
            (None, Some(path)) => found.push(normal(&format!("{folder}/{path}"))),
            (None, None) => {
                found.push(format!("{children}/{name}.rs"));
                found.push(format!("{children}/{name}/mod.rs"));
            }
        }
    }
    found
}

/// What `#[path = "..."]` says.
fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// A path without `.` and `..`.
pub(super) fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;

    const LIB: &str = "//! D.\nmod a;\nmod inline { mod deep; }\n#[path = \"odd/b.rs\"] mod b;\n";

    fn tree(extra: &'static str) -> Vec<(&'static str, &'static str)> {
        vec![
            ("crates/c/Cargo.toml", "[[test]]\npath = \"model/loom.rs\"\n"),
            ("crates/c/src/lib.rs", LIB),
            ("crates/c/src/a.rs", "mod inner;"),
            ("crates/c/src/a/inner.rs", ""),
            ("crates/c/src/inline/deep/mod.rs", "mod deeper;"),
            ("crates/c/src/inline/deep/deeper.rs", ""),
            ("crates/c/src/odd/b.rs", ""),
            ("crates/c/tests/t.rs", "mod common;"),
            ("crates/c/tests/common/mod.rs", ""),
            ("crates/c/model/loom.rs", ""),
            (extra, ""),
        ]
    }

    #[test]
    fn declared_files_live() {
        assert_eq!(said(check, &tree("crates/c/build.rs")), [""; 0]);
    }

    #[test]
    fn undeclared_files_are_dead() {
        for dead in [
            "crates/c/src/inner.rs",
            "crates/c/src/a/other.rs",
            "crates/c/tests/common/more.rs",
            "crates/c/model/other.rs",
            "loose.rs",
        ] {
            let expected = format!("{dead}:1: a dead file: no `mod` declaration reaches it");
            assert_eq!(said(check, &tree(dead)), [expected]);
        }
    }
}
