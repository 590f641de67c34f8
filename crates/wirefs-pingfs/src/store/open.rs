//! Opening a store: hosts are measured, buffers sized, the machine made, the keeper started.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{EventfdFlags, eventfd};
use wirefs_blocks::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use wirefs_echo::{
    Cipher, Config, Echo, HostConfig, HostId, Key, Misuse, OVERHEAD_BYTES, Origin, Rate, Redundancy,
};
use wirefs_raw::{EchoSocket, Ident, charge_bytes};

use super::{Core, EchoStore, Shared};
use crate::ages::Ages;
use crate::circuit::{Circuit, Way, Zeal};
use crate::doubt::Doubt;
use crate::limits::{
    ANSWER_WAIT, GOAL_PACKETS, NEAR, OVERHEARD_BYTES_MAX, PARKED_FAR, PARKED_PACKETS, RATE_MAX,
    RATE_MAX_LOOPBACK, RECENT_BYTES_MAX, SEARCH_WAIT, WAIT_MAX,
};
use crate::options::{EchoOptions, Pace};
use crate::recent::Recent;
use crate::survey::{self, Refused, Survey};
use crate::waiting::Waiting;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A host cannot hold blocks.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A host is named twice.
    #[error("{0} is named twice; each host is counted on to fail by itself")]
    Twice(IpAddr),
    /// What was asked for makes no store.
    #[error("{0}")]
    Misuse(Misuse),
    /// The blocks would have to be of another size.
    #[error(
        "the hosts carry blocks of {carried} bytes, and blocks of {wanted} are wanted: name hosts with a larger \
             MTU, or use the redundancy and payload that the tree was made with"
    )]
    BlockBytes {
        /// What fits, in bytes.
        carried: usize,
        /// What is wanted, in bytes.
        wanted: usize,
    },
    /// A store has no more hosts than this, those that were drained included.
    #[error("a store has {max} hosts at most, those that were drained included", max = wirefs_echo::limits::HOSTS_MAX)]
    TooMany,
    /// A host that the store does not have.
    #[error("{0} is none of its hosts; `wirefs echo status` lists them")]
    NoHost(IpAddr),
    /// The others cannot take what a host has.
    #[error("{host} holds {packets} packets and the other hosts have room for {room}: add a host first")]
    NoRoom {
        /// The host.
        host: IpAddr,
        /// Packets of blocks that it holds.
        packets: u64,
        /// Packets that the others could take.
        room: u64,
    },
    /// The hosts answered when they were measured and do not now.
    #[error("the hosts stopped answering while the store was made; again, or name others")]
    Silent,
    /// The system gave no randomness, descriptor or thread.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried, as the end of "cannot …".
        action: &'static str,
        /// What it said.
        source: std::io::Error,
    },
}

fn random<const N: usize>() -> Result<[u8; N], OpenError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| OpenError::System {
        action: "get random numbers from the system",
        source: std::io::Error::other("none given"),
    })?;
    Ok(bytes)
}

/// The smallest payload with which the blocks of this redundancy hold a tree.
fn needed_bytes(redundancy: Redundancy) -> usize {
    let pieces = match redundancy {
        Redundancy::Copies(_) => 1,
        Redundancy::Code { pieces, .. } => usize::from(pieces.max(1)),
    };
    (PAYLOAD_BYTES_MIN.div_ceil(pieces) + OVERHEAD_BYTES).max(wirefs_echo::limits::PACKET_BYTES_MIN)
}

/// A host that was measured.
struct Measured {
    socket: EchoSocket,
    survey: Survey,
}

impl Measured {
    fn open(host: SocketAddr, payload_bytes_max: usize, needed_bytes: usize) -> Result<Measured, OpenError> {
        let ident = Ident(u16::from_ne_bytes(random()?));
        let socket = EchoSocket::open(host, ident).map_err(Refused::from)?;
        socket.note_arrivals().map_err(Refused::from)?;
        let survey = survey::survey(&socket, payload_bytes_max, needed_bytes)?;
        Ok(Measured { socket, survey })
    }

