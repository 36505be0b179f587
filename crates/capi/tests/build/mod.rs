//! Builds the library with cargo and the test programs with the C compiler.
#![allow(dead_code, reason = "each test is a program of its own and uses a part of this")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Sources that are not test programs of their own.
const HELPERS: [&str; 5] =
    ["forbid_uring", "sanitizer_names", "unordered", "unsettled", "until_killed"];

/// Programs with blocking operations, which are also compiled with ordinary calls.
const BLOCKING: [&str; 2] = ["blocking.c", "errors.c"];

/// Options of both compilers.
const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-O1", "-g"];

/// A program that was compiled.
#[derive(Clone, Debug)]
pub struct Built {
    /// The source's name without its ending.
    pub name: String,
    /// The program.
    pub path: PathBuf,
}

/// Where this crate is.
pub fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder for programs and their files, on a disk.
pub fn scratch_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// The folder with the libraries, as this test was built; they are built if they are not current.
pub fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "-p", "alongside-capi", "-p", "alongside-preload"]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let status = cargo.current_dir(crate_folder()).status().expect("cargo runs this test");
        assert!(status.success(), "the libraries do not build");
        let me = std::env::current_exe().expect("a test knows its path");
        let folder = me.ancestors().nth(2).expect("it is in target/PROFILE/deps").to_owned();
        assert!(folder.join("libalongside.so").is_file(), "no library in {}", folder.display());
        folder
    })
}

/// The library of interposed calls.
pub fn preload() -> PathBuf {
    libraries().join("libalongside_preload.so")
}

/// Compiles a source of this folder, with more options.
pub fn compile(source: &str, more: &[&str]) -> Built {
    compile_at(&crate_folder().join("tests"), source, more)
}

/// Compiles a source of some folder.
pub fn compile_at(from: &Path, source: &str, more: &[&str]) -> Built {
    let (name, ending) = source.rsplit_once('.').expect("a source has an ending");
    let libraries = libraries().display().to_string();
    let place = from.file_name().expect("a folder").to_string_lossy();
    let path = scratch_folder().join(format!("{place}-{name}{}", more.concat()));
    let (compiler, standard) =
        if ending == "cpp" { ("g++", "-std=c++17") } else { ("gcc", "-std=gnu11") };
    let mut command = Command::new(compiler);
    command.arg(standard).args(WARNINGS).args(more);
    if name.starts_with("openmp") {
        command.arg("-fopenmp");
    }
    command
        .arg(format!("-I{}", crate_folder().join("include").display()))
        .arg("-o")
        .arg(&path)
        .arg(from.join(source))
        .args([format!("-L{libraries}"), format!("-Wl,-rpath,{libraries}")])
        .args(["-lalongside", "-lpthread"]);
    let output = command.output().expect("a C compiler is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source} does not compile:\n{said}");
    Built { name: name.to_owned(), path }
}

/// All test programs, compiled once.
pub fn programs() -> &'static [Built] {
    static PROGRAMS: OnceLock<Vec<Built>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let folder = std::fs::read_dir(crate_folder().join("tests")).expect("this folder");
        let names = folder.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.into_string().expect("names are plain"))
            .filter(|name| name.ends_with(".c") || name.ends_with(".cpp"))
            .filter(|name| !HELPERS.iter().any(|helper| name.starts_with(helper)))
            .collect();
        names.sort();
        names.iter().map(|name| compile(name, &[])).collect()
    })
}

/// The programs with blocking operations, with ordinary calls in the place of ours.
pub fn with_plain_calls() -> &'static [Built] {
    static PROGRAMS: OnceLock<Vec<Built>> = OnceLock::new();
    PROGRAMS
        .get_or_init(|| BLOCKING.iter().map(|source| compile(source, &["-DPLAIN_CALLS"])).collect())
}
