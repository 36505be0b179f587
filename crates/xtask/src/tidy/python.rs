//! As much of Python's grammar as the rules need: logical lines, functions, imports.
//!
//! A logical line ends at the first line break outside brackets and strings. That is enough to
//! find where a function ends (the last logical line that is indented deeper than its `def`)
//! and what a module imports, without a parser.

/// One logical line: its strings are emptied and its comments are gone.
pub struct Logical {
    /// Its first line, counted from 1.
    pub first: usize,
    /// Its last line.
    pub last: usize,
    /// Columns before its first character.
    pub indent: usize,
    /// What stands there.
    pub text: String,
}

/// A function and where it stands.
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `def`.
    pub first: usize,
    /// The last line of its body.
    pub last: usize,
}

/// All logical lines of a module.
pub fn logical_lines(text: &str) -> Vec<Logical> {
    let mut reader = Reader { rest: text, line: 1, depth: 0 };
    let mut lines = Vec::new();
    while !reader.rest.is_empty() {
        let indent = reader.rest.len() - reader.rest.trim_start_matches([' ', '\t']).len();
        reader.rest = &reader.rest[indent..];
        let first = reader.line;
        let (text, last) = reader.logical_line();
        if !text.trim().is_empty() {
            lines.push(Logical { first, last, indent, text: text.trim().to_owned() });
        }
    }
    lines
}

/// The functions of a module, nested ones too.
pub fn functions(lines: &[Logical]) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let head = line.text.strip_prefix("async ").unwrap_or(&line.text).trim_start();
        let Some(signature) = head.strip_prefix("def ") else { continue };
        let name = signature.split('(').next().unwrap_or_default().trim().to_owned();
        let body = lines[at + 1..].iter().take_while(|l| l.indent > line.indent).last();
        found.push(Function { name, first: line.first, last: body.map_or(line.last, |l| l.last) });
    }
    found
}

/// The dotted names that a module imports; `package` is the one that it is in, for relative
/// imports. `from a import b` gives `a` and `a.b`.
pub fn imports(lines: &[Logical], package: &str) -> Vec<String> {
    let mut found = Vec::new();
    for statement in lines.iter().flat_map(|line| line.text.split(';')) {
        // An import may follow a colon on one line (`if TYPE_CHECKING: import x`).
        let statement = statement.rsplit(": ").next().unwrap_or(statement).trim();
        if let Some(names) = statement.strip_prefix("import ") {
            found.extend(names.split(',').map(first_word));
        } else if let Some((from, names)) =
            statement.strip_prefix("from ").and_then(|s| s.split_once(" import "))
        {
            let from = absolute(from.trim(), package);
            let names = names.trim_matches(['(', ')', ' ']);
            found.extend(names.split(',').map(|name| format!("{from}.{}", first_word(name))));
            found.push(from);
        }
    }
    found
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

/// The absolute name behind a relative one such as `..storage`.
fn absolute(from: &str, package: &str) -> String {
    let name = from.trim_start_matches('.');
    let dots = from.len() - name.len();
    if dots == 0 {
        return name.to_owned();
    }
    let mut parts: Vec<_> = package.split('.').collect();
    parts.truncate(parts.len().saturating_sub(dots - 1));
    parts.extend((!name.is_empty()).then_some(name));
    parts.join(".")
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    depth: usize,
}

impl Reader<'_> {
    /// Reads up to and with the line break that ends the logical line; gives its text and the
    /// line that it ends on.
    fn logical_line(&mut self) -> (String, usize) {
        let mut text = String::new();
        while let Some(c) = self.rest.chars().next() {
            match c {
                '#' => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                    continue;
                }
                '"' | '\'' => {
                    self.string(c);
                    text.push_str("\"\"");
                    continue;
                }
                '(' | '[' | '{' => self.depth += 1,
                ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
                '\\' if self.rest[1..].starts_with('\n') => {
                    self.step();
                    self.step();
                    text.push(' ');
                    continue;
                }
                _ => {}
            }
            let ended_on = self.line;
            self.step();
            if c == '\n' && self.depth == 0 {
                return (text, ended_on);
            }
            text.push(if c == '\n' { ' ' } else { c });
        }
        (text, self.line)
    }

    /// Skips one character.
    fn step(&mut self) {
        let c = self.rest.chars().next().unwrap_or_default();
        self.line += usize::from(c == '\n');
        self.rest = &self.rest[c.len_utf8().min(self.rest.len())..];
    }

    /// Skips a string, single or triple quoted.
    fn string(&mut self, quote: char) {
        let triple = String::from(quote).repeat(3);
        let close = if self.rest.starts_with(&triple) { triple } else { quote.to_string() };
        self.rest = &self.rest[close.len()..];
        while !self.rest.is_empty() && !self.rest.starts_with(&close) {
            if self.rest.starts_with('\\') {
                self.step();
            }
            self.step();
        }
        self.rest = self.rest.strip_prefix(&close).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_end_where_their_body_ends() {
        let text = concat!(
            "\"\"\"Doc: def no().\"\"\"\n",
            "@decorated\n",
            "async def outer(\n    a,\n    b=(1, 2),\n):\n",
            "    x = '''\n# not a comment\ndef nor_this():\n'''\n",
            "    def inner(): return {\n        1: ')'\n    }\n",
            "    y = 1 + \\\n        2\n",
            "\n",
            "# a comment after it\n",
            "z = 1\n",
        );
        let lines = logical_lines(text);
        let found: Vec<_> =
            functions(&lines).into_iter().map(|f| (f.name, f.first, f.last)).collect();
        assert_eq!(found, [("outer".into(), 3, 15), ("inner".into(), 11, 13)]);
        assert_eq!(lines.last().map(|l| (l.first, l.text.as_str())), Some((18, "z = 1")));
    }

    #[test]
    fn imports_are_made_absolute() {
        let text = concat!(
            "import os, a.b as c\n",
            "from . import (\n    one,  # why\n    two as too,\n)\n",
            "from ..up import x\n",
            "from .near.by import y\n",
            "if TYPE_CHECKING: import typed\n",
            "s = 'import nothing'\n",
        );
        let found = imports(&logical_lines(text), "pkg.sub");
        for name in
            ["os", "a.b", "pkg.sub.one", "pkg.sub.two", "pkg.up", "pkg.sub.near.by", "typed"]
        {
            assert!(found.iter().any(|f| f == name), "{name} in {found:?}");
        }
        assert!(!found.iter().any(|f| f.contains("nothing")), "{found:?}");
    }

    #[test]
    fn escaped_quotes_do_not_end_a_string() {
        let lines = logical_lines("a = 'it\\'s # (' # c (\nb = r\"\\\"\"\nc = 1");
        let texts: Vec<_> = lines.iter().map(|l| l.text.as_str()).collect();
        assert_eq!(texts, ["a = \"\"", "b = r\"\"", "c = 1"]);
    }
}
