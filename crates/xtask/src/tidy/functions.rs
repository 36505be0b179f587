//! Functions of 70 lines at most, from the line of their name to their last line.

use syn::visit::Visit;

use super::{python, Violation};
use crate::tree::Tree;

const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.files()
        .flat_map(|(path, text)| match path.rsplit_once('.') {
            Some((_, "rs")) => rust(path, text),
            Some((_, "py")) => in_python(path, text),
            _ => Vec::new(),
        })
        .collect()
}

fn too_long(path: &str, name: &str, first: usize, last: usize) -> Option<Violation> {
    let lines = last - first + 1;
    (lines > FUNCTION_LINES_MAX).then(|| {
        let what = format!("function {name} has {lines} lines, at most {FUNCTION_LINES_MAX}");
        Violation::at(path, first, what)
    })
}

fn in_python(path: &str, text: &str) -> Vec<Violation> {
    python::functions(&python::logical_lines(text))
        .iter()
        .filter_map(|f| too_long(path, &f.name, f.first, f.last))
        .collect()
}

fn rust(path: &str, text: &str) -> Vec<Violation> {
    let file = match syn::parse_file(text) {
        Ok(file) => file,
        Err(error) => {
            let line = error.span().start().line;
            return vec![Violation::at(path, line, format!("is not Rust: {error}"))];
        }
    };
    let mut finder = Finder { path, found: Vec::new() };
    finder.visit_file(&file);
    finder.found
}

struct Finder<'a> {
    path: &'a str,
    found: Vec<Violation>,
}

impl Finder<'_> {
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        self.found.extend(too_long(self.path, &signature.ident.to_string(), first, last));
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;

    fn body(lines: usize) -> String {
        "        let _x = 1;\n".repeat(lines)
    }

    #[test]
    fn rust_functions_of_every_place_are_measured() {
        for (before, after) in [
            ("fn f() {\n", "}\n"),
            ("/// Doc.\n#[inline]\npub const fn f() {\n", "}\n"),
            ("impl S { fn f() {\n", "}\n}\n"),
            ("trait T { fn f() {\n", "}\n}\n"),
            ("mod m { fn outer() { fn f() {\n", "} } }\n"),
        ] {
            let fits = format!("{before}{}{after}", body(68));
            let long = format!("{before}{}{after}", body(69));
            assert_eq!(said(check, &[("a.rs", &fits)]), [""; 0], "{before}");
            let found = said(check, &[("a.rs", &long)]);
            assert!(found.iter().any(|f| f.contains("f has 71 lines")), "{before} {found:?}");
        }
    }

    #[test]
    fn python_functions_are_measured() {
        let fits = format!("def f():\n{}\n\nx = 1\n", body(69));
        let long = format!("def f():\n{}\n\nx = 1\n", body(70));
        assert_eq!(said(check, &[("a.py", &fits)]), [""; 0]);
        assert_eq!(
            said(check, &[("a.py", &long)]),
            ["a.py:1: function f has 71 lines, at most 70"]
        );
    }

    #[test]
    fn what_does_not_parse_is_said() {
        assert_eq!(said(check, &[("a.rs", "fn f( {\n")]).len(), 1);
    }
}
