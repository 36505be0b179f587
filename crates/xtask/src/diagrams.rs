//! Draws `docs/states.md` from the scheduler's transition table.
//!
//! The moves come from [`sched::TRANSITIONS`] itself, what the names mean from the doc comments
//! beside them in the source, so the page cannot say anything that the scheduler does not do.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::Path;

use sched::{State, Transition, TRANSITIONS};

/// Where the page is.
pub const PAGE: &str = "docs/states.md";

const SOURCE: &str = "crates/sched/src/transitions.rs";

const HEAD: &str = "\
# The life of a task

Drawn by `make diagrams` from the transition table in
[transitions.rs](../crates/sched/src/transitions.rs); `make tidy` fails when this page is not what
the table says. A move that is not here does not exist: the scheduler stops with the task's story
when one is asked for.
";

/// The page as the table wants it now.
pub fn page(root: &Path) -> io::Result<String> {
    let source = std::fs::read_to_string(root.join(SOURCE))?;
    let meanings = meanings(&source).map_err(io::Error::other)?;
    Ok(format!("{HEAD}\n{}\n{}", diagram(TRANSITIONS), tables(TRANSITIONS, &meanings)))
}

/// The doc comment of every variant, by enum and variant.
fn meanings(source: &str) -> Result<BTreeMap<(String, String), String>, syn::Error> {
    let mut found = BTreeMap::new();
    for item in syn::parse_file(source)?.items {
        let syn::Item::Enum(item) = item else { continue };
        for variant in item.variants {
            let key = (item.ident.to_string(), variant.ident.to_string());
            found.insert(key, doc(&variant.attrs));
        }
    }
    Ok(found)
}

/// The text of a doc comment on one line.
fn doc(attributes: &[syn::Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>().join(" ")
}

/// States that no move leaves.
fn is_final(table: &[Transition], state: State) -> bool {
    table.iter().all(|line| line.from != state)
}

/// States that no move leads to.
fn is_first(table: &[Transition], state: State) -> bool {
    table.iter().all(|line| line.to != state)
}

/// Every state of the table, once, in order of their declaration.
fn states(table: &[Transition]) -> Vec<State> {
    let mut states: Vec<_> = table.iter().flat_map(|line| [line.from, line.to]).collect();
    states.sort();
    states.dedup();
    states
}

fn diagram(table: &[Transition]) -> String {
    let mut text = String::from("```mermaid\nstateDiagram-v2\n");
    for state in states(table) {
        if is_first(table, state) {
            let _ = writeln!(text, "    [*] --> {state}");
        }
    }
    for line in table {
        let _ = writeln!(text, "    {} --> {}: {}", line.from, line.to, line.input);
    }
    for state in states(table) {
        if is_final(table, state) {
            let _ = writeln!(text, "    {state} --> [*]");
        }
    }
    text + "```\n"
}

fn tables(table: &[Transition], meanings: &BTreeMap<(String, String), String>) -> String {
    let meaning = |kind: &str, name: String| {
        meanings.get(&(kind.to_owned(), name)).cloned().unwrap_or_default()
    };
    let mut text = String::from("| state | meaning |\n|---|---|\n");
    for state in states(table) {
        let _ = writeln!(text, "| {state} | {} |", meaning("State", state.to_string()));
    }
    text += "\n| from | moved by | to | because |\n|---|---|---|---|\n";
    for line in table {
        let because = meaning("Input", line.input.to_string());
        let _ = writeln!(text, "| {} | {} | {} | {because} |", line.from, line.input, line.to);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_move_is_drawn_and_explained() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = page(&root).unwrap();
        for line in TRANSITIONS {
            let arrow = format!("    {} --> {}: {}\n", line.from, line.to, line.input);
            assert!(page.contains(&arrow), "{arrow}");
        }
        assert!(!page.contains("|  |"), "a name without a meaning:\n{page}");
    }

    #[test]
    fn docs_of_variants_are_joined() {
        let source = "enum E {\n/// One\n/// two.\nA,\n#[allow(x)]\nB }";
        let found = meanings(source).unwrap();
        assert_eq!(found[&("E".to_owned(), "A".to_owned())], "One two.");
        assert_eq!(found[&("E".to_owned(), "B".to_owned())], "");
    }
}
