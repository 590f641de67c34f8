//! `wirefs echo`: mounts a PingFS, a tree whose blocks are in ICMP echo packets in flight.

mod ending;
mod hosts;
mod nodes;
mod report;
mod status;

pub(crate) use ending::{Ending, Plan, decide, is_echo, prepare};
pub(crate) use hosts::{add_host, drain_host};
pub(crate) use report::EchoReport;

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use wirefs_blockfs::{BlockFs, BlockFsOptions};
use wirefs_blocks::id::WriterId;
use wirefs_blocks::store::BlockStore;
use wirefs_cache::Mode;
use wirefs_echo::Redundancy;
use wirefs_op::message::version::BootId;
use wirefs_pingfs::options::{KeepOption, RateOption};
use wirefs_pingfs::save::SavedFile;
use wirefs_pingfs::{EchoOptions, EchoStore, NodeOptions, ReplicatedStore};
use wirefs_server::Tree;

use crate::arguments::{self, EchoCommand, EchoMount, Keep};
use crate::blocks::boot_of_process;
use crate::failure::failure;
use crate::mount::{self, Origin, TreeOpener};
use crate::terminal::note;

/// The mount of this process, with its store.
struct Served {
    store: Arc<EchoStore>,
    /// The nodes that share the tree.
    nodes: Option<Arc<ReplicatedStore>>,
    ending: Ending,
}

/// The store of this process, once it is open. A process serves one mount, and its control socket must find the store.
static SERVED: OnceLock<Served> = OnceLock::new();

/// Mounts, or shows the status.
pub(crate) fn run(arguments: &arguments::Echo, words: &[OsString]) -> Result<ExitCode> {
    match (&arguments.command, &arguments.mount) {
        (Some(EchoCommand::Status(arguments)), _) => status::run(arguments).map(|()| ExitCode::SUCCESS),
        (Some(EchoCommand::Add(arguments)), _) => hosts::run_add(arguments).map(|()| ExitCode::SUCCESS),
        (Some(EchoCommand::Drain(arguments)), _) => hosts::run_drain(arguments).map(|()| ExitCode::SUCCESS),
        (None, Some(arguments)) => mount(arguments, words),
        (None, None) => Err(failure("no mountpoint is named", "`wirefs echo --help` shows how")),
    }
}

fn mount(arguments: &EchoMount, words: &[OsString]) -> Result<ExitCode> {
    let options = options(arguments)?;
    let load = arguments.load.as_deref().map(SavedFile::open).transpose()?;
    let ending = Ending::of(arguments)?;
    let nodes = nodes::options(arguments)?;
    let ram_bytes = arguments.ram.unwrap_or(0);
    let open: TreeOpener = Box::new(move || open(options, nodes, load.as_ref(), ending, ram_bytes / 2));
    let code = mount::run_origin(&as_mount(arguments), words, Origin::Local(open))?;
    if let Some(Served { store, nodes, ending }) = SERVED.get() {
        let go_on = nodes.as_ref().is_some_and(|nodes| nodes::leave(nodes));
        if !go_on || ending.plan() != Plan::Undecided {
            ending.end(store.as_ref(), &arguments.mountpoint)?;
        }
    }
    Ok(code)
}

/// Returns the equivalent arguments of `wirefs mount`. Without `--ram` neither wirefs nor the kernel caches contents.
fn as_mount(arguments: &EchoMount) -> arguments::Mount {
    // With other nodes the kernel would be notified of their changes a moment after these are done; with the root alone
    // nothing is cached.
    let wanted = match (arguments.ram, arguments.keep, arguments.node) {
        (Some(_), _, _) => "lease",
        (None, Keep::Index, None) => "direct",
        (None, Keep::Root, _) | (None, _, Some(_)) => "strict",
    };
    arguments::Mount {
        source: format!("{}{}", ending::SOURCE_PREFIX, arguments.hosts.join(",")).into(),
        mountpoint: arguments.mountpoint.clone(),
        mode: Mode::parse(wanted).ok(),
        options: arguments.options.clone(),
        foreground: arguments.foreground,
        deadline: None,
        hard: true,
        cache: Some(arguments.ram.unwrap_or(0) / 2),
        cache_size: None,
        journal: false,
        no_journal: true,
        symlinks: None,
        fsync: None,
        no_cache: true,
        no_prefetch: false,
        no_compression: false,
        up: None,
        down: None,
        metrics: arguments.metrics,
        allow_other: arguments.allow_other,
        reports: arguments.reports,
        fake: false,
        sloppy: false,
        no_mtab: false,
        verbose: false,
        kind: None,
    }
}

fn options(arguments: &EchoMount) -> Result<EchoOptions> {
    let hosts = arguments.hosts.iter().map(|host| resolve(host)).collect::<Result<_>>()?;
    let mut options = EchoOptions::new(hosts);
    options.redundancy = arguments.code.unwrap_or(Redundancy::Copies(arguments.copies.unwrap_or(1)));
    options.keep = match arguments.keep {
        Keep::Index => KeepOption::Index,
        Keep::Root => KeepOption::Root,
    };
    options.rate = match (arguments.rate, arguments.rate_max) {
        (Some(rate), _) => RateOption::Fixed(rate),
        (None, Some(most)) => RateOption::AdaptiveBelow(most),
        (None, None) => RateOption::Adaptive,
    };
    options.payload_bytes_max = arguments.payload.unwrap_or(options.payload_bytes_max);
    options.buffer_bytes = arguments.buffer.unwrap_or(options.buffer_bytes);
    options.parked_packets = arguments.park;
    Ok(options)
}

fn resolve(host: &str) -> Result<SocketAddr> {
    let found = (host, 0).to_socket_addrs().map(|mut addresses| addresses.next());
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) | Err(_) => Err(failure(
            format!("{host} has no address"),
            "name a host by its address, or by a name that resolves",
        )),
    }
}

/// Opens the store and its tree.
fn open(
    mut options: EchoOptions,
    nodes: Option<NodeOptions>,
    load: Option<&SavedFile>,
    ending: Ending,
    ram_bytes: usize,
) -> Result<(Arc<dyn Tree>, BootId)> {
    options.block_bytes = load.map(|file| file.head().payload_bytes);
    let store = Arc::new(EchoStore::open(options)?);
    if let Some(file) = load {
        file.load(store.as_ref())?;
    }
    print_measurements(&store);
    let boot = boot_of_process();
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let node = WriterId(nodes.as_ref().map_or(0, |nodes| nodes.node));
    let tree_options = BlockFsOptions { uid, gid, ram_bytes, node, ..BlockFsOptions::new(boot) };
    let nodes =
        nodes.map(|nodes| ReplicatedStore::open(Arc::clone(&store), &nodes).map(Arc::new)).transpose()?;
    let blocks: Arc<dyn BlockStore> = match &nodes {
        Some(nodes) => Arc::clone(nodes) as Arc<dyn BlockStore>,
        None => Arc::clone(&store) as Arc<dyn BlockStore>,
    };
    let tree = BlockFs::open(blocks, tree_options).context("the block tree cannot be opened")?;
    if SERVED.set(Served { store, nodes, ending }).is_err() {
        return Err(failure("this process already has a block store", "start another one"));
    }
    Ok((Arc::new(tree), boot))
}

/// Prints the measurements.
fn print_measurements(store: &EchoStore) {
    let status = store.status();
    for host in &status.hosts {
        note!(
            "{}: {} bytes a packet, round trip {}",
            host.host,
            host.payload_bytes,
            host.rtt.map_or("unknown".to_owned(), crate::status::span)
        );
    }
}
