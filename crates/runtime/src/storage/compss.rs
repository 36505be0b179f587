//! Storage from the two files that describe a machine to COMPSs: `resources.xml` says which disks
//! there are, `project.xml` which folder a node works in. Whichever is named, the other is looked
//! for beside it (`site-resources.xml` beside `site-project.xml`).
//!
//! ```text
//! ResourcesList                               Project
//!   SharedDisk Name="pfs"                       MasterNode
//!     Storage: Size, Type, Bandwidth              SharedDisks: AttachedDisk Name, MountPoint
//!   ComputeNode Name="node1"                    ComputeNode Name="node1"
//!     Storage [Name]: Size, Type, Bandwidth       WorkingDir
//!     SharedDisks: AttachedDisk Name, MountPoint
//! ```
//!
//! - The node is the one with the name of this computer, else `localhost`, else the only one.
//! - Its own storage is a layer in its working folder; with a `Name` that a shared disk is attached
//!   by, at that disk's mount point.
//! - A shared disk that is attached to the node, or to the master, is a layer at its mount point.
//! - `Size` is in GB. COMPSs leaves the unit of `Bandwidth` open; it is read as MB a second.
//! - Everything else in these files is about other things, and left alone.

use std::path::{Path, PathBuf};

use roxmltree::{Document, Node};

use super::{read_text, LayerSpec, Scope, Storage, StorageError};

/// Bytes of a GB, and of a MB.
const GB: f64 = 1e9;
const MB: f64 = 1e6;
/// Larger numbers are not believed: as many bytes as an `f64` counts.
const BYTES_MAX: f64 = (1u64 << 53) as f64;
/// What a `Type` says of storage that all nodes reach.
const SHARED_TYPES: [&str; 7] = ["PFS", "GPFS", "LUSTRE", "NFS", "BEEGFS", "CEPH", "SHARED"];

/// A file, and its text.
struct Source {
    file: PathBuf,
    text: String,
}

/// A document with its file, for messages.
struct Xml<'a> {
    file: &'a Path,
    document: Document<'a>,
}

/// A place where a disk is mounted.
struct Mount {
    name: String,
    path: PathBuf,
}

impl Source {
    fn read(file: &Path) -> Result<Source, StorageError> {
        Ok(Source { file: file.to_path_buf(), text: read_text(file)? })
    }

    fn parse(&self) -> Result<Xml<'_>, StorageError> {
        let document = Document::parse(&self.text).map_err(|error| StorageError {
            file: self.file.clone(),
            line: error.pos().row as usize,
            column: error.pos().col as usize,
            message: format!("not valid XML: {error}"),
        })?;
        Ok(Xml { file: &self.file, document })
    }
}

impl Xml<'_> {
    fn root(&self) -> Node<'_, '_> {
        self.document.root_element()
    }

    fn refused<T>(&self, node: Node<'_, '_>, message: String) -> Result<T, StorageError> {
        let place = self.document.text_pos_at(node.range().start);
        Err(StorageError {
            file: self.file.to_path_buf(),
            line: place.row as usize,
            column: place.col as usize,
            message,
        })
    }
}

pub(super) fn read(file: &Path) -> Result<Storage, StorageError> {
    read_for(file, &host_name())
}

fn read_for(file: &Path, host: &str) -> Result<Storage, StorageError> {
    let source = Source::read(file)?;
    let named = source.parse()?;
    let is_project = match named.root().tag_name().name() {
        "ResourcesList" => false,
        "Project" => true,
        other => {
            let message = format!(
                "<{other}> is no description of COMPSs; its files begin with <ResourcesList> or \
                 <Project>"
            );
            return named.refused(named.root(), message);
        }
    };
    let beside = sibling(file, is_project).filter(|path| path.is_file());
    let other = beside.map(|path| Source::read(&path)).transpose()?;
    let other = other.as_ref().map(Source::parse).transpose()?;
    let (resources, project) = match is_project {
        false => (&named, other.as_ref()),
        true => match &other {
            Some(resources) => (resources, Some(&named)),
            None => {
                let message = "the disks of this project are in its resources.xml, which is not \
                               beside it";
                return named.refused(named.root(), message.to_string());
            }
        },
    };
    let layers = layers(resources, project, host)?;
    Ok(Storage { layers, source: Some(file.to_path_buf()) })
}

