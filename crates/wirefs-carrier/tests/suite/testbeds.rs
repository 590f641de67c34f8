//! A testbed for each kind of carrier, with both ends in this process.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use wirefs_carrier::ether::{EtherAddress, EtherDial};
use wirefs_carrier::limits::CONNECT_TIMEOUT;
use wirefs_carrier::ssh::{SshDial, SshOptions};
use wirefs_carrier::tls::{Identity, KnownHosts, TlsDial};
use wirefs_carrier::{
    Address, Carrier, CarrierLost, Dial, DialError, FrameSource, HostPort, ListenError, ListenOptions,
    Listener, Login, Stdio, TcpDial, UnixDial, memory,
};
use wirefs_lab::{Host, Lab, Patch};

use crate::remote_program;
use crate::scratch::{Scratch, script};
use crate::sshd::Sshd;
use crate::traffic::PATIENCE;

/// A pair of peers that can connect repeatedly.
pub trait Testbed {
    /// Returns the client's and the server's end of a new connection.
    fn connect(&self) -> (Carrier, Carrier);
}

pub struct Memory;

impl Testbed for Memory {
    fn connect(&self) -> (Carrier, Carrier) {
        memory::pair().unwrap()
    }
}

fn connect_pair(dial: &dyn Dial, listener: &Listener) -> (Carrier, Carrier) {
    std::thread::scope(|scope| {
        let dialed = scope.spawn(|| dial.dial().unwrap());
        let server = listener.accept().unwrap().finish(PATIENCE).unwrap();
        (dialed.join().unwrap(), server)
    })
}

pub fn host_of(listener: &Listener) -> HostPort {
    match listener.address() {
        Address::Tls(host) | Address::TcpPlain(host) => host.clone(),
        Address::Unix(_) | Address::Ether(_) | Address::Ssh(_) => panic!("not over TCP"),
    }
}

pub struct Unix {
    listener: Listener,
    dial: UnixDial,
    _scratch: Scratch,
}

impl Unix {
    pub fn new() -> Self {
        let scratch = Scratch::new();
        let path = scratch.join("socket");
        let listener = Listener::bind(&Address::Unix(path.clone()), &ListenOptions::default()).unwrap();
        Self { listener, dial: UnixDial::new(path), _scratch: scratch }
    }
}

impl Testbed for Unix {
    fn connect(&self) -> (Carrier, Carrier) {
        connect_pair(&self.dial, &self.listener)
    }
}

pub struct TcpPlain {
    listener: Listener,
    dial: TcpDial,
}

impl TcpPlain {
    pub fn new() -> Self {
        let address = "tcp+plain://127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(&address, &ListenOptions::default()).unwrap();
        let dial = TcpDial::new(host_of(&listener), CONNECT_TIMEOUT);
        Self { listener, dial }
    }

    pub fn address(&self) -> HostPort {
        host_of(&self.listener)
    }
}

impl Testbed for TcpPlain {
    fn connect(&self) -> (Carrier, Carrier) {
        connect_pair(&self.dial, &self.listener)
    }
}

/// A server that authorizes the client's key, each with its own directory.
pub struct Tls {
    pub listener: Listener,
    pub client: Arc<Identity>,
    pub scratch: Scratch,
}

impl Tls {
    pub fn new() -> Self {
        let testbed = Self::without_keys();
        std::fs::write(testbed.authorized(), format!("# laptop\n\n{}\n", testbed.client.line())).unwrap();
        testbed
    }

    /// Like `new`, without authorized keys.
    pub fn without_keys() -> Self {
        let scratch = Scratch::new();
        let client = Arc::new(Identity::open(&scratch.join("client")).unwrap());
        let listener = Self::listen(&scratch, "server");
        Self { listener, client, scratch }
    }

    pub fn listen(scratch: &Scratch, name: &str) -> Listener {
        let options = ListenOptions {
            identity: Some(Arc::new(Identity::open(&scratch.join(name)).unwrap())),
            authorized_keys: Some(scratch.join("authorized_keys")),
        };
        Listener::bind(&"tls://127.0.0.1:0".parse().unwrap(), &options).unwrap()
    }

