//! Which crate may use which, read from the manifests; and the purity of the pure crates.

use toml::{Table, Value};

use super::Violation;
use crate::tree::Tree;

/// Each crate of the workspace, in flow order, and the crates of ours that it may use.
const ALLOWED: [(&str, &[&str]); 12] = [
    ("graph", &[]),
    ("sched", &["graph"]),
    ("ops", &[]),
    ("engine", &["ops"]),
    ("exec", &["ops"]),
    ("runtime", &["graph", "sched", "ops", "engine", "exec"]),
    ("sim", &["graph", "sched", "ops"]),
    ("capi", &["runtime"]),
    ("preload", &["runtime"]),
    ("vol", &["runtime"]),
    ("pybind", &["runtime"]),
    ("xtask", &["sim", "sched", "runtime"]),
];

/// Crates with no thread, no clock, no file and no randomness of their own.
const PURE: [&str; 2] = ["graph", "sched"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.files() {
        let Some(name) = crate_of(path) else { continue };
        match ALLOWED.iter().find(|(known, _)| *known == name) {
            None => {
                let what = "a crate without a place in the order: see ALLOWED in tidy/edges.rs";
                found.push(Violation::file(path, what));
            }
            Some((_, allowed)) => found.extend(manifest_faults(path, text, name, allowed)),
        }
    }
    found.extend(PURE.iter().flat_map(|name| purity_faults(tree, name)));
    found
}

/// The crate whose manifest this is.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|name| !name.contains('/'))
}

fn manifest_faults(path: &str, text: &str, name: &str, allowed: &[&str]) -> Vec<Violation> {
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Violation::file(path, format!("is not TOML: {error}"))],
    };
    let mut used = Vec::new();
    ours(&manifest, &mut used);
    let line_of = |used: &str| {
        let key = |line: &str| line.split(['=', '.', ' ']).next() == Some(used);
        let package = format!("alongside-{used}");
        (1..).zip(text.lines()).find(|(_, l)| key(l) || l.contains(&package)).map_or(1, |l| l.0)
    };
    let mut found: Vec<_> = used
        .iter()
        .filter(|used| !allowed.contains(&used.as_str()))
        .map(|used| {
            let allowed = if allowed.is_empty() { "none".into() } else { allowed.join(", ") };
            let what = format!("{name} may not use {used} (allowed: {allowed})");
            Violation::at(path, line_of(used), what)
        })
        .collect();
    let inherits = manifest.get("lints").and_then(|l| l.get("workspace")) == Some(&true.into());
    if !inherits {
        found.push(Violation::file(path, "does not say `[lints] workspace = true`"));
    }
    found
}

/// Collects the crates of ours in every table of dependencies, also under `[target]`.
fn ours(table: &Table, used: &mut Vec<String>) {
    for (key, value) in table {
        let Value::Table(inner) = value else { continue };
        if key.ends_with("dependencies") {
            used.extend(inner.iter().filter_map(|(name, spec)| our_name(name, spec)));
        } else {
            ours(inner, used);
        }
    }
}

/// The folder of a dependency of ours, by its package name or its path.
fn our_name(name: &str, spec: &Value) -> Option<String> {
    let package = spec.get("package").and_then(Value::as_str).unwrap_or(name);
    let folder = spec.get("path").and_then(Value::as_str).and_then(|p| p.rsplit('/').next());
    package.strip_prefix("alongside-").or(folder).map(str::to_owned)
}

fn purity_faults(tree: &Tree, name: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = format!("crates/{name}/src/lib.rs");
    let Some(text) = tree.text(&root) else { return found };
    if !text.lines().any(|line| line.trim() == "#![no_std]") {
        found.push(Violation::file(&root, "a pure crate does not say `#![no_std]`"));
    }
    let bans = format!("crates/{name}/clippy.toml");
    if tree.text(&bans).is_none_or(|bans| !bans.contains("std::time::Instant")) {
        found.push(Violation::file(&bans, "a pure crate does not ban clocks, threads and files"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;

    const LINTS: &str = "[lints]\nworkspace = true\n";

    fn manifest(text: &str) -> String {
        format!("{LINTS}{text}")
    }

    #[test]
    fn allowed_edges_pass() {
        let text =
            manifest("[dependencies]\ngraph = { package = \"alongside-graph\" }\nlibc = \"1\"\n");
        assert_eq!(said(check, &[("crates/sched/Cargo.toml", &text)]), [""; 0]);
    }

    #[test]
    fn upward_edges_are_named_with_their_line() {
        for text in [
            "[dependencies]\nruntime = { package = \"alongside-runtime\", path = \"../r\" }\n",
            "[dev-dependencies]\nruntime = { path = \"../runtime\" }\n",
            "[dependencies.runtime]\npackage = \"alongside-runtime\"\n",
            "[target.'cfg(unix)'.build-dependencies]\nalongside-runtime = \"0.1\"\n",
        ] {
            let found = said(check, &[("crates/sched/Cargo.toml", &manifest(text))]);
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].contains("sched may not use runtime (allowed: graph)"), "{found:?}");
            assert!(found[0].starts_with("crates/sched/Cargo.toml:4:"), "{found:?}");
        }
    }

    #[test]
    fn an_unknown_crate_is_named() {
        assert_eq!(said(check, &[("crates/misc/Cargo.toml", LINTS)]).len(), 1);
    }

    #[test]
    fn lints_are_inherited() {
        assert_eq!(said(check, &[("crates/exec/Cargo.toml", "[package]\n")]).len(), 1);
    }

    #[test]
    fn pure_crates_are_kept_pure() {
        let bans = "disallowed-types = [\"std::time::Instant\"]\n";
        let lib = ("crates/graph/src/lib.rs", "//! Doc.\n#![no_std]\n");
        assert_eq!(said(check, &[lib, ("crates/graph/clippy.toml", bans)]), [""; 0]);
        assert_eq!(said(check, &[lib]).len(), 1, "no bans");
        let std = ("crates/graph/src/lib.rs", "//! Doc.\n");
        assert_eq!(said(check, &[std, ("crates/graph/clippy.toml", bans)]).len(), 1, "std");
    }
}
