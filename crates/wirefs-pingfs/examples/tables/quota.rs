//! A CPU quota for a program and its children.

use std::error::Error;
use std::path::{Path, PathBuf};

/// The period of the quota in microseconds: shorter than a program waits, longer than a context switch.
const PERIOD_US: u64 = 20_000;
/// The mount points of cgroup v2, and of the CPU controller of v1.
const UNIFIED: &str = "/sys/fs/cgroup";
const CPU: &str = "/sys/fs/cgroup/cpu";

/// A control group, removed on drop.
pub(crate) struct Quota(PathBuf);

impl Quota {
    /// Creates a group with this CPU quota.
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

    /// Returns the file to which a process id is written to join the group.
    pub(crate) fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // This fails only while a process is in the group.
        let _gone = std::fs::remove_dir(&self.0);
    }
}
