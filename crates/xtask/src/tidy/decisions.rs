//! Decision files: numbered without gaps, each with its four headings in order.

use super::Violation;
use crate::tree::Tree;

const FOLDER: &str = "docs/decisions/";
const HEADINGS: [&str; 4] =
    ["## Objective", "## Design", "## Alternatives", "## How it was tested"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let pages = tree.files().filter_map(|(path, text)| {
        let name = path.strip_prefix(FOLDER)?;
        (name != "README.md").then_some((path, name, text))
    });
    for (expected, (path, name, text)) in (1..).zip(pages) {
        if !name.starts_with(&format!("{expected:04}-")) || !name.ends_with(".md") {
            let what = format!("is not the next decision: {expected:04}-some-words.md");
            found.push(Violation::file(path, what));
        }
        let headings: Vec<_> = text.lines().filter(|line| line.starts_with("## ")).collect();
        if headings != HEADINGS {
            let what = format!("its headings are not exactly {}", HEADINGS.join(", "));
            found.push(Violation::file(path, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;

    const GOOD: &str = "# 1\n## Objective\n## Design\n## Alternatives\n## How it was tested\n";

    #[test]
    fn whole_decisions_pass() {
        let pages = [
            ("docs/decisions/0001-a.md", GOOD),
            ("docs/decisions/0002-b.md", GOOD),
            ("docs/decisions/README.md", "# Index\n"),
        ];
        assert_eq!(said(check, &pages), [""; 0]);
    }

    #[test]
    fn gaps_and_missing_headings_are_named() {
        let gap = [("docs/decisions/0001-a.md", GOOD), ("docs/decisions/0003-b.md", GOOD)];
        assert_eq!(said(check, &gap).len(), 1);
        let half = GOOD.replace("## Alternatives\n", "");
        assert_eq!(said(check, &[("docs/decisions/0001-a.md", &half)]).len(), 1);
    }
}
