//! The project's own commands: `cargo xtask tidy | diagrams | sim | power | rate |
//! experiment | tiers | eager`.

mod diagrams;
mod disks;
mod tidy;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage:
  cargo xtask tidy                          check the style of the whole tree
  cargo xtask diagrams [--check]            write docs/states.md (or say whether it is current)
  cargo xtask sim [--seeds N] [--start S]   run the scheduler on random programs with faults
  cargo xtask power [--seeds N] [--start S] stop moves of files by kill -9 and loss of power
  cargo xtask rate                          scheduler events a second, from 10^3 to 10^6 tasks
  cargo xtask experiment [APPLICATION...]   published I/O experiments on modelled storage
  cargo xtask tiers [WORKLOAD...]           published experiments on storage layers
  cargo xtask eager [WORKLOAD...]           published scaling of eager release, 1 to 64 nodes
";

fn main() -> ExitCode {
    let mut arguments = lexopt::Parser::from_env();
    match command(&mut arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Runs the command that the first argument names.
fn command(arguments: &mut lexopt::Parser) -> Result<ExitCode, Box<dyn std::error::Error>> {
    use lexopt::prelude::*;
    match arguments.next()? {
        Some(Value(name)) if name == "tidy" => {
            if let Some(extra) = arguments.next()? {
                return Err(extra.unexpected().into());
            }
            tidy()
        }
        Some(Value(name)) if name == "diagrams" => {
            let mut check = false;
            while let Some(argument) = arguments.next()? {
                match argument {
                    Long("check") => check = true,
                    other => return Err(other.unexpected().into()),
                }
            }
            diagrams(check)
        }
        Some(Value(name)) if name == "sim" => Ok(sim::cli(&rest(arguments)?)),
        Some(Value(name)) if name == "power" => Ok(sim::power::cli(&rest(arguments)?)),
        Some(Value(name)) if name == "rate" => Ok(sim::rate::cli(&rest(arguments)?)),
        Some(Value(name)) if name == "tiers" => Ok(sim::tiers::cli(&rest(arguments)?)),
        Some(Value(name)) if name == "eager" => Ok(sim::eager::cli(&rest(arguments)?)),
        Some(Value(name)) if name == "experiment" => {
            Ok(sim::experiment::cli(&rest(arguments)?, &disks::read))
        }
        Some(Long("help") | Short('h')) => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        Some(other) => Err(other.unexpected().into()),
        None => Err("say which command".into()),
    }
}

/// The arguments that were not read yet.
fn rest(arguments: &mut lexopt::Parser) -> Result<Vec<String>, lexopt::Error> {
    arguments.raw_args()?.map(lexopt::ValueExt::string).collect()
}

/// The root of the repository: of the one that Cargo runs this in, else where it was built.
fn root() -> PathBuf {
    let built_in = env!("CARGO_MANIFEST_DIR").into();
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(built_in);
    PathBuf::from(folder).join("../..")
}

fn tidy() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let tree = tree::Tree::load(&root())?;
    let found = tidy::check(&tree);
    for violation in &found {
        println!("{violation}");
    }
    let files = tree.files().count();
    println!("tidy: {files} files, {} violations", found.len());
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn diagrams(check: bool) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let file = root().join(diagrams::PAGE);
    let page = diagrams::page(&root())?;
    let is_current = std::fs::read_to_string(&file).is_ok_and(|text| text == page);
    if check && !is_current {
        println!("{} is not what the table says: run `make diagrams`", diagrams::PAGE);
        return Ok(ExitCode::FAILURE);
    }
    if !is_current {
        std::fs::write(&file, page)?;
    }
    println!("diagrams: {} is current", diagrams::PAGE);
    Ok(ExitCode::SUCCESS)
}