    pub fn authorized(&self) -> PathBuf {
        self.scratch.join("authorized_keys")
    }

    pub fn known_hosts(&self) -> PathBuf {
        self.scratch.join("client/known_hosts")
    }

    pub fn dial(&self) -> TlsDial {
        self.dial_to(&self.listener)
    }

    pub fn dial_to(&self, listener: &Listener) -> TlsDial {
        let known = KnownHosts::new(self.known_hosts());
        TlsDial::new(host_of(listener), Arc::clone(&self.client), known, PATIENCE)
    }
}

impl Testbed for Tls {
    fn connect(&self) -> (Carrier, Carrier) {
        connect_pair(&self.dial(), &self.listener)
    }
}

/// Two hosts joined by cables, with nodes over them.
pub struct Ether {
    pub listener: Listener,
    pub dial: EtherDial,
    pub patches: Vec<Patch>,
    pub hosts: [Host; 2],
    pub scratch: Scratch,
    _lab: Lab,
}

impl Ether {
    /// With one cable, and an authorized client.
    pub fn new() -> Self {
        Self::with(1, 1_500)
    }

    pub fn with(cables: usize, mtu: usize) -> Self {
        let scratch = Scratch::new();
        let client = Identity::open(&scratch.join("client")).unwrap();
        std::fs::write(scratch.join("authorized_keys"), format!("{}\n", client.line())).unwrap();
        Self::without_keys(scratch, cables, mtu)
    }

    /// With the files of the scratch directory: `client`, `server`, `authorized_keys`.
    pub fn without_keys(scratch: Scratch, cables: usize, mtu: usize) -> Self {
        let lab = Lab::new("carrier").unwrap();
        let hosts = ["near", "far"].map(|name| lab.host(name).unwrap());
        let patches: Vec<Patch> = (0..cables).map(|_| lab.patch(&hosts[0], &hosts[1]).unwrap()).collect();
        for (host, patch) in hosts.iter().flat_map(|host| patches.iter().map(move |patch| (host, patch))) {
            ip(host, &format!("link set {} mtu {mtu}", patch.device));
        }
        let listener = hosts[1].run(|| Self::listen(&scratch, &patches).unwrap()).unwrap();
        let dial = hosts[0].run(|| Self::dial_to(&scratch, &listener, &patches, "client").unwrap()).unwrap();
        Self { listener, dial, patches, hosts, scratch, _lab: lab }
    }

    fn cards(patches: &[Patch]) -> Vec<String> {
        patches.iter().map(|patch| patch.device.clone()).collect()
    }

    pub fn listen(scratch: &Scratch, patches: &[Patch]) -> Result<Listener, ListenError> {
        let options = ListenOptions {
            identity: Some(Arc::new(Identity::open(&scratch.join("server")).unwrap())),
            authorized_keys: Some(scratch.join("authorized_keys")),
        };
        let address = format!("ether://{}", Self::cards(patches).join(","));
        Listener::bind(&address.parse().unwrap(), &options)
    }

    pub fn dial_to(
        scratch: &Scratch,
        listener: &Listener,
        patches: &[Patch],
        name: &str,
    ) -> Result<EtherDial, DialError> {
        let place = EtherAddress { remotes: listener.hardware(), cards: Self::cards(patches) };
        let known = KnownHosts::new(scratch.join(name).join("known_hosts"));
        let identity = Arc::new(Identity::open(&scratch.join(name)).unwrap());
        EtherDial::open(place, identity, known, PATIENCE)
    }
}

impl Testbed for Ether {
    fn connect(&self) -> (Carrier, Carrier) {
        connect_pair(&self.dial, &self.listener)
    }
}

