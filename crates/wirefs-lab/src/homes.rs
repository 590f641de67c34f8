//! A server and a client of wirefs with files of their own, of which the server knows the client's key.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::LabError;
use crate::lab::Host;
use crate::program;

/// The directories that a program of this kind takes from its environment.
const PLACES: [&str; 4] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"];

/// The homes of both sides; the server knows the client's key.
pub struct Homes {
    server: PathBuf,
    client: PathBuf,
}

impl Homes {
    /// Makes the homes in `state`, the client's key by the program `wirefs`, and the server's list of keys.
    pub fn new(client: &Host, wirefs: &Path, state: &Path) -> Result<Homes, LabError> {
        let homes = Homes { server: state.join("server"), client: state.join("client") };
        let failed = |error| LabError::io(format!("set up wirefs in {}", state.display()), error);
        for place in [&homes.server, &homes.client].iter().flat_map(|home| PLACES.map(|name| home.join(name)))
        {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(place).map_err(failed)?;
        }
        let mut identity = homes.at_client(client.command(wirefs));
        let key = program::run(identity.arg("identity"), "wirefs", "")?;
        let directory = homes.server.join("XDG_CONFIG_HOME/wirefs");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(directory.join("authorized_keys"))
            .and_then(|mut file| file.write_all(&key.stdout))
            .map_err(failed)?;
        Ok(homes)
    }

    /// Where the server's words to people go.
    pub fn server_log(&self) -> Result<fs::File, LabError> {
        let made = fs::File::create(self.server.join("log"));
        made.map_err(|error| LabError::io("make the log of wirefs serve", error))
    }

    /// A command with the server's files.
    pub fn at_server(&self, command: Command) -> Command {
        at_home(command, &self.server)
    }

    /// A command with the client's files.
    pub fn at_client(&self, command: Command) -> Command {
        at_home(command, &self.client)
    }
}

fn at_home(mut command: Command, home: &Path) -> Command {
    command.env("HOME", home).envs(PLACES.map(|name| (name, home.join(name))));
    command
}