/// Where the other file is, if this one's name says which of the two it is.
fn sibling(file: &Path, is_project: bool) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let (own, other) = if is_project { ("project", "resources") } else { ("resources", "project") };
    let at = name.rfind(own)?;
    Some(file.with_file_name(format!("{}{other}{}", &name[..at], &name[at + own.len()..])))
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_string()
}

fn layers(
    resources: &Xml<'_>,
    project: Option<&Xml<'_>>,
    host: &str,
) -> Result<Vec<LayerSpec>, StorageError> {
    let node = compute_node(resources, host)?;
    let node_name = node.attribute("Name").unwrap_or_default();
    let mut mounts = mounts(resources, node)?;
    let mut work = None;
    if let Some(project) = project {
        if let Some(master) = child(project.root(), "MasterNode") {
            mounts.extend(self::mounts(project, master)?);
        }
        let mut nodes = project.root().children().filter(|it| it.has_tag_name("ComputeNode"));
        let node = nodes.find(|it| it.attribute("Name") == Some(node_name));
        work = node.and_then(|node| content(node, "WorkingDir")).map(PathBuf::from);
    }
    let mut layers: Vec<LayerSpec> = Vec::new();
    for storage in node.children().filter(|it| it.has_tag_name("Storage")) {
        let mut layer = storage_of(resources, storage)?;
        layer.name = storage.attribute("Name").unwrap_or("local").to_string();
        let mount = mounts.iter().find(|mount| mount.name == layer.name);
        let Some(path) = mount.map(|mount| &mount.path).or(work.as_ref()) else {
            let message = format!(
                "the storage \"{}\" of the node \"{node_name}\" has no folder: it is neither an \
                 AttachedDisk with a MountPoint, nor has project.xml a WorkingDir for this node",
                layer.name
            );
            return resources.refused(storage, message);
        };
        layer.path = folder(resources, storage, path)?;
        add(resources, storage, layer, &mut layers)?;
    }
    for disk in resources.root().children().filter(|it| it.has_tag_name("SharedDisk")) {
        let name = required(resources, disk, "Name")?;
        let Some(mount) = mounts.iter().find(|mount| mount.name == name) else { continue };
        let mut layer = child(disk, "Storage")
            .map_or_else(|| Ok(LayerSpec::default()), |storage| storage_of(resources, storage))?;
        layer.name = name;
        layer.scope = Scope::Shared;
        layer.path = folder(resources, disk, &mount.path)?;
        add(resources, disk, layer, &mut layers)?;
    }
    if layers.is_empty() {
        let message = format!(
            "the node \"{node_name}\" has no storage: neither a <Storage> nor a <SharedDisk> that \
             is attached to it"
        );
        return resources.refused(node, message);
    }
    Ok(layers)
}

fn add(
    xml: &Xml<'_>,
    node: Node<'_, '_>,
    layer: LayerSpec,
    layers: &mut Vec<LayerSpec>,
) -> Result<(), StorageError> {
    if layers.iter().any(|other| other.name == layer.name) {
        let message = format!("there are two layers named \"{}\"; names must differ", layer.name);
        return xml.refused(node, message);
    }
    layers.push(layer);
    Ok(())
}

