//! What is done after a stop: the catalog is read and flushed, files are brought home, and what
//! is left is deleted. It can be stopped itself, and begun again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ops::catalog::{decode, recover, settle, Catalog};

use super::shell::{Act, Call, Shell, CATALOG, CATALOGS};
use super::{canary, Canary};
use crate::checkers::Fault;

/// Recovers; `false`: it was stopped in the middle.
pub(super) fn run(shell: &mut Shell, calls_left: &mut u64) -> Result<bool, Fault> {
    let Some(text) = shell.disks.read(CATALOG.as_ref()) else { return Ok(true) };
    let Some(decoded) = decode(text) else {
        return Err(Fault::new("catalog", format!("{text:?} is no catalog")));
    };
    let whole = text.len() - decoded.torn;
    shell.report.torn += u64::from(decoded.torn > 0);
    shell.say(|| format!("recovery of {} records", decoded.records.len()));
    let mut calls = Vec::new();
    if decoded.torn > 0 && !shell.is(Canary::TornKept) {
        calls.push(Call::Cut(CATALOG.into(), whole));
    }
    if !shell.is(Canary::CatalogTrusted) {
        calls.push(Call::Flush(CATALOG.into()));
    }
    shell.add(calls.into_iter().map(Act::Call), None);
    if !shell.work(calls_left)? {
        return Ok(false);
    }
    let catalog = Catalog::replay(decoded.records);
    shell.catalog = catalog.clone();
    shell.truth.read_again(&catalog);
    let first_is_sweep = shell.is(Canary::SweepFirst);
    if first_is_sweep {
        shell.add(emptied(&catalog), None);
        if !shell.work(calls_left)? {
            return Ok(false);
        }
    }
    files(shell, &catalog)?;
    if !shell.work(calls_left)? {
        return Ok(false);
    }
    let mut acts = Vec::new();
    let last = [Call::Remove(CATALOG.into()), Call::FlushFolder(CATALOGS.into())].map(Act::Call);
    acts.extend(emptied(&catalog));
    if !shell.is(Canary::TemporaryKept) {
        acts.extend(temporaries(shell, &catalog));
    }
    match shell.is(Canary::CatalogFirst) {
        true => acts.splice(..0, last).for_each(drop),
        false => acts.extend(last),
    }
    shell.add(acts, None);
    shell.work(calls_left)
}

/// One job a file.
fn files(shell: &mut Shell, catalog: &Catalog) -> Result<(), Fault> {
    let disks = &shell.disks;
    let mut look = |path: &Path| disks.read(path).map(|bytes| bytes.len() as u64);
    for (file, entry, fate) in recover(catalog, &mut look) {
        shell.say(|| format!("{entry:?}: {fate:?}"));
        shell.truth.told(file.0 as usize, &entry, fate)?;
        shell.report.fates[fate as usize] += 1;
        let renamed = shell.rng.bool();
        let over = shell.temporary(&entry, renamed);
        let mut steps = settle(file, &entry, fate, over.as_deref());
        if shell.is(Canary::AtHomeTrusted) && fate == ops::catalog::Fate::AtHome {
            steps.remove(0);
        }
        let steps = canary::steps(steps, shell.canary);
        shell.add(steps.into_iter().map(Act::Step), None);
    }
    Ok(())
}

fn emptied(catalog: &Catalog) -> Vec<Act> {
    catalog.folders().map(|folder| Act::Empty(folder.to_path_buf())).collect()
}

fn temporaries(shell: &Shell, catalog: &Catalog) -> Vec<Act> {
    let mut folders = BTreeSet::new();
    let mut acts = Vec::new();
    for path in catalog.temporaries().map(PathBuf::from).collect::<BTreeSet<_>>() {
        let folder = path.parent().expect("below a root").to_path_buf();
        if shell.disks.has_folder(&folder) {
            acts.push(Act::Call(Call::Remove(path)));
            folders.insert(folder);
        }
    }
    if !shell.is(Canary::SweepUnflushed) {
        acts.extend(folders.into_iter().map(|folder| Act::Call(Call::FlushFolder(folder))));
    }
    acts
}
