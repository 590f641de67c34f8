//! Opening a store: surveys the hosts, sizes the buffers, creates the state machine, starts the keeper.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{EventfdFlags, eventfd};
use wirefs_blocks::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use wirefs_echo::{
    Cipher, ConfigError, Echo, EchoConfig, EchoKey, HostConfig, HostId, OVERHEAD_BYTES, Origin, Redundancy,
    SendRate,
};
use wirefs_raw::{EchoIdent, EchoSocket, charge_bytes};

use super::{EchoStore, StoreCore, StoreShared};
use crate::ages::BlockAges;
use crate::echo_driver::{EchoDriver, HostPath, PollBudget};
use crate::limits::{
    ANSWER_WAIT, GOAL_PACKETS, NEAR, OVERHEARD_BYTES_MAX, PARKED_PACKETS, PARKED_PACKETS_FAR, RATE_MAX,
    RATE_MAX_LOOPBACK, RECENT_BYTES_MAX, SEARCH_WAIT, WAIT_MAX,
};
use crate::missing_blocks::MissingBlocks;
use crate::options::{EchoOptions, RateOption};
use crate::pending_reads::PendingReads;
use crate::recent::RecentBlocks;
use crate::survey::{self, HostSurvey, SurveyError};

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A host cannot hold blocks.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// A host is named twice.
    #[error("{0} is named twice; name different hosts, which fail independently")]
    Twice(IpAddr),
    /// The options are invalid.
    #[error("{0}")]
    Config(ConfigError),
    /// The hosts do not carry the required block size.
    #[error(
        "the hosts carry blocks of {carried} bytes, but blocks of {wanted} are required: name hosts with a larger \
             MTU, or use the redundancy and payload of the saved tree"
    )]
    BlockBytes {
        /// The largest block size in bytes.
        carried: usize,
        /// The required block size in bytes.
        wanted: usize,
    },
    /// Too many hosts, drained ones included.
    #[error("a store has at most {max} hosts, drained ones included", max = wirefs_echo::limits::HOSTS_MAX)]
    TooMany,
    /// An unknown host.
    #[error("{0} is not a host of this mount; `wirefs echo status` lists them")]
    NoHost(IpAddr),
    /// The other hosts have no room for a host's packets.
    #[error("{host} holds {packets} packets and the other hosts have room for {room}: add a host first")]
    NoRoom {
        /// The host.
        host: IpAddr,
        /// Packets of blocks at the host.
        packets: u64,
        /// Packets for which the others have room.
        room: u64,
    },
    /// The hosts answered the survey and do not answer now.
    #[error("the hosts stopped answering while the store was opened; try again, or name other hosts")]
    Silent,
    /// The system provided no randomness, descriptor or thread.
    #[error("cannot {action}: {source}")]
    System {
        /// The attempted action, as the end of "cannot …".
        action: &'static str,
        /// The system's error.
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

/// Returns the smallest payload with which blocks of this redundancy hold a tree.
fn needed_bytes(redundancy: Redundancy) -> usize {
    let pieces = match redundancy {
        Redundancy::Copies(_) => 1,
        Redundancy::Code { pieces, .. } => usize::from(pieces.max(1)),
    };
    (PAYLOAD_BYTES_MIN.div_ceil(pieces) + OVERHEAD_BYTES).max(wirefs_echo::limits::PACKET_BYTES_MIN)
}

/// A host that was surveyed.
struct Measured {
    socket: EchoSocket,
    survey: HostSurvey,
}

impl Measured {
    fn open(host: SocketAddr, payload_bytes_max: usize, needed_bytes: usize) -> Result<Measured, OpenError> {
        let ident = EchoIdent(u16::from_ne_bytes(random()?));
        let socket = EchoSocket::open(host, ident).map_err(SurveyError::from)?;
        socket.enable_timestamps().map_err(SurveyError::from)?;
        let survey = survey::survey(&socket, payload_bytes_max, needed_bytes)?;
        Ok(Measured { socket, survey })
    }

    fn is_near(&self) -> bool {
        self.survey.rtt_min < NEAR
    }

    /// Returns the host's own rate. A loopback host answers at any rate, so none is searched.
    fn rate(&self, rate: RateOption) -> Option<SendRate> {
        let is_free = rate == RateOption::Adaptive && self.survey.host.is_loopback();
        is_free.then_some(SendRate::Fixed(RATE_MAX_LOOPBACK))
    }

    fn rate_max(&self, rate: RateOption) -> u32 {
        match rate {
            RateOption::Adaptive if self.survey.host.is_loopback() => RATE_MAX_LOOPBACK,
            RateOption::Adaptive => RATE_MAX,
            RateOption::AdaptiveBelow(max) => max,
            RateOption::Fixed(rate) => rate,
        }
    }

    /// Sizes the receive buffer and returns the admission limits.
    fn host_config(&self, options: &EchoOptions, packet_bytes: usize) -> Result<HostConfig, OpenError> {
        let parked = match options.parked_packets {
            Some(parked) => parked,
            None if self.is_near() => PARKED_PACKETS,
            None => PARKED_PACKETS_FAR,
        };
        let flying = f64::from(self.rate_max(options.rate)) * self.survey.rtt_median.as_secs_f64() * 2.0;
        let fitting = (options.buffer_bytes / charge_bytes(packet_bytes)) as u64;
        let wanted = (parked + flying as u64 + GOAL_PACKETS).min(fitting);
        let buffer_packets =
            self.socket.reserve(wanted as usize, packet_bytes).map_err(SurveyError::from)? as u64;
        // The kernel's sum may exceed the request.
        let buffer_packets = buffer_packets.min(wanted);
        let goal_packets = parked + GOAL_PACKETS;
        Ok(HostConfig { buffer_packets, parked_packets: parked, goal_packets, rate: self.rate(options.rate) })
    }
}

impl EchoStore {
    /// Surveys the hosts, creates an empty store, and waits until the hosts accept blocks.
    ///
    /// # Cost
    /// A few RTTs per host, and at most one second for all while their rates are measured; one second for
    /// each host that does not answer, and five more if none accepts blocks.
    ///
    /// # Errors
    /// [`OpenError`]; each message names the remedy.
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
        let echo = Echo::new(&EchoConfig {
            key: EchoKey(random()?),
            origin: Origin(u32::from_ne_bytes(random()?)),
            cipher: Cipher::default(),
            hosts,
            keep: options.keep_mode(),
            redundancy: options.redundancy,
            rate: match options.rate {
                RateOption::Adaptive => SendRate::Adaptive { max: RATE_MAX },
                RateOption::AdaptiveBelow(max) => SendRate::Adaptive { max },
                RateOption::Fixed(rate) => SendRate::Fixed(rate),
            },
            packet_bytes,
            ram_bytes: 0,
        });
        let echo = echo.map_err(OpenError::Config)?;
        let block_bytes = block_bytes(&echo, &options)?;
        let paths = measured.into_iter().map(|host| {
            let is_near = host.is_near();
            HostPath::new(host.socket, host.survey, is_near, packet_bytes)
        });
        let driver = EchoDriver::new(echo, paths.collect());
        start(driver, options, block_bytes, packet_bytes)
    }

    /// Surveys one more host, and uses it for new blocks.
    ///
    /// # Errors
    /// [`OpenError`]; the store is then unchanged.
    pub fn add_host(&self, host: SocketAddr) -> Result<HostSurvey, OpenError> {
        let is_known = |path: &HostPath| path.survey.host == host.ip() && !path.is_gone;
        if self.shared.lock().driver.paths.iter().any(is_known) {
            return Err(OpenError::Twice(host.ip()));
        }
        let measured = Measured::open(host, self.packet_bytes, self.packet_bytes)?;
        let config = measured.host_config(&self.options, self.packet_bytes)?;
        let (survey, is_near) = (measured.survey, measured.is_near());
        let mut core = self.shared.lock();
        if core.driver.echo.add_host(config).is_none() {
            return Err(OpenError::TooMany);
        }
        core.driver.paths.push(HostPath::new(measured.socket, survey, is_near, self.packet_bytes));
        drop(core);
        self.shared.wake();
        Ok(survey)
    }

    /// Moves the packets of a host to the others as they arrive. The host is no longer pinged once it is
    /// empty.
    ///
    /// # Errors
    /// [`OpenError::NoHost`]; [`OpenError::NoRoom`] if the others have no room for its packets.
    pub fn drain_host(&self, host: IpAddr) -> Result<(), OpenError> {
        let mut core = self.shared.lock();
        let is_it = |path: &HostPath| path.survey.host == host && !path.is_gone;
        let number = core.driver.paths.iter().position(is_it).ok_or(OpenError::NoHost(host))?;
        let id = HostId(number as u8);
        let status = core.driver.echo.status(id).ok_or(OpenError::NoHost(host))?;
        let own_room = status.packets_max.saturating_sub(status.packets);
        let room = core.driver.echo.capacity().packets_free.saturating_sub(own_room);
        if room < status.packets {
            return Err(OpenError::NoRoom { host, packets: status.packets, room });
        }
        core.driver.echo.drain_host(id);
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
    mut driver: EchoDriver,
    options: EchoOptions,
    block_bytes: usize,
    packet_bytes: usize,
) -> Result<EchoStore, OpenError> {
    let end = Instant::now() + ANSWER_WAIT;
    while driver.echo.capacity().packets_max == 0 {
        if Instant::now() >= end {
            return Err(OpenError::Silent);
        }
        driver.poll_once(PollBudget::Full).map_err(SurveyError::from)?;
        driver.next_wait(PollBudget::Full).wait(None, Duration::ZERO, WAIT_MAX);
    }
    // Without blocks, a rate that is too high loses no data: this is the best time to measure it.
    let end = Instant::now() + SEARCH_WAIT;
    while driver.echo.capacity().may_grow && Instant::now() < end {
        driver.poll_once(PollBudget::Full).map_err(SurveyError::from)?;
        driver.next_wait(PollBudget::Full).wait(None, Duration::ZERO, WAIT_MAX);
    }
    let failed = |action| move |source: std::io::Error| OpenError::System { action, source };
    let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|errno| failed("make a descriptor")(errno.into()))?;
    let shared = Arc::new(StoreShared {
        core: Mutex::new(StoreCore {
            driver,
            pending_reads: PendingReads::default(),
            ages: BlockAges::default(),
            recent: RecentBlocks::new(RECENT_BYTES_MAX),
            overheard: RecentBlocks::new(OVERHEARD_BYTES_MAX),
            missing_blocks: MissingBlocks::default(),
            root: None,
            lost_count: 0,
            last_use: Instant::now(),
            is_quiet: false,
            broken: None,
        }),
        pollers: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        wakeup,
        before_waiting: OnceLock::new(),
    });
    let keeper_shared = Arc::clone(&shared);
    let keeper = std::thread::Builder::new()
        .name("wirefs-keeper".into())
        .spawn(move || crate::keeper::run(&keeper_shared))
        .map_err(failed("start a thread"))?;
    Ok(EchoStore { shared, options, block_bytes, packet_bytes, begun: Instant::now(), keeper: Some(keeper) })
}
