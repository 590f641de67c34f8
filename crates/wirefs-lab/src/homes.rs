//! Home directories for a wirefs server and a client; the server's list of authorized keys has the client's key.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::LabError;
use crate::lab::Host;
use crate::program;

/// The environment variables from which wirefs takes its directories.
const HOME_VARIABLES: [&str; 4] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"];

/// The home directories of both sides.
pub struct WirefsHomes {
    server: PathBuf,
    client: PathBuf,
}

impl WirefsHomes {
    /// Creates the home directories in `state`, the client's key with the program `wirefs`, and the server's list of
    /// authorized keys.
    pub fn new(client: &Host, wirefs: &Path, state: &Path) -> Result<WirefsHomes, LabError> {
        let homes = WirefsHomes { server: state.join("server"), client: state.join("client") };
        let failed = |error| LabError::io(format!("set up wirefs in {}", state.display()), error);
        for directory in
            [&homes.server, &homes.client].iter().flat_map(|home| HOME_VARIABLES.map(|name| home.join(name)))
        {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        }
        let mut identity = homes.with_client_home(client.command(wirefs));
        let key = program::run(identity.arg("identity"), "wirefs", "")?;
        let config = homes.server.join("XDG_CONFIG_HOME/wirefs");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&config).map_err(failed)?;
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(config.join("authorized_keys"))
            .and_then(|mut file| file.write_all(&key.stdout))
            .map_err(failed)?;
        Ok(homes)
    }

    /// Creates the file for the server's error output.
    pub fn server_log(&self) -> Result<fs::File, LabError> {
        let made = fs::File::create(self.server.join("log"));
        made.map_err(|error| LabError::io("make the log of wirefs serve", error))
    }

    /// Adds the server's environment to a command.
    pub fn with_server_home(&self, command: Command) -> Command {
        at_home(command, &self.server)
    }

    /// Adds the client's environment to a command.
    pub fn with_client_home(&self, command: Command) -> Command {
        at_home(command, &self.client)
    }
}

fn at_home(mut command: Command, home: &Path) -> Command {
    command.env("HOME", home).envs(HOME_VARIABLES.map(|name| (name, home.join(name))));
    command
}
