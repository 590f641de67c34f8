//! Suspend of a machine: programs that use a mount, and its process, are frozen and thawed.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::site::{Site, wait_for};

/// The number of freezes.
const ROUNDS: usize = 20;

/// A control group whose processes are frozen together.
struct FrozenGroup(PathBuf);

impl FrozenGroup {
    fn new(name: &str) -> FrozenGroup {
        let mut roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new).into_iter();
        let root = roots.find(|root| root.join("cgroup.controllers").exists());
        let root = root.expect("control groups of version 2: mount -t cgroup2 none /sys/fs/cgroup/unified");
        let dir = root.join(format!("wirefs-{name}-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        FrozenGroup(dir)
    }

    fn add(&self, process: Pid) {
        fs::write(self.0.join("cgroup.procs"), process.as_raw_nonzero().to_string()).unwrap();
    }

    fn freeze(&self) {
        fs::write(self.0.join("cgroup.freeze"), "1").unwrap();
        wait_for("all to be frozen", || self.has_event("frozen 1"));
    }

    fn thaw(&self) {
        fs::write(self.0.join("cgroup.freeze"), "0").unwrap();
    }

    fn has_event(&self, line: &str) -> bool {
        fs::read_to_string(self.0.join("cgroup.events")).unwrap().lines().any(|known| known == line)
    }
}

impl Drop for FrozenGroup {
    fn drop(&mut self) {
        self.thaw();
        if !std::thread::panicking() {
            wait_for("all to have ended", || self.has_event("populated 0"));
        }
        let _removed = fs::remove_dir(&self.0);
    }
}

// S-74
#[test]
fn programs_frozen_before_their_mount_continue_after_it() {
    let site = Site::unix("frozen");
    fs::write(site.export().join("file"), "text").unwrap();
    // Mode strict: each read waits for the mount's process.
    let mount = site.mount("mnt", &["--mode", "strict"]);
    let (callers, server_of_mount) = (FrozenGroup::new("callers"), FrozenGroup::new("mount"));
    let stop = site.path("stop");
    let mut programs: Vec<_> = (0..3)
        .map(|_| {
            let mut command = site.command("sh");
            let script = "while [ ! -e \"$0\" ]; do cat \"$1\" > /dev/null || exit 1; done";
            command.args(["-c", script]).arg(&stop).arg(mount.join("file")).spawn().unwrap()
        })
        .collect();
    programs.iter().for_each(|program| callers.add(Pid::from_child(program)));
    let status: serde_json::Value =
        serde_json::from_str(&site.wirefs(&["status", "--json", mount.to_str().unwrap()]).succeeds())
            .unwrap();
    let process = Pid::from_raw(i32::try_from(status["process"].as_i64().unwrap()).unwrap()).unwrap();
    server_of_mount.add(process);
    for _ in 0..ROUNDS {
        callers.freeze();
        server_of_mount.freeze();
        server_of_mount.thaw();
        callers.thaw();
    }
    fs::write(&stop, "").unwrap();
    for program in &mut programs {
        assert!(program.wait().unwrap().success(), "a read failed");
    }
    site.unmount(&mount);
}
