//! Two hosts, the cables between them, and carriers over these.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use rustix::thread::{CpuSet, sched_setaffinity};
use wirefs_carrier::ether::{EtherAddress, EtherDial};
use wirefs_carrier::tls::{Identity, KnownHosts, TlsDial};
use wirefs_carrier::{Address, Carrier, Dial, HostPort, ListenOptions, Listener};
use wirefs_lab::{Host, Lab, Patch};

use crate::Outcome;

const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Site {
    pub(crate) hosts: [Host; 2],
    pub(crate) patches: Vec<Patch>,
    scratch: PathBuf,
    client: Arc<Identity>,
    options: ListenOptions,
    _lab: Lab,
}

impl Drop for Site {
    fn drop(&mut self) {
        // The rest is in the directory for temporary files.
        let _left = std::fs::remove_dir_all(&self.scratch);
    }
}

/// Pins this thread to one processor.
pub(crate) fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // On a machine with fewer processors the figures show it.
    let _anywhere = sched_setaffinity(None, &set);
}

pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Site {
    pub(crate) fn new(cables: usize, mtu: usize) -> Outcome<Site> {
        let lab = Lab::new("ether-bench")?;
        let hosts = [lab.host("near")?, lab.host("far")?];
        let [near, far] = &hosts;
        let patches = (0..cables).map(|_| lab.patch(near, far)).collect::<Result<Vec<_>, _>>()?;
        let scratch = std::env::temp_dir().join(format!("wirefs-ether-{}", std::process::id()));
        let client = Arc::new(Identity::open(&scratch.join("client"))?);
        let authorized = scratch.join("authorized_keys");
        std::fs::write(&authorized, client.line())?;
        let identity = Some(Arc::new(Identity::open(&scratch.join("server"))?));
        let options = ListenOptions { identity, authorized_keys: Some(authorized) };
        let site = Site { hosts, patches, scratch, client, options, _lab: lab };
        for patch in &site.patches {
            site.ip_on_both(&format!("link set {} mtu {mtu}", patch.device))?;
        }
        Ok(site)
    }

    pub(crate) fn ip_on_both(&self, arguments: &str) -> Outcome<()> {
        self.hosts.iter().try_for_each(|host| run(host, "ip", arguments))
    }

    /// Limits the rate of all cards, in both directions.
    pub(crate) fn limit(&self, rate: &str) -> Outcome<()> {
        for patch in &self.patches {
            let arguments =
                format!("qdisc replace dev {} root tbf rate {rate} burst 64kb limit 512kb", patch.device);
            self.hosts.iter().try_for_each(|host| run(host, "tc", &arguments))?;
        }
        Ok(())
    }

    fn connect_pair(&self, dial: &dyn Dial, listener: &Listener) -> Outcome<(Carrier, Carrier)> {
        std::thread::scope(|scope| {
            let dialed = scope.spawn(|| self.hosts[0].run(|| dial.dial()));
            let server = listener.accept()?.finish(TIMEOUT)?;
            let client = dialed.join().map_err(|_| "the dialing thread failed")???;
            Ok((client, server))
        })
    }

    /// Returns both ends of an ether carrier over all cables.
    pub(crate) fn ether(&self) -> Outcome<(Carrier, Carrier)> {
        let cards: Vec<String> = self.patches.iter().map(|patch| patch.device.clone()).collect();
        let address = Address::Ether(EtherAddress { remotes: Vec::new(), cards: cards.clone() });
        let listener = self.hosts[1].run(|| Listener::bind(&address, &self.options))??;
        let place = EtherAddress { remotes: listener.hardware(), cards };
        let known = KnownHosts::new(self.scratch.join(format!("known_hosts_{}", self.patches.len())));
        let client = Arc::clone(&self.client);
        let dial = self.hosts[0].run(|| EtherDial::open(place, client, known, TIMEOUT))??;
        self.connect_pair(&dial, &listener)
    }

    /// Returns both ends of a tcp+tls carrier over the first cable.
    pub(crate) fn tls(&self) -> Outcome<(Carrier, Carrier)> {
        let any = Address::Tls(HostPort { host: "0.0.0.0".into(), port: 0 });
        let listener = self.hosts[1].run(|| Listener::bind(&any, &self.options))??;
        let Address::Tls(HostPort { port, .. }) = *listener.address() else {
            return Err("not tls".into());
        };
        let host = HostPort { host: self.address(0)?.to_string(), port };
        let known = KnownHosts::new(self.scratch.join(format!("known_hosts_tls_{port}")));
        let dial = TlsDial::new(host, Arc::clone(&self.client), known, TIMEOUT);
        self.connect_pair(&dial, &listener)
    }

    fn address(&self, cable: usize) -> Outcome<Ipv4Addr> {
        Ok(self.patches.get(cable).ok_or("no such cable")?.address_b)
    }

    /// Returns both ends of a TCP connection over the first cable, or of an MPTCP connection over all.
    pub(crate) fn tcp(&self, is_multipath: bool) -> Outcome<(TcpStream, TcpStream)> {
        let protocol = is_multipath.then_some(ipproto::MPTCP);
        let open = || socket(AddressFamily::INET, SocketType::STREAM, protocol);
        let listener: TcpListener = self.hosts[1].run(|| {
            let socket: OwnedFd = open()?;
            rustix::net::bind(&socket, &std::net::SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))?;
            rustix::net::listen(&socket, 8)?;
            Ok::<TcpListener, rustix::io::Errno>(socket.into())
        })??;
        let to = std::net::SocketAddrV4::new(self.address(0)?, listener.local_addr()?.port());
        let near: TcpStream = self.hosts[0].run(|| {
            let socket: OwnedFd = open()?;
            rustix::net::connect(&socket, &to)?;
            Ok::<TcpStream, rustix::io::Errno>(socket.into())
        })??;
        let far = listener.accept()?.0;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        Ok((near, far))
    }
}

pub(crate) fn run(host: &Host, program: &str, arguments: &str) -> Outcome<()> {
    let status = host.command(program).args(arguments.split_whitespace()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{program} {arguments}: {status}").into()) }
}
