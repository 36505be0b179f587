//! Pages that no chain of links from `README.md` reaches, links to nowhere, unused pictures.

use std::collections::BTreeSet;

use super::dead_rust::normal;
use super::Violation;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut reached = BTreeSet::new();
    let mut waiting = vec!["README.md".to_owned()];
    while let Some(page) = waiting.pop() {
        if !reached.insert(page.clone()) || !page.ends_with(".md") {
            continue;
        }
        for (line, target) in links(tree.text(&page).unwrap_or_default()) {
            let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
            let target_path = normal(&format!("{folder}/{target}"));
            if !tree.has(&target_path) {
                found.push(Violation::at(&page, line, format!("a link to nowhere: {target}")));
            } else if tree.text(&target_path).is_some() {
                waiting.push(target_path);
            } else {
                waiting.push(format!("{target_path}/README.md"));
            }
        }
    }
    for (path, _) in tree.files() {
        let must_be_linked = path.ends_with(".md") || path.starts_with("docs/");
        if must_be_linked && !reached.contains(path) {
            found.push(Violation::file(path, "a dead page: no links lead here from README.md"));
        }
    }
    found
}

/// The relative links of a page with their lines; fenced code is passed over.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split([')', '#', ' ']).next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !target.is_empty() {
                found.push((number, target));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;

    const README: &str = "# T\nSee [docs](docs/) and [code](crates/c/README.md#top).\n\
        [web](https://example.org) [here](#there)\n```\n[no](nowhere.md)\n```\n";

    fn tree(extra: &'static str, text: &'static str) -> Vec<(&'static str, &'static str)> {
        vec![
            ("README.md", README),
            ("docs/README.md", "# D\n![picture](picture.svg) [up](../README.md)\n"),
            ("docs/picture.svg", ""),
            ("crates/c/README.md", "# C\n"),
            (extra, text),
        ]
    }

    #[test]
    fn linked_pages_live() {
        assert_eq!(said(check, &tree("src.txt", "")), [""; 0]);
    }

    #[test]
    fn unlinked_pages_and_pictures_are_dead() {
        for dead in ["docs/other.md", "OTHER.md", "docs/unused.svg"] {
            let expected = format!("{dead}:1: a dead page: no links lead here from README.md");
            assert_eq!(said(check, &tree(dead, "# O\n")), [expected]);
        }
    }

    #[test]
    fn links_to_nowhere_are_named() {
        let page = "# C\n\n[gone](../../docs/gone.md)\n";
        let found = said(check, &tree("crates/c/README.md", page));
        assert_eq!(found, ["crates/c/README.md:3: a link to nowhere: ../../docs/gone.md"]);
    }
}
