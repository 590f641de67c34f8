//! A real sshd on loopback, with temporary keys.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wirefs_lab::port::ReservedPort;

use crate::scratch::Scratch;

pub struct Sshd {
    daemon: Child,
    client_command: String,
    _port: ReservedPort,
}

impl Sshd {
    /// Starts the server.
    ///
    /// # Panics
    /// The OpenSSH server and client are not installed, or do not start: the test fails without them.
    pub fn start(scratch: &Scratch) -> Self {
        let program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .expect("these tests need sshd: install openssh-server");
        for key in ["host_key", "user_key"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(scratch.join(key))
                .status()
                .expect("these tests need ssh-keygen: install openssh-client");
            assert!(made.success());
        }
        std::fs::copy(scratch.join("user_key.pub"), scratch.join("login_keys")).unwrap();
        // sshd needs this directory when it runs as root; its service would create it.
        if rustix::process::geteuid().is_root() {
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let home = scratch.path().display().to_string();
        let reserved = ReservedPort::unused().unwrap();
        let port = reserved.number();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {home}/host_key\nAuthorizedKeysFile {home}/login_keys\n\
             PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\nSetEnv PATH={home}/bin:/usr/bin:/bin\nMaxStartups 100\n"
        );
        std::fs::write(scratch.join("sshd_config"), config).unwrap();
        let log = std::fs::File::create(scratch.join("sshd.log")).unwrap();
        let daemon = Command::new(program)
            .args(["-D", "-e", "-f"])
            .arg(scratch.join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let client_command = format!(
            "ssh -F none -p {port} -i {home}/user_key -o IdentitiesOnly=yes -o StrictHostKeyChecking=no \
             -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        );
        let mut sshd = Self { daemon, client_command, _port: reserved };
        sshd.await_port(port, scratch);
        sshd
    }

    /// Returns the command to use in place of `ssh`.
    pub fn client_command(&self) -> String {
        self.client_command.clone()
    }

    fn await_port(&mut self, port: u16, scratch: &Scratch) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = self.daemon.try_wait().unwrap();
            let log = || std::fs::read_to_string(scratch.join("sshd.log")).unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "sshd does not start: {}", log());
            std::thread::yield_now();
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _killed = self.daemon.kill();
        let _reaped = self.daemon.wait();
    }
}
