//! A part of one processor for a program and all that it starts.

use std::error::Error;
use std::path::{Path, PathBuf};

/// The time of which a part is given, in microseconds: short beside a program that waits, long beside a switch of programs.
const PERIOD_US: u64 = 20_000;
/// Where the kernel's second edition is, and the first one's controller of processors.
const UNIFIED: &str = "/sys/fs/cgroup";
const CPU: &str = "/sys/fs/cgroup/cpu";

/// A control group, gone when it is dropped.
pub(crate) struct Quota(PathBuf);

impl Quota {
    /// Makes a group with so many hundredths of a processor.
    pub(crate) fn new(percent: u64) -> Result<Quota, Box<dyn Error>> {
        let is_unified = Path::new(UNIFIED).join("cgroup.controllers").exists();
        let above = Path::new(if is_unified { UNIFIED } else { CPU });
        let group = Quota(above.join(format!("wirefs-tables-{}", std::process::id())));
        let quota_us = PERIOD_US * percent / 100;
        let write = |name: &str, text: String| {
            let path = group.0.join(name);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        if is_unified {
            std::fs::write(above.join("cgroup.subtree_control"), "+cpu")?;
        }
        std::fs::create_dir(&group.0).map_err(|error| format!("{}: {error}", group.0.display()))?;
        if is_unified {
            write("cpu.max", format!("{quota_us} {PERIOD_US}"))?;
        } else {
            write("cpu.cfs_period_us", PERIOD_US.to_string())?;
            write("cpu.cfs_quota_us", quota_us.to_string())?;
        }
        Ok(group)
    }

    /// Write a process's number here and it belongs to the group.
    pub(crate) fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Only while somebody is in it can it not go.
        let _gone = std::fs::remove_dir(&self.0);
    }
}
