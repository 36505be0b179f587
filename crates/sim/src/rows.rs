//! The rows of a JSON file, as the benchmarks write them.

use std::path::Path;

/// Writes rows to a file of a folder, which is made.
pub(crate) fn write(folder: &Path, name: &str, rows: &[String]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(name), format!("[\n  {}\n]\n", rows.join(",\n  ")))
}
