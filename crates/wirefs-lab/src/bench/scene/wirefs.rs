//! `wirefs serve` on the server and `wirefs mount` on the client, each with files of its own.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Scene;
use crate::error::LabError;
use crate::program;

const PORT: u16 = 6_440;
/// The directories that a program of this kind takes from its environment.
const PLACES: [&str; 4] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"];

/// The homes of both sides; the server knows the client's key.
pub(super) struct Wirefs {
    server_home: PathBuf,
    client_home: PathBuf,
}

impl Wirefs {
    /// Makes the homes in `state`, the client's key, and the server's list of keys.
    pub(super) fn new(scene: &Scene<'_>, state: &Path) -> Result<Wirefs, LabError> {
        let wirefs = Wirefs { server_home: state.join("server"), client_home: state.join("client") };
        let failed = |error| LabError::io(format!("set up wirefs in {}", state.display()), error);
        for place in [&wirefs.server_home, &wirefs.client_home]
            .iter()
            .flat_map(|home| PLACES.map(|name| home.join(name)))
        {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(place).map_err(failed)?;
        }
        let mut identity = wirefs.at_home(scene.client.command(&scene.plan.wirefs));
        let key = program::run(identity.arg("identity"), "wirefs", "")?;
        let directory = wirefs.server_home.join("XDG_CONFIG_HOME/wirefs");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(directory.join("authorized_keys"))
            .and_then(|mut file| file.write_all(&key.stdout))
            .map_err(failed)?;
        Ok(wirefs)
    }

    /// Exports a directory.
    pub(super) fn serve(&self, scene: &Scene<'_>, export: &Path) -> Result<Child, LabError> {
        let mut command = scene.server.command(&scene.plan.wirefs);
        place(&mut command, &self.server_home);
        command.arg("serve").arg(export);
        command.args(["--listen", &format!("tls://{}:{PORT}", scene.addresses().0)]);
        let log = fs::File::create(self.server_home.join("log"))
            .map_err(|error| LabError::io("make the log of wirefs serve", error))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().map_err(|error| LabError::io("run wirefs serve", error))?;
        scene.wait_for_port("wirefs serve", PORT).inspect_err(|_| {
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
    pub(super) fn at_home(&self, mut command: Command) -> Command {
        place(&mut command, &self.client_home);
        command
    }
}

fn place(command: &mut Command, home: &Path) {
    command.env("HOME", home).envs(PLACES.map(|name| (name, home.join(name))));
}
