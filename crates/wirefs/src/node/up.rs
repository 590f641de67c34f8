//! `wirefs node up`.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wirefs_carrier::tls::{Identity, PublicKey};
use wirefs_carrier::{Address, HostPort, ListenOptions, Listener, TLS_PORT_DEFAULT};
use wirefs_net::{Net, NetPlan};
use wirefs_node::{NodeExport, NodeName};
use wirefs_nodehost::{NodeHost, NodePlan};

use super::control::{self, NodeSocket};
use super::ether::{Dials, NodeCards};
use super::invite;
use super::keys::NodeAdmission;
use super::mounting::Mounting;
use crate::arguments::NodeUp;
use crate::failure::{failure, print_error};
use crate::mount::daemon;
use crate::serve::{Served, raise_descriptors};
use crate::sys::{self, Signals};
use crate::terminal::{note, say};
use crate::user_dirs;

/// The name of a node's export.
const EXPORT: &str = "share";
/// The time for the first node found to report a name conflict, before this node reports that it has joined.
const NAME_WAIT: Duration = Duration::from_millis(500);
/// The time to find a first node.
const FIRST_NODE_WAIT: Duration = Duration::from_millis(1_000);
/// The interval of checks for a name conflict without a change notification.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Joins, and runs until the node leaves.
pub(super) fn run(arguments: &NodeUp, words: &[OsString]) -> Result<ExitCode> {
    // The background process has the same arguments.
    if let (Some(place), false) = (&arguments.join, arguments.reports) {
        invite::accept(arguments, place)?;
    }
    if !arguments.foreground && !arguments.reports {
        return daemon::start(words, 2);
    }
    let signals =
        Signals::take(&[sys::INTERRUPT, sys::TERMINATE, sys::HANG_UP]).context("cannot block signals")?;
    raise_descriptors();
    let net_directory = NetDirectory::of(arguments)?;
    let (socket, control) = NodeSocket::take()?;
    let identity = Arc::new(Identity::open(&user_dirs::config_dir()?)?);
    let admission = NodeAdmission::of(arguments)?;
    let keys = admission.file()?;
    let share = arguments.share.as_deref().map(std::fs::canonicalize).transpose();
    let share = share.with_context(|| "cannot use the directory to share".to_owned())?;

    let (listener, listen) = bind(arguments, &identity, keys.clone())?;
    let offer = NodeCards::open(arguments, &identity, keys.clone())?;
    let plan = node_plan(arguments, &identity, &admission, listen, share.as_deref())?;
    let host = NodeHost::start(NodePlan { ether: offer.ether, ..plan })?;
    await_name(&host)?;
    admission.follow(keys.clone(), &host)?;
    let start = |dir: &Path| Served::start(dir, arguments.read_only, listener, keys);
    let served = share.as_deref().map(start).transpose()?;
    if let (Some(served), Some(listener)) = (&served, offer.listener) {
        served.listen(listener)?;
    }
    let dials = Dials::default();
    let mounting = Mounting::of(arguments, &host, &identity, &dials, net_directory.at.clone());
    let plan = NetPlan {
        at: net_directory.at.clone(),
        share,
        mounts: net_directory.mounts,
        reach: mounting.reach(),
    };
    let net = match Net::start(plan, &host) {
        Ok(net) => net,
        Err(error) => {
            host.leave();
            return Err(error.into());
        }
    };
    control::serve(control, Arc::clone(&host), dials, mounting)?;
    let ready = match arguments.reports {
        true => daemon::report_and_detach(&net_directory.at),
        false => {
            say!("joined as {}; the nodes are in {}", own_name(&host), net_directory.at.display());
            Ok(())
        }
    };
    if ready.is_ok() {
        yield_name(&host);
        signals.wait().context("cannot wait for signals")?;
        end_at_second_signal(signals);
    }
    host.leave();
    net.end();
    if let Some(served) = served {
        served.end();
    }
    drop(socket);
    ready.map(|()| ExitCode::SUCCESS)
}

/// The directory of `/net`.
struct NetDirectory {
    at: PathBuf,
    /// For ordinary users: the directory of the actual mounts.
    mounts: Option<PathBuf>,
}

impl NetDirectory {
    fn of(arguments: &NodeUp) -> Result<NetDirectory> {
        let is_root = rustix::process::geteuid().is_root();
        let at = match (&arguments.at, is_root) {
            (Some(at), _) => std::path::absolute(at)?,
            (None, true) => PathBuf::from("/net"),
            (None, false) => user_dirs::home().map(|home| home.join("net")).ok_or_else(|| {
                failure("$HOME is not set", "set HOME, or choose the directory for nodes with --at")
            })?,
        };
        wirefs_net::clear(&at).with_context(|| {
            format!("cannot remove the mount that a killed node left at {}", at.display())
        })?;
        std::fs::create_dir_all(&at).with_context(|| format!("cannot make {}", at.display()))?;
        let mounts = match is_root {
            true => None,
            false => {
                let dir = user_dirs::create_runtime_dir()?.join("net");
                user_dirs::create_private(&dir)?;
                Some(dir)
            }
        };
        Ok(NetDirectory { at, mounts })
    }
}

