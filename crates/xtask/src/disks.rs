//! The disks of a simulated experiment, as a storage description or a probe has them.

use runtime::{LayerSpec, Scope, Storage};
use serde_json::Value;
use sim::experiment::disks::Disks;
use sim::experiment::Given;
use sim::storage::Curve;

/// The disks that a file describes; else why not.
pub(crate) fn read(given: &Given) -> Result<Disks, String> {
    let file = given.file.display();
    let text = std::fs::read_to_string(&given.file).map_err(|error| format!("{file}: {error}"))?;
    if given.probed {
        return probed(&text, given).map_err(|message| format!("{file}: {message}"));
    }
    let storage = Storage::parse(&text, &given.file).map_err(|error| error.to_string())?;
    let names: Vec<&str> = storage.layers.iter().map(|layer| &*layer.name).collect();
    let at = choose(&names, given).map_err(|message| format!("{file}: {message}"))?;
    described(&storage.layers[at]).map_err(|message| format!("{file}: {message}"))
}

/// Which layer is meant.
fn choose(names: &[&str], given: &Given) -> Result<usize, String> {
    let all = names.join(", ");
    match &given.layer {
        Some(name) => {
            let at = names.iter().position(|other| other == name);
            at.ok_or_else(|| format!("there is no layer {name:?}; layers: {all}"))
        }
        None if names.len() == 1 => Ok(0),
        None => Err(format!("say which layer (--layer): {all}")),
    }
}

fn named(name: &str) -> String {
    format!(" on {name}")
}

fn described(layer: &LayerSpec) -> Result<Disks, String> {
    let name = &layer.name;
    let bandwidth = layer
        .least_bandwidth()
        .ok_or_else(|| format!("layer {name:?} has no bandwidth: `alongside probe` measures it"))?;
    let points: Vec<(f64, f64)> = match &layer.limit {
        Some(limit) => limit.points().iter().map(|p| point(p.writers, p.bandwidth)).collect(),
        None => vec![point(1, layer.write_bandwidth.unwrap_or(bandwidth))],
    };
    let curve = Curve::fitted(&points);
    Ok(Disks { name: named(name), bandwidth, curve, shared: layer.scope == Scope::Shared })
}

fn point(writers: u32, bandwidth: u64) -> (f64, f64) {
    (f64::from(writers), bandwidth as f64)
}

fn probed(text: &str, given: &Given) -> Result<Disks, String> {
    let missing = || "this is not what `alongside probe --json` prints".to_string();
    let root: Value =
        serde_json::from_str(text).map_err(|error| format!("{}: {error}", missing()))?;
    let layers = root["layers"].as_array().ok_or_else(missing)?;
    let names: Option<Vec<&str>> = layers.iter().map(|layer| layer["name"].as_str()).collect();
    let layer = &layers[choose(&names.ok_or_else(missing)?, given)?];
    let name = layer["name"].as_str().ok_or_else(missing)?;
    let curve = layer["write"]["curve"]
        .as_array()
        .filter(|points| !points.is_empty())
        .ok_or_else(|| format!("the writes of layer {name:?} were not measured"))?;
    let points: Option<Vec<runtime::ops::Point>> = curve.iter().map(measured).collect();
    let curve = runtime::ops::Curve::new(points.ok_or_else(missing)?)
        .map_err(|error| format!("the writes of layer {name:?}: {error}"))?;
    let points: Vec<(f64, f64)> =
        curve.points().iter().map(|p| point(p.writers, p.bandwidth)).collect();
    Ok(Disks {
        name: named(name),
        bandwidth: curve.best().bandwidth,
        curve: Curve::fitted(&points),
        shared: layer["scope"] == "shared",
    })
}

fn measured(point: &Value) -> Option<runtime::ops::Point> {
    Some(runtime::ops::Point {
        writers: u32::try_from(point["writers"].as_u64()?).ok()?,
        bandwidth: point["bandwidth"].as_u64()?,
    })
}
