//! What is said where no call can return it: one line on standard error.

use std::io::Write;

/// Says one line. Nobody is left to tell if that fails.
pub fn say(message: &str) {
    let _ = writeln!(std::io::stderr().lock(), "alongside: hdf5: {message}");
}
