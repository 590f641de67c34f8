//! The commit and the machine that a report was measured with.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the commit of the working directory as Markdown, and whether files differ from it.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changes| !changes.is_empty());
    if changed { format!("`{commit}` and changes since") } else { format!("`{commit}`") }
}

/// Returns the processor, the kernel and the load average of this machine.
pub fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = first_line("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    let kernel = first_line("/proc/sys/kernel/osrelease");
    format!("{model}, {cores} cores, Linux {kernel}, load {load} at the end")
}

/// Returns the first line of a file, empty if the file cannot be read.
pub fn first_line(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}
