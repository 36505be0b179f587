//! How fast a folder is, roughly and soon: for a layer that nobody described.

use std::path::Path;
use std::time::Duration;

use super::{Options, Probe, ProbeError};

/// Measures the folder; the bandwidth that can be granted, in bytes a second: the lower of
/// reading's and writing's best. Writes and reads at most 256 MB, within five seconds; a disk takes
/// less than one. If it cannot be measured: in words, also what that means.
pub(crate) fn bandwidth(folder: &Path) -> Result<u64, String> {
    measure(folder).map_err(|error| {
        format!(
            "the working directory stays a layer without limits, for it cannot be measured: {error}"
        )
    })
}

fn measure(folder: &Path) -> Result<u64, ProbeError> {
    let options = Options {
        block_bytes: vec![1 << 20],
        writers: vec![1, 8],
        rounds: 2,
        space_bytes: 32 << 20,
        data_bytes: 256_000_000,
        time: Duration::from_secs(5),
    };
    let mut probe = Probe::start(folder, &options)?;
    while probe.step()? {}
    let measured = probe.layer("measured", Default::default(), false).least_bandwidth();
    measured.ok_or_else(|| ProbeError::Slow { path: folder.into(), time: options.time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_a_bandwidth_and_keeps_nothing() {
        let folder = std::env::temp_dir().join(format!("alongside-quick-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        assert!(bandwidth(&folder).unwrap() > 0);
        std::fs::remove_dir(&folder).expect("nothing is in it");
        assert!(bandwidth(&folder).is_err(), "it is not there");
    }
}