    fn is_near(&self) -> bool {
        self.survey.rtt_min < NEAR
    }

    /// Its own rate. This machine answers as fast as it is asked, so there is nothing to be found.
    fn rate(&self, pace: Pace) -> Option<Rate> {
        let is_free = pace == Pace::Found && self.survey.host.is_loopback();
        is_free.then_some(Rate::Fixed(RATE_MAX_LOOPBACK))
    }

    fn rate_max(&self, pace: Pace) -> u32 {
        match pace {
            Pace::Found if self.survey.host.is_loopback() => RATE_MAX_LOOPBACK,
            Pace::Found => RATE_MAX,
            Pace::FoundBelow(most) => most,
            Pace::Fixed(rate) => rate,
        }
    }

    /// Sizes the receive buffer, and says what may be admitted.
    fn host_config(&self, options: &EchoOptions, packet_bytes: usize) -> Result<HostConfig, OpenError> {
        let parked = match options.parked_packets {
            Some(parked) => parked,
            None if self.is_near() => PARKED_PACKETS,
            None => PARKED_FAR,
        };
        let flying = f64::from(self.rate_max(options.pace)) * self.survey.rtt_median.as_secs_f64() * 2.0;
        let fitting = (options.buffer_bytes / charge_bytes(packet_bytes)) as u64;
        let wanted = (parked + flying as u64 + GOAL_PACKETS).min(fitting);
        let buffer_packets =
            self.socket.reserve(wanted as usize, packet_bytes).map_err(Refused::from)? as u64;
        // What is never asked for is never dropped: the kernel's sum may be more than was reserved.
        let buffer_packets = buffer_packets.min(wanted);
        let goal_packets = parked + GOAL_PACKETS;
        Ok(HostConfig { buffer_packets, parked_packets: parked, goal_packets, rate: self.rate(options.pace) })
    }
}

impl EchoStore {
    /// Measures the hosts, makes an empty store of them, and waits until they take blocks.
    ///
    /// # Cost
    /// A few round trips for each host, and at most a second for all of them while their rates are found; one second for each
    /// that does not answer, and where none takes blocks, five more.
    ///
    /// # Errors
    /// [`OpenError`]: each says what to do.
    pub fn open(options: EchoOptions) -> Result<EchoStore, OpenError> {
        let mut measured = VecDeque::new();
        for host in &options.hosts {
            if measured.iter().any(|known: &Measured| known.survey.host == host.ip()) {
                return Err(OpenError::Twice(host.ip()));
            }
            let needed = needed_bytes(options.redundancy);
            measured.push_back(Measured::open(*host, options.payload_bytes_max, needed)?);
        }
        let packet_bytes = measured.iter().map(|host| host.survey.payload_bytes).min().unwrap_or_default();
        let hosts = measured.iter().map(|host| host.host_config(&options, packet_bytes));
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        let echo = Echo::new(&Config {
            key: Key(random()?),
            origin: Origin(u32::from_ne_bytes(random()?)),
            cipher: Cipher::default(),
            hosts,
            keep: options.keep(),
            redundancy: options.redundancy,
            rate: match options.pace {
                Pace::Found => Rate::Adaptive { most: RATE_MAX },
                Pace::FoundBelow(most) => Rate::Adaptive { most },
                Pace::Fixed(rate) => Rate::Fixed(rate),
            },
            packet_bytes,
            ram_bytes: 0,
        });
        let echo = echo.map_err(OpenError::Misuse)?;
        let block_bytes = block_bytes(&echo, &options)?;
        let ways = measured.into_iter().map(|host| {
            let is_near = host.is_near();
            Way::new(host.socket, host.survey, is_near, packet_bytes)
        });
        let circuit = Circuit::new(echo, ways.collect());
        start(circuit, options, block_bytes, packet_bytes)
    }

