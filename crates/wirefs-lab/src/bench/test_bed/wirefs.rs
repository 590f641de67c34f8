//! `wirefs serve` on the server and `wirefs mount` on the client, each with its own home directory.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::BenchTestBed;
use crate::error::LabError;
use crate::homes::WirefsHomes;
use crate::port;

const PORT: u16 = 6_440;
/// The home directories of both sides.
pub(super) struct WirefsPeer(WirefsHomes);

impl WirefsPeer {
    /// Creates the home directories in `state`.
    pub(super) fn new(test_bed: &BenchTestBed<'_>, state: &Path) -> Result<WirefsPeer, LabError> {
        WirefsHomes::new(&test_bed.client, &test_bed.plan.wirefs, state).map(WirefsPeer)
    }

    /// Exports a directory.
    pub(super) fn serve(&self, test_bed: &BenchTestBed<'_>, export: &Path) -> Result<Child, LabError> {
        let mut command = self.0.with_server_home(test_bed.server.command(&test_bed.plan.wirefs));
        command.arg("serve").arg(export);
        command.args(["--listen", &format!("tls://{}:{PORT}", test_bed.addresses().0)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(self.0.server_log()?);
        let mut child = command.spawn().map_err(|error| LabError::io("run wirefs serve", error))?;
        port::wait_for(&test_bed.server, (test_bed.addresses().0, PORT), "wirefs serve").inspect_err(
            |_| {
                child.kill().ok();
                child.wait().ok();
            },
        )?;
        Ok(child)
    }

    /// Returns the command that mounts the export.
    pub(super) fn mount_command(&self, test_bed: &BenchTestBed<'_>, at: &Path) -> Command {
        let mut command = self.at_home(test_bed.client.command(&test_bed.plan.wirefs));
        // Without a disk cache, so that cold steps are cold.
        command
            .args(["mount", "--no-cache"])
            .arg(format!("tls://{}:{PORT}/", test_bed.addresses().0))
            .arg(at);
        command
    }

    /// Adds the client's environment to a command.
    pub(super) fn at_home(&self, command: Command) -> Command {
        self.0.with_client_home(command)
    }
}