fn compute_node<'a>(xml: &'a Xml<'a>, host: &str) -> Result<Node<'a, 'a>, StorageError> {
    let nodes: Vec<_> =
        xml.root().children().filter(|node| node.has_tag_name("ComputeNode")).collect();
    let named = |name: &str| nodes.iter().find(|node| node.attribute("Name") == Some(name));
    if let Some(node) = named(host).or_else(|| named("localhost")) {
        return Ok(*node);
    }
    match &nodes[..] {
        [node] => Ok(*node),
        [] => xml.refused(xml.root(), "there is no <ComputeNode>".to_string()),
        _ => {
            let message = format!(
                "none of its nodes is named \"{host}\" or \"localhost\", and there are {}; name \
                 one so",
                nodes.len()
            );
            xml.refused(xml.root(), message)
        }
    }
}

fn child<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    node.children().find(|child| child.has_tag_name(name))
}

/// The text of a child, without the space around it.
fn content<'a>(node: Node<'a, 'a>, name: &str) -> Option<&'a str> {
    child(node, name)?.text().map(str::trim).filter(|text| !text.is_empty())
}

fn required(xml: &Xml<'_>, node: Node<'_, '_>, name: &str) -> Result<String, StorageError> {
    match node.attribute(name).filter(|text| !text.is_empty()) {
        Some(text) => Ok(text.to_string()),
        None => xml.refused(node, format!("<{}> has no {name}", node.tag_name().name())),
    }
}

/// The disks that are attached to a node.
fn mounts(xml: &Xml<'_>, node: Node<'_, '_>) -> Result<Vec<Mount>, StorageError> {
    let mut found = Vec::new();
    let lists = node.children().filter(|it| it.has_tag_name("SharedDisks"));
    for disk in lists.flat_map(|list| list.children()) {
        if !disk.has_tag_name("AttachedDisk") {
            continue;
        }
        let name = required(xml, disk, "Name")?;
        let mount = disk.children().find(|child| child.has_tag_name("MountPoint"));
        let path = mount.and_then(|mount| mount.text()).map(str::trim).unwrap_or_default();
        if path.is_empty() {
            return xml.refused(disk, format!("the disk \"{name}\" has no MountPoint"));
        }
        found.push(Mount { name, path: path.into() });
    }
    Ok(found)
}

/// What a `<Storage>` says; it has no name and no path yet.
fn storage_of(xml: &Xml<'_>, storage: Node<'_, '_>) -> Result<LayerSpec, StorageError> {
    let mut layer = LayerSpec::default();
    for child in storage.children().filter(Node::is_element) {
        match child.tag_name().name() {
            "Size" => layer.capacity = Some(number(xml, child, GB)?),
            "Bandwidth" => layer.bandwidth = Some(number(xml, child, MB)?),
            "Type" => {
                let name = child.text().unwrap_or_default().trim().to_ascii_uppercase();
                if SHARED_TYPES.contains(&name.as_str()) {
                    layer.scope = Scope::Shared;
                }
            }
            other => {
                let message =
                    format!("unknown element <{other}>; a <Storage> has Size, Type and Bandwidth");
                return xml.refused(child, message);
            }
        }
    }
    Ok(layer)
}

fn number(xml: &Xml<'_>, node: Node<'_, '_>, unit: f64) -> Result<u64, StorageError> {
    let text = node.text().unwrap_or_default().trim();
    let number = text.parse::<f64>().map(|number| number * unit).unwrap_or(f64::NAN);
    if (1.0..=BYTES_MAX).contains(&number) {
        return Ok(number.round() as u64);
    }
    let (name, unit) = (node.tag_name().name(), if unit == GB { "GB" } else { "MB a second" });
    xml.refused(node, format!("<{name}>: \"{text}\" is not a number of {unit}, above 0"))
}

fn folder(xml: &Xml<'_>, node: Node<'_, '_>, path: &Path) -> Result<PathBuf, StorageError> {
    let given = xml.file.parent().unwrap_or(Path::new("")).join(path);
    match std::path::absolute(&given) {
        Ok(path) if path.is_dir() => Ok(path),
        _ => xml.refused(node, format!("{} is not a folder that can be entered", given.display())),
    }
}
