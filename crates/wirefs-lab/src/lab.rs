//! Hosts and the links between them, removed when the lab is dropped.

use std::ffi::OsStr;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::emulator::LinkHandle;
use crate::error::LabError;
use crate::namespace::{self, Namespace};
use crate::profile::LinkProfile;
use crate::program;
use crate::tap::LinkEnd;

/// The maximum number of links of a lab, which is the third byte of their addresses.
pub const LINKS_MAX: u8 = 254;
/// The maximum bytes of a lab's or host's name, so that the namespace's name is a valid file name.
pub const NAME_BYTES_MAX: usize = 64;

/// Distinguishes labs of one process that have the same name.
static LABS: AtomicU32 = AtomicU32::new(0);

/// A set of hosts and links. Drop stops the links, kills the processes in its hosts and removes the hosts.
#[derive(Debug)]
pub struct Lab {
    name: String,
    hosts: Mutex<Vec<Host>>,
    links: Mutex<Vec<LinkHandle>>,
    link_count: AtomicU8,
}

/// A host of a lab: a network namespace. Its files and mounts are those of the machine.
#[derive(Clone, Debug)]
pub struct Host {
    namespace: Arc<Namespace>,
}

/// The send counters of a device of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Frames; on a device with offloads these may be larger than the MTU.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
}

/// Two hosts joined by a plain veth pair, without an emulator.
#[derive(Clone, Debug)]
pub struct Patch {
    /// The name of the device in both hosts.
    pub device: String,
    /// The address of the first host.
    pub address_a: Ipv4Addr,
    /// The address of the second host.
    pub address_b: Ipv4Addr,
}

impl Lab {
    /// Creates an empty lab, and removes leftovers of dead labs.
    ///
    /// # Errors
    /// [`LabError::NotRoot`]; [`LabError::Full`] when the name is too long.
    pub fn new(name: &str) -> Result<Lab, LabError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        check_name(name)?;
        namespace::remove_stale();
        let nth = LABS.fetch_add(1, Ordering::Relaxed);
        Ok(Lab {
            name: format!("{nth}-{name}"),
            hosts: Mutex::default(),
            links: Mutex::default(),
            link_count: AtomicU8::new(0),
        })
    }

    /// Creates a host with its loopback device up.
    ///
    /// # Errors
    /// Those of [`Namespace::new`]; fails if the name is taken.
    pub fn host(&self, name: &str) -> Result<Host, LabError> {
        check_name(name)?;
        let host = Host { namespace: Arc::new(Namespace::new(&format!("{}-{name}", self.name))?) };
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).push(host.clone());
        Ok(host)
    }

    /// Joins two hosts by an emulated link; the first gets 10.99.N.1, the second 10.99.N.2.
    ///
    /// # Errors
    /// [`LabError::Profile`], [`LabError::Full`], or an error of the creation of the devices.
    pub fn link(&self, a: &Host, b: &Host, profile: LinkProfile) -> Result<LinkHandle, LabError> {
        profile.check()?;
        let number = self.next_link()?;
        let ends = [
            LinkEnd { namespace: &a.namespace, number, side: 1 },
            LinkEnd { namespace: &b.namespace, number, side: 2 },
        ];
        let link = LinkHandle::start(ends, profile)?;
        self.links.lock().unwrap_or_else(PoisonError::into_inner).push(link.clone());
        Ok(link)
    }

    /// Joins two hosts by a plain veth pair with all offloads; the first gets 10.99.N.1, the second 10.99.N.2.
    ///
    /// # Errors
    /// [`LabError::Full`], or an error of the creation of the devices.
    pub fn patch(&self, a: &Host, b: &Host) -> Result<Patch, LabError> {
        let number = self.next_link()?;
        let [end_a, end_b] =
            [(a, 1), (b, 2)].map(|(host, side)| LinkEnd { namespace: &host.namespace, number, side });
        let device = end_a.device();
        let (name_a, name_b) = (a.namespace.name(), b.namespace.name());
        let mut add = Command::new("ip");
        add.args([
            "-n", name_a, "link", "add", &device, "type", "veth", "peer", "name", &device, "netns", name_b,
        ]);
        program::run(&mut add, "iproute2", "")?;
        end_a.bring_up(crate::profile::MTU_ETHERNET)?;
        end_b.bring_up(crate::profile::MTU_ETHERNET)?;
        Ok(Patch { device, address_a: end_a.address(), address_b: end_b.address() })
    }

    fn next_link(&self) -> Result<u8, LabError> {
        let taken = self.link_count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < LINKS_MAX).then(|| count + 1)
        });
        taken
            .map(|before| before + 1)
            .map_err(|_| LabError::Full { resource: "links", limit: LINKS_MAX.into() })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for link in self.links.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            link.stop();
        }
    }
}

impl Host {
    /// Returns the name in `ip netns`.
    pub fn name(&self) -> &str {
        self.namespace.name()
    }

    /// Returns a command that runs on this host. The command and the caller see each other's mounts.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.namespace.command(program)
    }

    /// Limits the buffers of TCP sockets created from now on to `most` bytes, in both directions.
    ///
    /// # Errors
    /// [`LabError::Io`].
    pub fn limit_tcp_buffers(&self, most: u64) -> Result<(), LabError> {
        self.namespace.limit_tcp_buffers(most)
    }

    /// Returns the frames and bytes that a device of this host has sent since its creation.
    ///
    /// # Errors
    /// [`LabError::Io`] if there is no such device.
    pub fn sent(&self, device: &str) -> Result<DeviceCounters, LabError> {
        // The namespace of this thread; /proc/net shows that of the process.
        let table = self.run(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        let table = table.map_err(|error| LabError::io("read the counters of devices", error))?;
        DeviceCounters::parse(&table, device).ok_or_else(|| {
            LabError::io(
                format!("find the device {device}"),
                std::io::Error::from(std::io::ErrorKind::NotFound),
            )
        })
    }

    /// Runs `work` on a thread in this host's namespace; its sockets belong to the namespace. Panics propagate.
    ///
    /// # Errors
    /// [`LabError::Io`] if the thread cannot enter the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        self.namespace.run(work)
    }
}

impl DeviceCounters {
    /// Finds a device in the table of `/proc/net/dev`.
    fn parse(table: &str, device: &str) -> Option<DeviceCounters> {
        let line = table.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'))?;
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // Eight receive columns precede the send columns.
        Some(DeviceCounters { bytes: *numbers.get(8)?, frames: *numbers.get(9)? })
    }
}

fn check_name(name: &str) -> Result<(), LabError> {
    let fits = name.len() <= NAME_BYTES_MAX && !name.contains('/');
    fits.then_some(())
        .ok_or(LabError::Full { resource: "bytes in a name, none of them `/`", limit: NAME_BYTES_MAX })
}
