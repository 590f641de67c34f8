//! Joining the other nodes, or becoming the first one.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{EventfdFlags, eventfd};
use wirefs_blocks::store::BlockStore;
use wirefs_echo::EchoKey;
use wirefs_echo::replication::control_channel::{ControlChannel, InstanceId};
use wirefs_echo::replication::{Replica, ReplicaId, ReplicationTimers};
use wirefs_raw::{EchoIdent, EchoRelay, RawError};

use super::background::BackgroundTasks;
use super::local_replica::LocalReplica;
use super::{NodeOptions, NodeShared, ReplicatedStore, checker, control_loop};
use crate::limits::{
    CONTROL_BUFFER_BYTES, DEAD_AFTER, DISCOVERY_WAIT, HEARTBEAT, JOIN_WAIT, RETRY_MAX, RETRY_MIN,
};
use crate::options::KeepOption;
use crate::store::{EchoStore, packed};

/// Interval at which the membership is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The main function of a thread.
type Run = fn(&Arc<NodeShared>);

/// The reason why a node cannot join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Control packets need hosts with IPv4 addresses.
    #[error("nodes need a host with an IPv4 address, and the first one is {0}: name another --host first")]
    NoHost(IpAddr),
    /// Without an index the node would not know which blocks it has.
    #[error("a node needs an index of its blocks: use --keep=index")]
    NoIndex,
    /// A joining node cannot have a tree of its own.
    #[error("the other nodes have a tree already: omit --load, or unmount their tree first")]
    TreeExists,
    /// Not all blocks arrived.
    #[error(
        "the other nodes were found, but not all their blocks arrived within {} s: make sure that the hosts have room \
         for all of them, and that the packets are as large as theirs",
        JOIN_WAIT.as_secs()
    )]
    TooLate,
    /// A socket, a thread or randomness failed.
    #[error("cannot {action}: {source}")]
    System {
        /// The attempted action, as the end of "cannot …".
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// A raw socket failed.
    #[error(transparent)]
    Raw(#[from] RawError),
}

fn failed(action: &'static str) -> impl Fn(std::io::Error) -> JoinError {
    move |source| JoinError::System { action, source }
}

/// Returns the address by which a host knows this machine.
fn own_address(host: Ipv4Addr) -> std::io::Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // No packet is sent: the system only chooses the route.
    socket.connect((host, 7))?;
    match socket.local_addr()?.ip() {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(std::io::Error::other("the route uses IPv6")),
    }
}

/// Derives the ICMP identifier of all control packets from the key.
fn ident(key: &EchoKey) -> Result<EchoIdent, JoinError> {
    let secret = Salt::new(HKDF_SHA256, b"wirefs-pingfs letters").extract(&key.0);
    let mut bytes = [0; 32];
    let filled = secret.expand(&[b"ident"], HKDF_SHA256).and_then(|okm| okm.fill(&mut bytes));
    filled.map_err(|_| failed("derive a number from the key")(std::io::Error::other("refused")))?;
    let [high, low, ..] = bytes;
    Ok(EchoIdent(u16::from_be_bytes([high, low])))
}

impl ReplicatedStore {
    /// Joins the other nodes and gets all their blocks. If there is no tree yet, the joining node with the
    /// lowest number starts it, with the tree of its store or with none.
    ///
    /// # Cost
    /// Three seconds if no node is found; else the transfer of all blocks.
    ///
    /// # Errors
    /// [`JoinError`]; each message names the remedy.
    pub fn open(echo: Arc<EchoStore>, options: &NodeOptions) -> Result<ReplicatedStore, JoinError> {
        if echo.options().keep != KeepOption::Index {
            return Err(JoinError::NoIndex);
        }
        let host = match echo.hosts().first() {
            Some(IpAddr::V4(host)) => *host,
            Some(other @ IpAddr::V6(_)) => return Err(JoinError::NoHost(*other)),
            None => return Err(JoinError::NoHost(IpAddr::V4(Ipv4Addr::UNSPECIFIED))),
        };
        let address = own_address(host).map_err(failed("find this machine's address"))?;
        let mut instance = [0; 8];
        let filled = SystemRandom::new().fill(&mut instance);
        filled.map_err(|_| failed("get random numbers")(std::io::Error::other("none given")))?;
        let (me, instance) = (ReplicaId(options.node), InstanceId(u64::from_ne_bytes(instance).max(1)));
        let channel =
            ControlChannel::new(options.key.clone(), me, instance, address.octets(), echo.packet_bytes());
        let channel = channel.ok_or_else(|| failed("use the key")(std::io::Error::other("refused")))?;
        let rtt = echo.status().hosts.iter().filter_map(|host| host.rtt).max().unwrap_or_default();
        let retry = (rtt * 3).clamp(RETRY_MIN, RETRY_MAX);
        let machine =
            Replica::join(me, &[], ReplicationTimers { heartbeat: HEARTBEAT, retry, dead_after: DEAD_AFTER });
        let configured_peers = options.peers.iter().copied().filter(|peer| *peer != address).collect();
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| failed("make a descriptor")(errno.into()))?;
        let shared = Arc::new(NodeShared {
            relay: EchoRelay::open(ident(&options.key)?, CONTROL_BUFFER_BYTES)?,
            echo,
            begun: Instant::now(),
            replica: Mutex::new(LocalReplica::new(machine, channel, configured_peers, retry)),
            changed: Condvar::new(),
            tasks: Mutex::new(BackgroundTasks::default()),
            task_added: Condvar::new(),
            is_over: AtomicBool::new(false),
            wakeup,
        });
        let mut store = ReplicatedStore { shared, threads: Vec::new() };
        let runs: [(&str, Run); 2] = [("wirefs-nodes", control_loop::run), ("wirefs-checker", checker::run)];
        for (name, run) in runs {
            let shared = Arc::clone(&store.shared);
            let thread = std::thread::Builder::new().name(name.into()).spawn(move || run(&shared));
            store.threads.push(thread.map_err(failed("start a thread"))?);
        }
        store.wait_for_membership(me)?;
        Ok(store)
    }

    /// Waits until this node is a member, or the first one.
    fn wait_for_membership(&self, me: ReplicaId) -> Result<(), JoinError> {
        let begun = Instant::now();
        let own = self.shared.echo.root().ok().flatten();
        loop {
            let mut replica = self.shared.replica();
            let machine = &mut replica.machine;
            if machine.is_member() && machine.root().is_some() {
                return Ok(());
            }
            let has_others = machine.knows_of_tree();
            if has_others && own.is_some() {
                return Err(JoinError::TreeExists);
            }
            // Of several nodes that start at once, the lowest is the first.
            let is_lowest =
                machine.peers_within(HEARTBEAT * 8).all(|(id, wants_to_join)| !wants_to_join || id > me);
            if !has_others && is_lowest && begun.elapsed() >= DISCOVERY_WAIT {
                machine.begin(own.map(packed));
                return Ok(());
            }
            drop(replica);
            if begun.elapsed() >= JOIN_WAIT {
                return Err(JoinError::TooLate);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
