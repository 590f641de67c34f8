//! Mounts of the exported directory on the client, by each peer's own program.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

use super::peer::BenchPeer;
use crate::error::LabError;
use crate::lab::Host;
use crate::program;

/// A mounted tree; dropping it unmounts it.
pub struct BenchMount {
    at: PathBuf,
    /// None if nothing is mounted.
    unmount: Option<Command>,
    /// The server process of this mount, if it has its own.
    server: Option<Child>,
}

impl BenchMount {
    /// Returns the directory itself in place of a mount.
    pub fn local(export: &Path) -> BenchMount {
        BenchMount { at: export.to_owned(), unmount: None, server: None }
    }

    /// Mounts at `at` with `command`; the mount owns `server` and ends it on drop.
    pub fn by(
        mut command: Command,
        at: &Path,
        unmount: Command,
        server: Option<Child>,
    ) -> Result<BenchMount, LabError> {
        // Created first: if the command fails half-way, drop cleans up.
        let mount = BenchMount { at: at.to_owned(), unmount: Some(unmount), server };
        program::run(&mut command, "sshfs", "")?;
        Ok(mount)
    }

    /// Returns the mount point.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for BenchMount {
    fn drop(&mut self) {
        if let Some(unmount) = &mut self.unmount
            && program::run(unmount, "fuse3", "").is_err()
        {
            // The mount is busy or its program has died; the mount point must be freed anyway.
            program::run(Command::new("umount").args(["--lazy", "--force"]).arg(&self.at), "mount", "").ok();
        }
        if let Some(server) = &mut self.server {
            // SIGTERM: after an unclean end the next server of the directory would start with a grace period.
            kill_process(Pid::from_child(server), Signal::TERM).ok();
            server.wait().ok();
        }
    }
}

/// Returns the command that unmounts `at`.
pub fn unmount_command(client: &Host, peer: BenchPeer, wirefs: &Path, at: &Path) -> Command {
    let mut unmount = match peer {
        BenchPeer::Wirefs | BenchPeer::NoJournal | BenchPeer::OneConnection | BenchPeer::Sftp => {
            let mut command = client.command(wirefs);
            command.arg("umount");
            command
        }
        BenchPeer::Local | BenchPeer::Bare | BenchPeer::Sshfs => {
            let mut command = client.command("fusermount3");
            command.arg("-u");
            command
        }
    };
    unmount.arg(at);
    unmount
}
