//! `wirefs serve` on the server and `wirefs mount` on the client, each with files of its own.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::Scene;
use crate::error::LabError;
use crate::homes::Homes;
use crate::port;

const PORT: u16 = 6_440;
/// Both sides, each with a home of its own.
pub(super) struct Wirefs(Homes);

impl Wirefs {
    /// Makes the homes in `state`.
    pub(super) fn new(scene: &Scene<'_>, state: &Path) -> Result<Wirefs, LabError> {
        Homes::new(&scene.client, &scene.plan.wirefs, state).map(Wirefs)
    }

    /// Exports a directory.
    pub(super) fn serve(&self, scene: &Scene<'_>, export: &Path) -> Result<Child, LabError> {
        let mut command = self.0.at_server(scene.server.command(&scene.plan.wirefs));
        command.arg("serve").arg(export);
        command.args(["--listen", &format!("tls://{}:{PORT}", scene.addresses().0)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(self.0.server_log()?);
        let mut child = command.spawn().map_err(|error| LabError::io("run wirefs serve", error))?;
        port::wait_for(&scene.server, (scene.addresses().0, PORT), "wirefs serve").inspect_err(|_| {
            child.kill().ok();
            child.wait().ok();
        })?;
        Ok(child)
    }

    /// Mounts what is exported.
    pub(super) fn mount_command(&self, scene: &Scene<'_>, at: &Path) -> Command {
        let mut command = self.at_home(scene.client.command(&scene.plan.wirefs));
        // What is called cold is to be cold.
        command.args(["mount", "--no-cache"]).arg(format!("tls://{}:{PORT}/", scene.addresses().0)).arg(at);
        command
    }

    /// A command with the client's files.
    pub(super) fn at_home(&self, command: Command) -> Command {
        self.0.at_client(command)
    }
}
