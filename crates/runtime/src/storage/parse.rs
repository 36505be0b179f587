//! From the text of a storage description to its layers; every refusal has its place.

use std::ops::Range;
use std::path::{Path, PathBuf};

use sched::Watermarks;
use toml::de::DeTable;

use super::values::{
    bandwidth, capacity, curve, measured, processors, scope, share, text, Entry, Refused,
};
use super::{LayerSpec, Storage, StorageError, LAYER_KEYS};

pub(super) fn parse(text: &str, file: &Path, look: bool) -> Result<Storage, StorageError> {
    let folder = file.parent().unwrap_or(Path::new(""));
    read(text, folder, look)
        .map(|layers| Storage { layers, source: Some(file.to_path_buf()) })
        .map_err(|(span, message)| {
            let (line, column) = position(text, span.start);
            StorageError { file: file.to_path_buf(), line, column, message }
        })
}

/// Line and column, both from 1, of a byte of a text.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..byte.min(text.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    (line, column)
}

fn read(text: &str, folder: &Path, look: bool) -> Result<Vec<LayerSpec>, Refused> {
    let document = DeTable::parse(text).map_err(|error| {
        (error.span().unwrap_or(0..0), format!("not valid TOML: {}", error.message()))
    })?;
    let mut layers: Vec<LayerSpec> = Vec::new();
    for (key, value) in document.get_ref() {
        if key.get_ref() != "layer" {
            let message = format!(
                "unknown key \"{}\"; a storage description is a list of [[layer]] tables",
                key.get_ref()
            );
            return Err((key.span(), message));
        }
        let tables = value.get_ref().as_array().ok_or_else(|| {
            (key.span(), "write [[layer]] with double brackets: there may be many".to_string())
        })?;
        for table in tables.iter() {
            let entries = table
                .get_ref()
                .as_table()
                .ok_or_else(|| (table.span(), "a layer is a [[layer]] table".to_string()))?;
            let at = table.span();
            layers.push(layer(entries, at, folder, &layers, look)?);
        }
    }
    if layers.is_empty() {
        return Err((0..0, "there is no [[layer]]; describe at least one".to_string()));
    }
    Ok(layers)
}

fn layer(
    entries: &DeTable<'_>,
    at: Range<usize>,
    folder: &Path,
    earlier: &[LayerSpec],
    look: bool,
) -> Result<LayerSpec, Refused> {
    let mut layer = LayerSpec::default();
    let (mut apart, mut high, mut low) = (Vec::new(), None, None);
    for entry in entries {
        let (key, value) = entry;
        match key.get_ref().as_ref() {
            "name" => layer.name = name(entry, earlier)?,
            "path" => layer.path = path(entry, folder, look)?,
            "bandwidth" => layer.bandwidth = Some(bandwidth(entry)?),
            "read_bandwidth" => {
                let read = bandwidth(entry)?;
                layer.read_bandwidth = Some(read);
                apart.push((entry, read));
            }
            "write_bandwidth" => {
                let write = bandwidth(entry)?;
                layer.write_bandwidth = Some(write);
                apart.push((entry, write));
            }
            "high_watermark" => high = Some((value.span(), share(entry)?)),
            "low_watermark" => low = Some((value.span(), share(entry)?)),
            "limit" => layer.limit = Some(curve(entry)?),
            "measured" => layer.measured = Some(measured(entry)?),
            "processors" => layer.processors = processors(value)?,
            "capacity" => layer.capacity = Some(capacity(entry)?),
            "scope" => layer.scope = scope(value)?,
            other => {
                let keys = LAYER_KEYS.join(", ");
                let message = format!("unknown key \"{other}\"; a layer has the keys {keys}");
                return Err((key.span(), message));
            }
        }
    }
    let both = layer.bandwidth.unwrap_or(u64::MAX);
    if let Some(((key, value), _)) = apart.iter().find(|(_, one)| *one > both) {
        let message = "it is more than bandwidth, which is for reading and writing together";
        return Err((value.span(), format!("{}: {message}", key.get_ref())));
    }
    layer.watermarks = watermarks(high, low)?;
    for (missing, key) in
        [(layer.name.is_empty(), "name"), (layer.path.as_os_str().is_empty(), "path")]
    {
        if missing {
            return Err((at, format!("this layer has no {key}; every layer needs one")));
        }
    }
    Ok(layer)
}