    /// Measures one more host and lets blocks go there from now on.
    ///
    /// # Errors
    /// [`OpenError`]; the store is as it was.
    pub fn add_host(&self, host: SocketAddr) -> Result<Survey, OpenError> {
        let is_known = |way: &Way| way.survey.host == host.ip() && !way.is_gone;
        if self.shared.lock().circuit.ways.iter().any(is_known) {
            return Err(OpenError::Twice(host.ip()));
        }
        let measured = Measured::open(host, self.packet_bytes, self.packet_bytes)?;
        let config = measured.host_config(&self.options, self.packet_bytes)?;
        let (survey, is_near) = (measured.survey, measured.is_near());
        let mut core = self.shared.lock();
        if core.circuit.echo.add_host(config).is_none() {
            return Err(OpenError::TooMany);
        }
        core.circuit.ways.push(Way::new(measured.socket, survey, is_near, self.packet_bytes));
        drop(core);
        self.shared.ring();
        Ok(survey)
    }

    /// Has the packets of a host go to the others as they come. It is pinged no more once it is empty.
    ///
    /// # Errors
    /// [`OpenError::NoHost`]; [`OpenError::NoRoom`] when the others could not take what it has.
    pub fn drain_host(&self, host: IpAddr) -> Result<(), OpenError> {
        let mut core = self.shared.lock();
        let is_it = |way: &Way| way.survey.host == host && !way.is_gone;
        let number = core.circuit.ways.iter().position(is_it).ok_or(OpenError::NoHost(host))?;
        let id = HostId(number as u8);
        let status = core.circuit.echo.status(id).ok_or(OpenError::NoHost(host))?;
        let own_room = status.packets_max.saturating_sub(status.packets);
        let room = core.circuit.echo.capacity().packets_free.saturating_sub(own_room);
        if room < status.packets {
            return Err(OpenError::NoRoom { host, packets: status.packets, room });
        }
        core.circuit.echo.drain_host(id);
        Ok(())
    }
}

fn block_bytes(echo: &Echo, options: &EchoOptions) -> Result<usize, OpenError> {
    let carried = echo.block_bytes_max().min(PAYLOAD_BYTES_MAX);
    match options.block_bytes {
        Some(wanted) if wanted > carried => Err(OpenError::BlockBytes { carried, wanted }),
        Some(wanted) => Ok(wanted),
        None => Ok(carried),
    }
}

fn start(
    mut circuit: Circuit,
    options: EchoOptions,
    block_bytes: usize,
    packet_bytes: usize,
) -> Result<EchoStore, OpenError> {
    let end = Instant::now() + ANSWER_WAIT;
    while circuit.echo.capacity().packets_max == 0 {
        if Instant::now() >= end {
            return Err(OpenError::Silent);
        }
        circuit.turn(Zeal::Full).map_err(Refused::from)?;
        circuit.rest(Zeal::Full).wait(None, Duration::ZERO, WAIT_MAX);
    }
    // As long as there are no blocks, a rate that is too high costs nobody anything: it is found best now.
    let end = Instant::now() + SEARCH_WAIT;
    while circuit.echo.capacity().may_grow && Instant::now() < end {
        circuit.turn(Zeal::Full).map_err(Refused::from)?;
        circuit.rest(Zeal::Full).wait(None, Duration::ZERO, WAIT_MAX);
    }
    let failed = |action| move |source: std::io::Error| OpenError::System { action, source };
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|errno| failed("make a descriptor")(errno.into()))?;
    let shared = Arc::new(Shared {
        core: Mutex::new(Core {
            circuit,
            waiting: Waiting::default(),
            ages: Ages::default(),
            recent: Recent::new(RECENT_BYTES_MAX),
            overheard: Recent::new(OVERHEARD_BYTES_MAX),
            doubt: Doubt::default(),
            root: None,
            lost_count: 0,
            stirred: Instant::now(),
            is_quiet: false,
            broken: None,
        }),
        drivers: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        bell,
        before_waiting: OnceLock::new(),
    });
    let kept = Arc::clone(&shared);
    let keeper = std::thread::Builder::new()
        .name("wirefs-keeper".into())
        .spawn(move || crate::keeper::run(&kept))
        .map_err(failed("start a thread"))?;
    Ok(EchoStore { shared, options, block_bytes, packet_bytes, begun: Instant::now(), keeper: Some(keeper) })
}
