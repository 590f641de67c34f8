//! Becoming one of the nodes, or the first of them.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{EventfdFlags, eventfd};
use wirefs_blocks::store::BlockStore;
use wirefs_echo::Key;
use wirefs_echo::together::post::{Life, Post};
use wirefs_echo::together::{NodeId, Pulse, Together};
use wirefs_raw::{Courier, Ident, RawError};

use super::desk::Desk;
use super::errands::Errands;
use super::{CommonStore, Commons, NodeOptions, checker, driver};
use crate::limits::{BEAT, DEAD_AFTER, FOUND_WAIT, JOIN_WAIT, LETTERS_BYTES, RETRY_MAX, RETRY_MIN};
use crate::options::Honesty;
use crate::store::{EchoStore, packed};

/// How often it is looked whether it has come.
const LOOK_EACH: Duration = Duration::from_millis(20);

/// What a thread does until the store is dropped.
type Run = fn(&Arc<Commons>);

/// Why a node cannot be with the others.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Letters go by hosts with IPv4 addresses only.
    #[error("nodes reach each other by hosts with IPv4 addresses, and {0} is none: name another --host")]
    NoHost(IpAddr),
    /// It would not know which blocks it has.
    #[error("a node has to know which blocks it has: --keep=index")]
    NoIndex,
    /// It cannot bring a tree along.
    #[error("the other nodes have a tree already: leave --load out, or unmount theirs first")]
    TreeExists,
    /// It did not get all.
    #[error(
        "the other nodes were heard of, and their blocks did not all come within {} s: is there room for all of them, and are the \
         packets as large as theirs?",
        JOIN_WAIT.as_secs()
    )]
    TooLate,
    /// Sockets, threads, chance.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried, as the end of "cannot …".
        action: &'static str,
        /// What it said.
        source: std::io::Error,
    },
    /// A raw socket.
    #[error(transparent)]
    Raw(#[from] RawError),
}

fn failed(action: &'static str) -> impl Fn(std::io::Error) -> JoinError {
    move |source| JoinError::System { action, source }
}

/// The address by which a host knows this machine.
fn own_address(host: Ipv4Addr) -> std::io::Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // Nothing is sent: the system only looks for the way.
    socket.connect((host, 7))?;
    match socket.local_addr()?.ip() {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(std::io::Error::other("the way leads over IPv6")),
    }
}

/// The number in the echo header of all letters under one key.
fn ident(key: &Key) -> Result<Ident, JoinError> {
    let secret = Salt::new(HKDF_SHA256, b"wirefs-pingfs letters").extract(&key.0);
    let mut bytes = [0; 32];
    let filled = secret.expand(&[b"ident"], HKDF_SHA256).and_then(|okm| okm.fill(&mut bytes));
    filled.map_err(|_| failed("derive a number from the key")(std::io::Error::other("refused")))?;
    let [high, low, ..] = bytes;
    Ok(Ident(u16::from_be_bytes([high, low])))
}

impl CommonStore {
    /// Looks for the other nodes and gets all of their blocks; where there is none, or only ones that come as well, the lowest of these
    /// begins with the tree that the store holds, or with none.
    ///
    /// # Cost
    /// Three seconds where nobody is found; else as long as the blocks take.
    ///
    /// # Errors
    /// [`JoinError`]: each says what to do.
    pub fn open(echo: Arc<EchoStore>, options: &NodeOptions) -> Result<CommonStore, JoinError> {
        if echo.options().honesty != Honesty::Index {
            return Err(JoinError::NoIndex);
        }
        let host = match echo.hosts().first() {
            Some(IpAddr::V4(host)) => *host,
            Some(other @ IpAddr::V6(_)) => return Err(JoinError::NoHost(*other)),
            None => return Err(JoinError::NoHost(IpAddr::V4(Ipv4Addr::UNSPECIFIED))),
        };
        let address = own_address(host).map_err(failed("find this machine's address"))?;
        let mut life = [0; 8];
        let filled = SystemRandom::new().fill(&mut life);
        filled.map_err(|_| failed("get random numbers")(std::io::Error::other("none given")))?;
        let (me, life) = (NodeId(options.node), Life(u64::from_ne_bytes(life).max(1)));
        let post = Post::new(options.key.clone(), me, life, address.octets(), echo.packet_bytes());
        let post = post.ok_or_else(|| failed("use the key")(std::io::Error::other("refused")))?;
        let rtt = echo.status().hosts.iter().filter_map(|host| host.rtt).max().unwrap_or_default();
        let retry = (rtt * 3).clamp(RETRY_MIN, RETRY_MAX);
        let machine = Together::join(me, &[], Pulse { beat: BEAT, retry, dead: DEAD_AFTER });
        let named = options.peers.iter().copied().filter(|peer| *peer != address).collect();
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| failed("make a descriptor")(errno.into()))?;
        let commons = Arc::new(Commons {
            courier: Courier::open(ident(&options.key)?, LETTERS_BYTES)?,
            echo,
            begun: Instant::now(),
            desk: Mutex::new(Desk::new(machine, post, named, retry)),
            changed: Condvar::new(),
            errands: Mutex::new(Errands::default()),
            called: Condvar::new(),
            is_over: AtomicBool::new(false),
            bell,
        });
        let mut store = CommonStore { commons, threads: Vec::new() };
        let runs: [(&str, Run); 2] = [("wirefs-nodes", driver::run), ("wirefs-checker", checker::run)];
        for (name, run) in runs {
            let commons = Arc::clone(&store.commons);
            let thread = std::thread::Builder::new().name(name.into()).spawn(move || run(&commons));
            store.threads.push(thread.map_err(failed("start a thread"))?);
        }
        store.come(me)?;
        Ok(store)
    }

    /// Waits until this node is one of the others, or the first.
    fn come(&self, me: NodeId) -> Result<(), JoinError> {
        let begun = Instant::now();
        let own = self.commons.echo.root().ok().flatten();
        loop {
            let mut desk = self.commons.desk();
            let machine = &mut desk.machine;
            if machine.is_member() && machine.root().is_some() {
                return Ok(());
            }
            let has_others = machine.has_heard_of_a_tree();
            if has_others && own.is_some() {
                return Err(JoinError::TreeExists);
            }
            // Of those who come at once the lowest is the first.
            let is_lowest = machine.heard_within(BEAT * 8).all(|(id, joins)| !joins || id > me);
            if !has_others && is_lowest && begun.elapsed() >= FOUND_WAIT {
                machine.begin(own.map(packed));
                return Ok(());
            }
            drop(desk);
            if begun.elapsed() >= JOIN_WAIT {
                return Err(JoinError::TooLate);
            }
            std::thread::sleep(LOOK_EACH);
        }
    }
}
