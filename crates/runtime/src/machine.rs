//! What this machine offers: processors, memory, an engine, and what its kernel killed.

use std::path::{Path, PathBuf};

/// What this process may use of the machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Processors that this process may run on.
    pub processors: usize,
    /// Bytes of memory that it may use: physical, or the limit of its control group.
    pub memory_bytes: u64,
    /// The engine that file operations get here, and why that one.
    pub engine: engine::About,
}

impl Machine {
    /// Looks.
    pub fn probe() -> Machine {
        Machine { processors: processors(), memory_bytes: memory_bytes(), engine: engine::about() }
    }
}

/// Processors that this process may run on; at least 1.
pub fn processors() -> usize {
    exec::native::thread::processors().len().max(1)
}

/// Bytes of memory that this process may use.
pub fn memory_bytes() -> u64 {
    // SAFETY: sysconf reads no memory of ours.
    let (pages, page) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let physical = u64::try_from(pages).unwrap_or(0) * u64::try_from(page).unwrap_or(0);
    let limits = groups().into_iter().flat_map(|group| {
        ["memory.max", "memory.limit_in_bytes"].map(|name| number(&group.join(name)))
    });
    limits.flatten().filter(|limit| *limit > 0).fold(physical, u64::min)
}

fn number(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Folders of the memory control groups of this process, its own first, then its parents.
fn groups() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let roots: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            list if list.split(',').any(|one| one == "memory") => &["/sys/fs/cgroup/memory"],
            _ => continue,
        };
        for root in roots {
            let mut group = Some(Path::new(path));
            while let Some(path) = group {
                let relative = path.strip_prefix("/").unwrap_or(path);
                found.push(Path::new(root).join(relative));
                group = path.parent();
            }
        }
    }
    found
}

/// How many processes the out-of-memory killer ended so far in our control groups.
pub fn oom_kills() -> u64 {
    let mut most = 0;
    for group in groups() {
        for name in ["memory.events", "memory.oom_control"] {
            let text = std::fs::read_to_string(group.join(name)).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
            most = most.max(count.and_then(|n| n.trim().parse().ok()).unwrap_or(0));
        }
    }
    most.max(vmstat_oom_kills())
}

/// How many processes the out-of-memory killer ended on the whole machine.
fn vmstat_oom_kills() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_machine() {
        let machine = Machine::probe();
        assert!(machine.processors >= 1);
        assert!(machine.memory_bytes > 1 << 20);
        assert!(["io_uring", "threads"].contains(&machine.engine.name));
        assert!(!machine.engine.reason.is_empty());
        assert!(oom_kills() < u64::MAX);
    }
}
