//! The interface as it is installed: its symbols and their versions, and programs that find it.

mod build;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use build::{crate_folder, scratch_folder};

/// Lines that `run` keeps of what a failing command said.
const SAID_LINES_MAX: usize = 30;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().take(SAID_LINES_MAX).collect();
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, said.join("\n"));
    String::from_utf8(output.stdout).expect("text")
}

/// The words of a text, and whatever is between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("*/").map_or("", |(_, rest)| rest))
}

/// Functions that the header declares and does not define.
fn declared() -> BTreeSet<String> {
    let path = crate_folder().join("include/alongside.h");
    let text = without_comments(&std::fs::read_to_string(path).expect("the header"));
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut names = BTreeSet::new();
    for statement in lines.join("\n").split([';', '{', '}']) {
        let inside = statement.trim();
        let skipped = ["static", "typedef", "return"];
        let Some((before, _)) = inside.split_once('(') else { continue };
        let name = words(before).last().unwrap_or_default();
        if name.starts_with("al_") && !skipped.iter().any(|word| inside.starts_with(word)) {
            names.insert(name.to_owned());
        }
    }
    names
}

/// Names of the map.
fn mapped() -> BTreeSet<String> {
    let path = crate_folder().join("alongside.map");
    let text = without_comments(&std::fs::read_to_string(path).expect("the map"));
    words(&text).filter(|word| word.starts_with("al_")).map(str::to_owned).collect()
}

/// A folder into which everything was installed, once.
fn installed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = scratch_folder().join("installed");
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let mut make = Command::new("make");
        make.arg("install").arg(format!("PREFIX={}", folder.display()));
        make.arg(format!("NATIVE_PROFILE={profile}")).env_remove("DESTDIR");
        // The make that may run this test hands its own flags on.
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        run(make.current_dir(crate_folder().join("../..")));
        folder
    })
}

#[test]
fn the_map_has_exactly_the_functions_of_the_header() {
    assert!(declared().len() > 30, "the header was not understood: {:?}", declared());
    assert_eq!(declared(), mapped());
}

#[test]
fn the_library_exports_exactly_what_the_map_says_with_its_version() {
    let library = installed().join("lib/libalongside.so");
    let symbols = run(Command::new("nm")
        .args(["-D", "--defined-only", "--with-symbol-versions"])
        .arg(library));
    let exported = symbols.lines().filter_map(|line| line.split_whitespace().last());
    let (functions, nodes): (BTreeSet<&str>, BTreeSet<&str>) =
        exported.partition(|name| name.contains("@@"));
    let expected = mapped().iter().map(|name| format!("{name}@@ALONGSIDE_0.1")).collect::<Vec<_>>();
    assert_eq!(functions, expected.iter().map(String::as_str).collect());
    assert_eq!(nodes, BTreeSet::from(["ALONGSIDE_0.1"]));
}

#[test]
fn programs_remember_the_library_by_its_major_version() {
    let library = installed().join("lib/libalongside.so");
    let dynamic = run(Command::new("readelf").arg("-d").arg(library));
    assert!(dynamic.contains("[libalongside.so.0]"), "{dynamic}");
}

#[test]
fn programs_find_an_installed_library_with_pkg_config() {
    let lib = installed().join("lib");
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--cflags", "--libs", "alongside"]);
    let flags = run(pkg_config.env("PKG_CONFIG_PATH", lib.join("pkgconfig")));
    for (compiler, source) in [("gcc", "overlap.c"), ("gcc", "stencil.c"), ("g++", "typed.cpp")] {
        let is_example = source.ends_with(".c");
        let folder = if is_example { "../../examples/c" } else { "tests" };
        let program = scratch_folder().join(format!("installed-{source}.out"));
        let mut compile = Command::new(compiler);
        compile.arg(crate_folder().join(folder).join(source)).arg("-o").arg(&program);
        run(compile.args(flags.split_whitespace()));
        let mut program = Command::new(&program);
        run(program.env("LD_LIBRARY_PATH", &lib).current_dir(scratch_folder()));
    }
}

#[test]
fn the_examples_run_and_find_their_results_right() {
    let sources =
        ["overlap.c", "stencil.c", "nonblocking.c", "checkpoints.c", "layers.c", "openmp.c"];
    for source in sources {
        let program = build::compile_at(&crate_folder().join("../../examples/c"), source, &[]);
        for engine in ["auto", "threads"] {
            let mut command = Command::new(&program.path);
            command.env("ALONGSIDE_ENGINE", engine).current_dir(scratch_folder());
            let said = run(&mut command);
            assert!(said.ends_with("right\n"), "{source} on {engine}: {said}");
        }
    }
}
