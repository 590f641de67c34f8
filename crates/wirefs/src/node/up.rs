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
use wirefs_driver::net::{Net, NetPlan};
use wirefs_driver::node::{NodeHost, NodePlan};
use wirefs_node::{NodeExport, NodeName};

use super::control::{self, NodeSocket};
use super::ether::{Dials, Offer};
use super::keys::Admission;
use super::mounting::Mounting;
use crate::arguments::NodeUp;
use crate::failure::{failure, tell};
use crate::mount::daemon;
use crate::places;
use crate::serve::{Served, raise_descriptors};
use crate::sys::{self, Signals};
use crate::terminal::{note, say};

/// What a node's export is called.
const EXPORT: &str = "share";
/// How long a new node listens to the first that it meets whether its name is taken, before it says that it is there.
const NAME_WAIT: Duration = Duration::from_millis(500);
/// How long it waits to meet one.
const MEET_WAIT: Duration = Duration::from_millis(1_000);
/// How often it is looked whether the name is taken though nothing was heard.
const LOOK_EACH: Duration = Duration::from_secs(1);

/// Joins, and stays until it is told to leave.
pub(super) fn run(arguments: &NodeUp, words: &[OsString]) -> Result<ExitCode> {
    if !arguments.foreground && !arguments.reports {
        return daemon::start(words, 2);
    }
    let signals = Signals::take(&[sys::INTERRUPT, sys::TERMINATE, sys::HANG_UP])
        .context("cannot take over the signals")?;
    raise_descriptors();
    let place = Place::of(arguments)?;
    let (socket, control) = NodeSocket::take()?;
    let identity = Arc::new(Identity::open(&places::config_dir()?)?);
    let admission = Admission::of(arguments)?;
    let keys = admission.file()?;
    let share = arguments.share.as_deref().map(std::fs::canonicalize).transpose();
    let share = share.with_context(|| "the directory to share cannot be used".to_owned())?;

    let (listener, listen) = bind(arguments, &identity, keys.clone())?;
    let offer = Offer::open(arguments, &identity, keys.clone())?;
    let plan = node_plan(arguments, &identity, &admission, listen, share.as_deref())?;
    let host = NodeHost::start(NodePlan { ether: offer.ether, ..plan })?;
    await_name(&host)?;
    admission.follow(keys, &host)?;
    let served = share.as_deref().map(|dir| Served::start(dir, arguments.read_only, listener)).transpose()?;
    if let (Some(served), Some(listener)) = (&served, offer.listener) {
        served.listen(listener)?;
    }
    let dials = Dials::default();
    let mounting = Mounting::of(arguments, &host, &identity, &dials, place.at.clone());
    let plan = NetPlan { at: place.at.clone(), share, mounts: place.mounts, reach: mounting.reach() };
    let net = match Net::start(plan, &host) {
        Ok(net) => net,
        Err(error) => {
            host.leave();
            return Err(error.into());
        }
    };
    control::serve(control, Arc::clone(&host), dials, mounting)?;
    let stands = match arguments.reports {
        true => daemon::report_and_leave(&place.at),
        false => {
            say!("joined as {}; the nodes are in {}", own_name(&host), place.at.display());
            Ok(())
        }
    };
    if stands.is_ok() {
        yield_late(&host);
        signals.wait().context("cannot wait for signals")?;
        end_at_second_signal(signals);
    }
    host.leave();
    net.end();
    if let Some(served) = served {
        served.end();
    }
    drop(socket);
    stands.map(|()| ExitCode::SUCCESS)
}

/// Where `/net` is to be.
struct Place {
    at: PathBuf,
    /// An ordinary user's: where the mounts are made.
    mounts: Option<PathBuf>,
}

impl Place {
    fn of(arguments: &NodeUp) -> Result<Place> {
        let is_root = rustix::process::geteuid().is_root();
        let at = match (&arguments.at, is_root) {
            (Some(at), _) => std::path::absolute(at)?,
            (None, true) => PathBuf::from("/net"),
            (None, false) => std::env::var_os("HOME")
                .map(|home| PathBuf::from(home).join("net"))
                .ok_or_else(|| failure("$HOME is not set", "say with --at where the nodes are to be"))?,
        };
        wirefs_driver::net::clear(&at)
            .with_context(|| format!("what a node that died left at {} is in the way", at.display()))?;
        std::fs::create_dir_all(&at).with_context(|| format!("cannot make {}", at.display()))?;
        let mounts = match is_root {
            true => None,
            false => {
                let dir = places::make_runtime_dir()?.join("net");
                places::make_private(&dir)?;
                Some(dir)
            }
        };
        Ok(Place { at, mounts })
    }
}

/// Listens for mounts; the port that was got is that for nodes, too.
fn bind(arguments: &NodeUp, identity: &Arc<Identity>, keys: PathBuf) -> Result<(Listener, SocketAddr)> {
    let usual = SocketAddr::from((Ipv4Addr::UNSPECIFIED, TLS_PORT_DEFAULT));
    let wanted = arguments.listen.unwrap_or(usual);
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
    admission: &Admission,
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

/// The first part of the machine's name.
fn machine_name() -> Result<NodeName> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let first = name.split('.').next().unwrap_or_default();
    NodeName::new(first).ok_or_else(|| {
        failure(format!("this machine's name, `{first}`, is not a node's"), "give one with --name NAME")
    })
}

/// Waits a moment whether another has our name.
///
/// # Errors
/// One has.
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
        let until = met_at.map_or(started + MEET_WAIT, |met_at| met_at + NAME_WAIT);
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        seen = host.await_change(seen, left);
    }
}

/// What is to be told when another keeps our name.
fn name_taken(host: &NodeHost) -> Option<anyhow::Error> {
    let holder = PublicKey::from_raw(host.name_taken()?.0).fingerprint();
    Some(failure(
        format!("the name {} is taken, by the node with the key {holder}", own_name(host)),
        "choose another with --name NAME",
    ))
}

/// Ends this process when it turns out late that another keeps our name: under it nobody could reach us.
fn yield_late(host: &Arc<NodeHost>) {
    let host = Arc::clone(host);
    let watch = move || {
        let mut seen = 0;
        while !host.is_over() {
            if let Some(taken) = name_taken(&host) {
                tell(&taken);
                let own = rustix::process::getpid();
                let _ending = rustix::process::kill_process(own, rustix::process::Signal::TERM);
                return;
            }
            seen = host.await_change(seen, LOOK_EACH);
        }
    };
    let _or_not = thread::Builder::new().name("wirefs-name".into()).spawn(watch);
}

fn own_name(host: &NodeHost) -> String {
    let own = host.nodes().into_iter().find(|node| node.is_own);
    own.map(|node| node.record.name.to_string()).unwrap_or_default()
}

/// The first signal leaves; the next one ends the process.
fn end_at_second_signal(signals: Signals) {
    let wait = move || {
        if let Ok(signal) = signals.wait() {
            note!("wirefs: ended at once; what others had not got yet is lost");
            std::process::exit(128 + signal);
        }
    };
    let _or_not = thread::Builder::new().name("wirefs-signals".into()).spawn(wait);
}