/// Runs `ip` on a host.
pub fn ip(host: &Host, arguments: &str) {
    let status = host.command("ip").args(arguments.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// A login on this machine, whose `wirefs` is a program that passes its standard streams to the test.
pub struct Ssh {
    pub scratch: Scratch,
    arrivals: UnixListener,
    command: String,
    _daemon: Option<Sshd>,
}

impl Ssh {
    /// `ssh` is a script that runs the remote command locally.
    pub fn with_script() -> Self {
        let scratch = Scratch::new();
        let ssh = scratch.join("ssh");
        let home = scratch.path().display();
        script(
            &ssh,
            &format!(
                "#!/bin/sh\nfor last; do :; done\nHOME={home} PATH={home}/bin:/usr/bin:/bin\nexport HOME PATH\nexec sh -c \"$last\"\n"
            ),
        );
        let command = ssh.display().to_string();
        Self::prepare(scratch, command, None)
    }

    /// A real sshd on loopback, with temporary keys.
    pub fn with_sshd() -> Self {
        let scratch = Scratch::new();
        let daemon = Sshd::start(&scratch);
        let command = daemon.client_command();
        Self::prepare(scratch, command, Some(daemon))
    }

    fn prepare(scratch: Scratch, command: String, daemon: Option<Sshd>) -> Self {
        let socket = scratch.join("arrivals");
        let arrivals = UnixListener::bind(&socket).unwrap();
        std::fs::create_dir_all(scratch.join("bin")).unwrap();
        script(
            &scratch.join("bin/wirefs"),
            &format!(
                "#!/bin/sh\necho \"$@\" >{}\n{}='{}' exec '{}' --exact --nocapture --test-threads=1 \
                 remote_program::hands_over_its_standard_streams_when_asked\n",
                scratch.join("arguments").display(),
                remote_program::SOCKET,
                socket.display(),
                std::env::current_exe().unwrap().display()
            ),
        );
        Self { scratch, arrivals, command, _daemon: daemon }
    }

    pub fn options(&self) -> SshOptions {
        SshOptions::default().with_command(&self.command)
    }

    pub fn dial(&self, path: &[u8]) -> SshDial {
        SshDial::new(login(), path.to_vec(), self.options())
    }

    /// Like `options`, for a login whose home is the scratch directory.
    pub fn options_at_home(&self) -> SshOptions {
        let wrapper = self.scratch.join("ssh_at_home");
        script(
            &wrapper,
            &format!(
                "#!/bin/sh\nfor last; do :; done\n\
                 exec {} 127.0.0.1 \"HOME={}; export HOME; $last\"\n",
                self.command,
                self.scratch.path().display()
            ),
        );
        SshOptions::default().with_command(wrapper)
    }

    pub fn bin(&self) -> PathBuf {
        self.scratch.join("bin/wirefs")
    }

    /// Returns the arguments of `wirefs`.
    pub fn arguments(&self) -> String {
        std::fs::read_to_string(self.scratch.join("arguments")).unwrap()
    }

    /// Dials `path`; returns both ends.
    pub fn connect_to(&self, path: &[u8]) -> (Carrier, Carrier) {
        std::thread::scope(|scope| {
            let dialed = scope.spawn(|| self.dial(path).dial().unwrap());
            let (remote_program, _) = self.arrivals.accept().unwrap();
            let [input, output] = receive_streams(&remote_program);
            let mut server = Stdio::from_fds(input, output).unwrap();
            server.source = Box::new(WithProgram { source: server.source, _far_end: remote_program });
            (dialed.join().unwrap(), server)
        })
    }
}

impl Testbed for Ssh {
    fn connect(&self) -> (Carrier, Carrier) {
        self.connect_to(b"/srv/it's here")
    }
}

pub fn login() -> Login {
    Login { user: None, host: "127.0.0.1".into(), port: None }
}

fn receive_streams(remote_program: &UnixStream) -> [OwnedFd; 2] {
    let mut space = vec![std::mem::MaybeUninit::uninit(); 64];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(remote_program, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let mut streams = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            streams.extend(received);
        }
    }
    streams.try_into().unwrap()
}

/// Keeps the remote program alive while its carrier is received from.
struct WithProgram {
    source: Box<dyn FrameSource>,
    _far_end: UnixStream,
}

impl FrameSource for WithProgram {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        self.source.receive()
    }
}

/// Returns whether a file exists, for messages.
pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