/// A share of a layer, in thousandths, and where it is written.
type Share = (Range<usize>, u32);

fn watermarks(high: Option<Share>, low: Option<Share>) -> Result<Option<Watermarks>, Refused> {
    match (high, low) {
        (None, None) => Ok(None),
        (None, Some((span, _))) => {
            let message = "low_watermark: it needs a high_watermark, above which files leave";
            Err((span, message.to_string()))
        }
        (Some((_, high)), Some((span, low))) if low > high => {
            Err((span, "low_watermark: it is above the high_watermark".to_string()))
        }
        (Some((_, high)), low) => {
            Ok(Some(Watermarks { high, low: low.map_or(high, |(_, low)| low) }))
        }
    }
}

fn name(entry: Entry<'_, '_>, earlier: &[LayerSpec]) -> Result<String, Refused> {
    let name = text(entry)?;
    if earlier.iter().any(|layer| layer.name == name) {
        let message = format!("there are two layers named \"{name}\"; names must differ");
        return Err((entry.1.span(), message));
    }
    Ok(name.to_string())
}

fn path(entry: Entry<'_, '_>, folder: &Path, look: bool) -> Result<PathBuf, Refused> {
    let given = folder.join(text(entry)?);
    let path = std::path::absolute(&given)
        .map_err(|error| (entry.1.span(), format!("{}: {error}", given.display())))?;
    if look && !path.is_dir() {
        let message = format!("{} is not a folder that can be entered", path.display());
        return Err((entry.1.span(), message));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use ops::Curve;

    use super::*;
    use crate::storage::Scope;

    const GOOD: &str = r#"
[[layer]]
name = "nvme"
path = "fast"
bandwidth = "450MB/s"
capacity = "200GB"
limit = "9.4MB/s"
processors = "8,0-3"

[[layer]]
name = "pfs"
path = "/lustre"
read_bandwidth = 2_000_000
write_bandwidth = 1e6
bandwidth = "2.5MB/s"
high_watermark = "92.5%"
low_watermark = "70%"
scope = "shared"
processors = [5, 4]
limit = [{writers = 1, bandwidth = "100MB/s"}, {writers = 3, bandwidth = 3e8}]
"#;

    #[test]
    fn a_good_one() {
        let storage = Storage::parse(GOOD, Path::new("/etc/site/storage.toml")).unwrap();
        let [nvme, pfs] = &storage.layers[..] else { panic!("two layers") };
        assert_eq!(nvme.path, Path::new("/etc/site/fast"));
        assert_eq!(
            (nvme.least_bandwidth(), nvme.capacity),
            (Some(9_400_000), Some(200_000_000_000))
        );
        assert_eq!((pfs.read_bandwidth, pfs.least_bandwidth()), (Some(2_000_000), Some(1_000_000)));
        assert_eq!((pfs.write_bandwidth, pfs.bandwidth), (Some(1_000_000), Some(2_500_000)));
        assert_eq!(pfs.watermarks, Some(Watermarks { high: 925, low: 700 }));
        assert_eq!((nvme.scope, pfs.scope), (Scope::Node, Scope::Shared));
        assert_eq!(
            (&nvme.processors[..], &pfs.processors[..]),
            (&[0, 1, 2, 3, 8][..], &[4, 5][..])
        );
        assert_eq!(nvme.limit, Some(Curve::flat(9_400_000)));
        let limit = pfs.limit.as_ref().unwrap();
        assert_eq!([1, 2, 9].map(|writers| limit.at(writers)), [1, 2, 3].map(|n| n * 100_000_000));
    }

    /// The text, then line, column and part of the message.
    fn refused(text: &str, line: usize, column: usize, part: &str) {
        let error = Storage::parse(text, Path::new("s.toml")).expect_err(text);
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("s.toml:{line}:{column}: ")), "{shown}\n{text}");
        assert!(shown.contains(part), "{shown} has no {part:?}");
    }

    #[test]
    fn refusals_name_the_place() {
        let layer = "[[layer]]\nname='a'\npath='/'\n";
        refused(&format!("{layer}speed = 3"), 4, 1, "unknown key \"speed\"; a layer has the keys");
        refused(&format!("{layer}bandwidth = -3"), 4, 13, "must not be negative");
        refused(&format!("{layer}bandwidth = \"-3MB/s\""), 4, 13, "must not be negative");
        refused(&format!("{layer}bandwidth = 0"), 4, 13, "more than 0");
        refused(&format!("{layer}capacity = 0"), 4, 12, "more than 0");
        refused(&format!("{layer}capacity = true"), 4, 12, "write a number");
        refused(&format!("{layer}scope = \"moon\""), 4, 9, "\"node\" or \"shared\"");
        let point = "{writers=1, bandwidth=5}";
        refused(&format!("{layer}limit=[]"), 4, 7, "at least one point");
        refused(&format!("{layer}limit=[\n{point},\n{point}]"), 6, 1, "more than at the point");
        refused(&format!("{layer}limit=[{point}, 3]"), 4, 34, "a point is written {writers");
        refused(&format!("{layer}limit=[{{writers=1}}]"), 4, 8, "a point is written {writers");
        refused(&format!("{layer}limit=[{{writers=0, bandwidth=5}}]"), 4, 8, "at least 1");
        refused(&format!("{layer}limit=[{{writers=-1, bandwidth=5}}]"), 4, 17, "a number from 1");
        refused(&format!("{layer}limit=[{{writers=0x10, bandwidth=5}}]"), 4, 17, "a number from 1");
        refused(&format!("{layer}limit=[{{writers=1, bandwidth=0}}]"), 4, 30, "more than 0");
        refused(&format!("{layer}limit=[{{writer=1}}]"), 4, 9, "unknown key \"writer\"");
        refused(&format!("{layer}limit=\"5GB/h\""), 4, 7, "unknown unit");
        refused(&format!("{layer}measured=[3]"), 4, 11, "measured: a point is written {writers");
        refused(&format!("{layer}measured='5MB/s'"), 4, 10, "measured: write a list of points");
        refused(&format!("{layer}measured=[]"), 4, 10, "measured: a curve needs at least one");
        refused(&format!("{layer}processors=\"0-x\""), 4, 12, "\"x\" is no number of a processor");
        refused(&format!("{layer}processors=[0, 0]"), 4, 16, "0 is there twice");
        refused(&format!("{layer}processors=[0, -1]"), 4, 16, "a number from 0");
        refused(&format!("{layer}processors=[0x1]"), 4, 13, "a number from 0");
        refused(&format!("{layer}processors=[]"), 4, 12, "the list is empty");
        refused(&format!("{layer}processors=3"), 4, 12, "a list of numbers");
        refused(&format!("{layer}{layer}"), 5, 6, "two layers named \"a\"");
        refused(
            &format!("{layer}bandwidth=1\nread_bandwidth=2"),
            5,
            16,
            "it is more than bandwidth",
        );
        refused(&format!("{layer}write_bandwidth=2\nbandwidth=1"), 4, 17, "write_bandwidth: it is");
        refused(&format!("{layer}high_watermark=0.9"), 4, 16, "a share such as \"90%\"");
        refused(&format!("{layer}high_watermark=\"9\""), 4, 16, "a share such as \"90%\"");
        refused(&format!("{layer}high_watermark=\"101%\""), 4, 16, "from 0% to 100%");
        refused(&format!("{layer}high_watermark=\"-1%\""), 4, 16, "from 0% to 100%");
        refused(&format!("{layer}high_watermark=\"nan%\""), 4, 16, "from 0% to 100%");
        refused(&format!("{layer}low_watermark=\"9%\""), 4, 15, "needs a high_watermark");
        let marks = "high_watermark=\"50%\"\nlow_watermark=\"51%\"";
        refused(&format!("{layer}{marks}"), 5, 15, "above the high_watermark");
        refused("[[layer]]\nname='a'\n", 1, 1, "has no path");
        refused("[[layer]]\npath='/'\n", 1, 1, "has no name");
        refused("[layer]\nname='a'\n", 1, 2, "double brackets");
        refused("layers = 3", 1, 1, "unknown key \"layers\"");
        refused("", 1, 1, "at least one");
        refused("[[layer]]\nname = = 3", 2, 8, "not valid TOML");
        refused("[[layer]]\nname='a'\nname='b'", 3, 1, "not valid TOML");
    }

    #[test]
    fn a_file_that_is_not_there() {
        let error = Storage::read(Path::new("/no/such/storage.toml")).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/storage.toml: "), "{error}");
    }
}
