//! An sshd on the server with one temporary key, and sshfs mounts of it with default options.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::LabError;
use crate::lab::Host;
use crate::{port, program};

/// Any port of the server is free.
const PORT: u16 = 2_222;
/// The privilege separation directory of sshd, which its service would have created.
const PRIVILEGE_DIRECTORY: &str = "/run/sshd";

/// A running sshd, killed on drop.
pub struct Sshd {
    process: Child,
    address: Ipv4Addr,
    state: PathBuf,
}

impl Sshd {
    /// Creates keys and configuration in `state` and starts sshd on a host, at one of its addresses.
    pub fn start(server: &Host, address: Ipv4Addr, state: &Path) -> Result<Sshd, LabError> {
        let failed = |error| LabError::io(format!("set up sshd in {}", state.display()), error);
        // ssh rejects keys that other users can read.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(failed)?;
        fs::create_dir_all(PRIVILEGE_DIRECTORY).map_err(failed)?;
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(state.join(key));
            program::run(&mut keygen, "openssh-client", "")?;
        }
        let at = state.display();
        let configuration = format!(
            "Port {PORT}\nListenAddress {address}\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n\
             Subsystem sftp internal-sftp\nLogLevel ERROR\n"
        );
        fs::write(state.join("config"), configuration).map_err(failed)?;
        let log = fs::File::create(state.join("log")).map_err(failed)?;
        let process = server
            .command(program::find("sshd", "openssh-server")?)
            .args(["-D", "-e", "-f"])
            .arg(state.join("config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let sshd = Sshd { process, address, state: state.to_owned() };
        port::wait_for(server, (address, PORT), "sshd")?;
        Ok(sshd)
    }

    /// Returns the command that mounts with sshfs on a client, with default options except for port and keys.
    pub fn mount_command(&self, client: &Host, export: &Path, at: &Path) -> Command {
        let mut sshfs = client.command("sshfs");
        sshfs.arg(format!("root@{}:{}", self.address, export.display())).arg(at);
        sshfs.args(["-p", &PORT.to_string(), "-F", "/dev/null"]);
        for option in self.key_options() {
            sshfs.args(["-o", &option]);
        }
        sshfs
    }

    /// Returns the arguments of `wirefs mount` for a source over SFTP.
    pub fn sftp_source(&self, export: &Path) -> [String; 3] {
        let options = self.key_options().map(|option| format!("-o {option}")).join(" ");
        let source = format!("sftp://root@{}:{PORT}{}", self.address, export.display());
        ["-o".to_owned(), format!("ssh_command=ssh -F /dev/null {options}"), source]
    }

    /// Returns the options of ssh for this server's keys.
    fn key_options(&self) -> [String; 6] {
        let state = self.state.display();
        [
            format!("IdentityFile={state}/user"),
            format!("UserKnownHostsFile={state}/known_hosts"),
            "IdentitiesOnly=yes".to_owned(),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "StrictHostKeyChecking=no".to_owned(),
            "LogLevel=ERROR".to_owned(),
        ]
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
