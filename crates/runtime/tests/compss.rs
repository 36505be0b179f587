//! Storage from COMPSs's descriptions of a machine.

mod support;

use runtime::storage::{Scope, Storage};
use support::Folder;

const RESOURCES: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<ResourcesList>
  <SharedDisk Name="pfs">
    <Storage><Size>14000</Size><Type>GPFS</Type><Bandwidth>980</Bandwidth></Storage>
  </SharedDisk>
  <SharedDisk Name="elsewhere"/>
  <ComputeNode Name="worker">
    <Processor Name="MainProcessor"><ComputingUnits>48</ComputingUnits></Processor>
    <Adaptors/>
    <Storage><Size>200.5</Size><Type>SSD</Type><Bandwidth>450</Bandwidth></Storage>
    <SharedDisks>
      <AttachedDisk Name="pfs"><MountPoint>mnt</MountPoint></AttachedDisk>
    </SharedDisks>
  </ComputeNode>
</ResourcesList>
"#;

const PROJECT: &str = r#"<Project>
  <MasterNode/>
  <ComputeNode Name="worker">
    <InstallDir>/opt/COMPSs/</InstallDir>
    <WorkingDir> work </WorkingDir>
  </ComputeNode>
</Project>
"#;

/// A folder with both files, and the folders that they name.
fn described(resources: &str, project: &str) -> Folder {
    let folder = Folder::new();
    for name in ["mnt", "work"] {
        std::fs::create_dir(folder.0.join(name)).unwrap();
    }
    std::fs::write(folder.0.join("site-resources.xml"), resources).unwrap();
    std::fs::write(folder.0.join("site-project.xml"), project).unwrap();
    folder
}

/// What is said of a changed file, without the folder.
fn refused(resources: &str, project: &str, named: &str) -> String {
    let folder = described(resources, project);
    let error = Storage::read(&folder.0.join(named)).expect_err("it is wrong").to_string();
    error.replace(&format!("{}/", folder.0.display()), "")
}

#[test]
fn both_files_give_the_layers_whichever_is_named() {
    let folder = described(RESOURCES, PROJECT);
    for named in ["site-resources.xml", "site-project.xml"] {
        let storage = Storage::read(&folder.0.join(named)).unwrap();
        let [local, pfs] = &storage.layers[..] else { panic!("two layers") };
        assert_eq!((&*local.name, local.scope), ("local", Scope::Node));
        assert_eq!(local.path, folder.0.join("work"));
        assert_eq!(
            (local.capacity, local.least_bandwidth()),
            (Some(200_500_000_000), Some(450_000_000))
        );
        assert_eq!((&*pfs.name, pfs.scope), ("pfs", Scope::Shared));
        assert_eq!(pfs.path, folder.0.join("mnt"));
        assert_eq!(pfs.least_bandwidth(), Some(980_000_000));
    }
}

#[test]
fn a_disk_that_the_node_names_is_where_it_is_mounted() {
    let named = RESOURCES.replace("<Storage><Size>200.5", "<Storage Name=\"pfs\"><Size>200.5");
    let one = named.replace("<SharedDisk Name=\"pfs\">", "<SharedDisk Name=\"other\">");
    let folder = described(&one, PROJECT);
    let storage = Storage::read(&folder.0.join("site-resources.xml")).unwrap();
    let [pfs] = &storage.layers[..] else { panic!("one layer") };
    assert_eq!((&*pfs.name, &pfs.path), ("pfs", &folder.0.join("mnt")));
    assert!(refused(&named, PROJECT, "site-resources.xml").contains("two layers named \"pfs\""));
}

#[test]
fn the_masters_disks_count_too() {
    let disks = "<MasterNode><SharedDisks><AttachedDisk Name=\"elsewhere\"><MountPoint>mnt\
                 </MountPoint></AttachedDisk></SharedDisks></MasterNode>";
    let folder = described(RESOURCES, &PROJECT.replace("<MasterNode/>", disks));
    let storage = Storage::read(&folder.0.join("site-project.xml")).unwrap();
    let names: Vec<_> = storage.layers.iter().map(|layer| &*layer.name).collect();
    assert_eq!(names, ["local", "pfs", "elsewhere"]);
    assert_eq!(storage.layers[2].least_bandwidth(), None);
}

#[test]
fn refusals_name_file_and_line() {
    let file = "site-resources.xml";
    let changed = |from: &str, to: &str| refused(&RESOURCES.replacen(from, to, 1), PROJECT, file);
    for (from, to, place, part) in [
        (">450<", ">fast<", "10:48", "<Bandwidth>: \"fast\" is not a number of MB a second"),
        (">450<", ">-1<", "10:48", "above 0"),
        (">200.5<", ">0<", "10:14", "<Size>: \"0\" is not a number of GB"),
        ("<Type>SSD</Type>", "<Speed/>", "10:32", "unknown element <Speed>"),
        ("<MountPoint>mnt</MountPoint>", "", "12:7", "the disk \"pfs\" has no MountPoint"),
        ("<AttachedDisk Name=\"pfs\">", "<AttachedDisk>", "12:7", "<AttachedDisk> has no Name"),
        (">mnt<", ">gone<", "3:3", "gone is not a folder that can be entered"),
        ("</ResourcesList>", "", "", "not valid XML"),
        ("ComputeNode Name=\"worker\"", "ComputeNode Name=\"x\"", "10:5", "has no folder"),
    ] {
        let said = changed(from, to);
        assert!(said.starts_with(&format!("{file}:{place}")), "{said}");
        assert!(said.contains(part), "{said} has no {part:?}");
    }
    let two = RESOURCES.replace("</ResourcesList>", "<ComputeNode Name=\"b\"/></ResourcesList>");
    assert!(refused(&two, PROJECT, file).contains("none of its nodes is named"));
    assert!(refused("<ResourcesList/>", PROJECT, file).contains("1:1: there is no <ComputeNode>"));
    assert!(refused("<List/>", PROJECT, file).contains("<List> is no description of COMPSs"));
    let bare = "<ResourcesList><ComputeNode Name=\"a\"/></ResourcesList>";
    assert!(refused(bare, PROJECT, file).contains("the node \"a\" has no storage"));
}

#[test]
fn a_project_alone_says_where_the_disks_are() {
    let folder = described(RESOURCES, PROJECT);
    let alone = folder.0.join("alone.xml");
    std::fs::copy(folder.0.join("site-project.xml"), &alone).unwrap();
    let error = Storage::read(&alone).expect_err("no disks").to_string();
    assert!(error.contains("resources.xml, which is not beside it"), "{error}");
    let missing = Storage::read(&folder.0.join("no.xml")).expect_err("no file").to_string();
    assert!(missing.contains("cannot be read"), "{missing}");
}
