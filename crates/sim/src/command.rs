//! What the commands have in common: help, arguments that make no sense, and rows for a JSON file.

use std::path::Path;
use std::process::ExitCode;

/// What the arguments of a command say. `Err`: it is over, as they asked for help or made no
/// sense, which was told.
pub(crate) fn options<T>(
    name: &str,
    usage: &str,
    args: &[String],
    parse: impl FnOnce(&[String]) -> Result<T, String>,
) -> Result<T, ExitCode> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{usage}");
        return Err(ExitCode::SUCCESS);
    }
    parse(args).map_err(|message| {
        eprintln!("{name}: {message}\n{usage}");
        ExitCode::from(2)
    })
}

/// Writes rows, as the benchmarks do, to a file of a folder, which is made; without one nothing.
/// The exit code tells whether they were written.
pub(crate) fn write_rows(
    name: &str,
    folder: Option<&Path>,
    file: &str,
    rows: &[String],
) -> ExitCode {
    let Some(folder) = folder else { return ExitCode::SUCCESS };
    let text = format!("[\n  {}\n]\n", rows.join(",\n  "));
    let made = std::fs::create_dir_all(folder);
    match made.and_then(|()| std::fs::write(folder.join(file), text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {file} cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}