/// Listens for mounts; the resulting port is also the port of the node.
fn bind(arguments: &NodeUp, identity: &Arc<Identity>, keys: PathBuf) -> Result<(Listener, SocketAddr)> {
    let default_address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, TLS_PORT_DEFAULT));
    let wanted = arguments.listen.unwrap_or(default_address);
    let address = Address::Tls(HostPort { host: wanted.ip().to_string(), port: wanted.port() });
    let options = ListenOptions { identity: Some(Arc::clone(identity)), authorized_keys: Some(keys) };
    let listener = Listener::bind(&address, &options)?;
    let port = match listener.address() {
        Address::Tls(host) => host.port,
        Address::Unix(_) | Address::TcpPlain(_) | Address::Ssh(_) | Address::Ether(_) => wanted.port(),
    };
    Ok((listener, SocketAddr::new(wanted.ip(), port)))
}

fn node_plan(
    arguments: &NodeUp,
    identity: &Arc<Identity>,
    admission: &NodeAdmission,
    listen: SocketAddr,
    share: Option<&Path>,
) -> Result<NodePlan> {
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => machine_name()?,
    };
    let export = match (share, NodeName::new(EXPORT)) {
        (Some(share), Some(name)) => {
            let acts_for_callers = rustix::process::geteuid().is_root();
            let export = NodeExport { name, read_only: arguments.read_only, acts_for_callers };
            Some((export, share.to_owned()))
        }
        (_, _) => None,
    };
    Ok(NodePlan {
        identity: Arc::clone(identity),
        name,
        listen,
        cards: arguments.nic.clone(),
        peers: arguments.peer.clone(),
        registry: arguments.registry.clone(),
        trusted: admission.trusted(),
        export,
        ether: None,
    })
}

/// Returns the first label of the machine's name.
pub(super) fn machine_name() -> Result<NodeName> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let first = name.split('.').next().unwrap_or_default();
    NodeName::new(first).ok_or_else(|| {
        failure(
            format!("this machine's name, `{first}`, is not valid for a node"),
            "choose a name with --name NAME",
        )
    })
}

/// Waits briefly for a name conflict.
///
/// # Errors
/// Fails if another node holds our name.
fn await_name(host: &NodeHost) -> Result<()> {
    let started = Instant::now();
    let (mut seen, mut met_at) = (0, None);
    loop {
        if let Some(taken) = name_taken(host) {
            host.leave();
            return Err(taken);
        }
        if met_at.is_none() && host.nodes().len() > 1 {
            met_at = Some(Instant::now());
        }
        let until = met_at.map_or(started + FIRST_NODE_WAIT, |met_at| met_at + NAME_WAIT);
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        seen = host.await_change(seen, left);
    }
}

/// Returns the error of a name conflict, if there is one.
fn name_taken(host: &NodeHost) -> Option<anyhow::Error> {
    let holder = PublicKey::from_raw(host.name_taken()?.0).fingerprint();
    Some(failure(
        format!("the name {} is taken by the node with the key {holder}", own_name(host)),
        "choose another with --name NAME",
    ))
}

/// Ends this process after a late name conflict: no node could reach it under the name.
fn yield_name(host: &Arc<NodeHost>) {
    let host = Arc::clone(host);
    let watch = move || {
        let mut seen = 0;
        while !host.is_over() {
            if let Some(taken) = name_taken(&host) {
                print_error(&taken);
                let own = rustix::process::getpid();
                let _ending = rustix::process::kill_process(own, rustix::process::Signal::TERM);
                return;
            }
            seen = host.await_change(seen, CHECK_INTERVAL);
        }
    };
    let _or_not = thread::Builder::new().name("wirefs-name".into()).spawn(watch);
}

fn own_name(host: &NodeHost) -> String {
    let own = host.nodes().into_iter().find(|node| node.is_own);
    own.map(|node| node.record.name.to_string()).unwrap_or_default()
}

/// The first signal leaves; the second one ends the process.
fn end_at_second_signal(signals: Signals) {
    let wait = move || {
        if let Ok(signal) = signals.wait() {
            note!("wirefs: ended immediately; changes that were not sent yet are lost");
            std::process::exit(128 + signal);
        }
    };
    let _or_not = thread::Builder::new().name("wirefs-signals".into()).spawn(wait);
}
