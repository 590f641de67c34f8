//! Mounting the server's directory on the client, by each peer's own program.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

use super::peer::Peer;
use crate::error::LabError;
use crate::lab::Host;
use crate::program;

/// A mounted tree; dropping it unmounts it.
pub struct Mount {
    at: PathBuf,
    /// None where nothing is mounted.
    unmount: Option<Command>,
    /// The server that was started for this mount.
    server: Option<Child>,
}

impl Mount {
    /// The directory itself.
    pub fn local(export: &Path) -> Mount {
        Mount { at: export.to_owned(), unmount: None, server: None }
    }

    /// What `command` mounts at `at`, from `server` if that was started for it.
    pub fn by(
        mut command: Command,
        at: &Path,
        unmount: Command,
        server: Option<Child>,
    ) -> Result<Mount, LabError> {
        // Made first: when the command fails half-way, dropping it tidies up.
        let mount = Mount { at: at.to_owned(), unmount: Some(unmount), server };
        program::run(&mut command, "sshfs", "")?;
        Ok(mount)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(unmount) = &mut self.unmount
            && program::run(unmount, "fuse3", "").is_err()
        {
            // Busy, or its program is gone: the mount point must come free all the same.
            program::run(Command::new("umount").args(["--lazy", "--force"]).arg(&self.at), "mount", "").ok();
        }
        if let Some(server) = &mut self.server {
            // In order: after any other end, the next server of this directory would let changes wait.
            kill_process(Pid::from_child(server), Signal::TERM).ok();
            server.wait().ok();
        }
    }
}

/// How to unmount what a peer mounted at `at`.
pub fn unmount_command(client: &Host, peer: Peer, wirefs: &Path, at: &Path) -> Command {
    let mut unmount = match peer {
        Peer::Wirefs | Peer::Waiting | Peer::One => {
            let mut command = client.command(wirefs);
            command.arg("umount");
            command
        }
        Peer::Local | Peer::Bare | Peer::Sshfs => {
            let mut command = client.command("fusermount3");
            command.arg("-u");
            command
        }
    };
    unmount.arg(at);
    unmount
}
