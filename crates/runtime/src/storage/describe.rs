//! A layer as text that the parser reads back.

use std::fmt::Write;

use sched::Watermarks;

use super::{LayerSpec, Scope};

/// Units of what is written, largest first.
const UNITS: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];

/// A `[[layer]]` table.
pub(super) fn describe(layer: &LayerSpec) -> String {
    let mut text = String::from("[[layer]]\n");
    let mut put = |key: &str, value: String| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{key} = {value}");
    };
    put("name", quoted(&layer.name));
    put("path", quoted(&layer.path.to_string_lossy()));
    let LayerSpec { bandwidth, read_bandwidth, write_bandwidth, .. } = *layer;
    let ways = ["bandwidth", "read_bandwidth", "write_bandwidth"];
    for (key, bandwidth) in ways.into_iter().zip([bandwidth, read_bandwidth, write_bandwidth]) {
        if let Some(bandwidth) = bandwidth {
            put(key, format!("\"{}/s\"", amount(bandwidth)));
        }
    }
    if let Some(capacity) = layer.capacity {
        put("capacity", format!("\"{}\"", amount(capacity)));
    }
    if let Some(Watermarks { high, low }) = layer.watermarks {
        let percent = |permille: u32| format!("\"{}%\"", f64::from(permille) / 10.0);
        put("high_watermark", percent(high));
        put("low_watermark", percent(low));
    }
    if layer.scope == Scope::Shared {
        put("scope", "\"shared\"".to_string());
    }
    if !layer.processors.is_empty() {
        put("processors", format!("{:?}", layer.processors));
    }
    for (key, curve) in [("limit", &layer.limit), ("measured", &layer.measured)] {
        let Some(curve) = curve else { continue };
        let points = curve.points().iter().map(|point| {
            let bandwidth = amount(point.bandwidth);
            format!("    {{ writers = {}, bandwidth = \"{bandwidth}/s\" }},\n", point.writers)
        });
        put(key, format!("[\n{}]", points.collect::<String>()));
    }
    text
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// With the largest unit of which it has no more than three decimals, if the number stays short.
pub(crate) fn amount(bytes: u64) -> String {
    let short = |unit: u64| bytes >= unit && bytes / unit < 1_000_000;
    let fits = |(_, unit): &&(&str, u64)| short(*unit) && bytes % (unit / 1000) == 0;
    let Some((name, unit)) = UNITS.iter().find(fits) else { return format!("{bytes}B") };
    let decimals = format!("{:03}", bytes % unit / (unit / 1000));
    match decimals.trim_end_matches('0') {
        "" => format!("{}{name}", bytes / unit),
        decimals => format!("{}.{decimals}{name}", bytes / unit),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::storage::{Curve, Point, Storage};

    #[test]
    fn what_is_written_is_read_back() {
        let points = [(1, 120_500_000), (64, 1_230_000_000), (65, 17)];
        let point = |(writers, bandwidth)| Point { writers, bandwidth };
        let full = LayerSpec {
            name: "a \"b\"\n\\\u{7f}".into(),
            path: "/x/ü".into(),
            bandwidth: Some(2_500_000_000),
            read_bandwidth: Some(2_000_000_000),
            write_bandwidth: Some(123_456_789),
            capacity: Some(99),
            watermarks: Some(Watermarks { high: 925, low: 700 }),
            scope: Scope::Shared,
            processors: vec![0, 5],
            limit: Some(Curve::new(points.map(point).into()).unwrap()),
            measured: Some(Curve::new(points[..2].iter().copied().map(point).collect()).unwrap()),
        };
        let bare = LayerSpec { name: "bare".into(), path: "/".into(), ..LayerSpec::default() };
        let flat = LayerSpec { name: "flat".into(), limit: Some(Curve::flat(1)), ..bare.clone() };
        let layers = vec![full, bare, flat];
        let text: String = layers.iter().map(LayerSpec::to_toml).collect();
        let storage = Storage::parse(&text, Path::new("/s.toml")).expect(&text);
        assert_eq!(storage.layers, layers, "{text}");
    }

    #[test]
    fn amounts_are_short_and_exact() {
        let all = [999, 1_000, 1_500, 450_000_000, 1_230_000_000, 1_000_000_001];
        let said = all.map(amount);
        assert_eq!(said, ["999B", "1kB", "1.5kB", "450MB", "1.23GB", "1000000001B"]);
    }
}
