//! `wirefs serve`: exports a directory until a signal.

pub(crate) mod boot;
mod config;
mod discovery;
mod lease_marker;
mod ledger;
mod named;
mod notify;
mod rights;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use wirefs_carrier::ether::{self, EtherAddress};
use wirefs_carrier::tls::Identity;
use wirefs_carrier::{Address, HostPort, ListenOptions, Listener, Stdio, TLS_PORT_DEFAULT};
use wirefs_hostfs::{DetectionMode, HostOptions, HostTree, WatchKind};
use wirefs_ninefs::NineSource;
use wirefs_op::message::attach::Watch;
use wirefs_op::message::version::BootId;
use wirefs_serve::{BeforeLeasing, Believers, ExportRouter, ServeOptions, ServedPlace, Server};
use wirefs_server::Tree;

use self::lease_marker::LeaseMarkers;
use crate::arguments::{self, ExportRights};
use crate::blocks::Blocks;
use crate::failure::failure;
use crate::metrics::{MetricsPort, ObservedServer};
use crate::nine;
use crate::sys::{self, Signals};
use crate::terminal::{note, say};
use crate::user_dirs;

/// The time for a socket file to vanish after the server has stopped.
const SOCKET_GONE_MAX: Duration = Duration::from_secs(1);

/// Serves until SIGTERM or SIGINT; with `--stdio` until the client disconnects.
pub(crate) fn run(arguments: &arguments::Serve) -> Result<()> {
    let signals =
        Signals::take(&[sys::INTERRUPT, sys::TERMINATE, sys::HANG_UP]).context("cannot block signals")?;
    raise_descriptors();
    if let Some(file) = &arguments.config {
        return named::run(file, &signals);
    }
    if let Some(blocks) = Blocks::parse(arguments.directory().as_os_str())? {
        return serve_blocks(arguments, &blocks, signals);
    }
    if let Some(source) = NineSource::parse(arguments.directory().as_os_str().as_bytes()) {
        let (tree, boot) = nine::open(source?)?;
        return serve_nine(arguments, tree, boot, signals);
    }
    let boot = boot::id_of(arguments.directory());
    let detection = if arguments.exclusive {
        DetectionMode::Exclusive
    } else {
        DetectionMode::Watched(WatchKind::Filesystem)
    };
    let place = identity_of(arguments.directory());
    let options =
        ServeOptions { ledger: ledger_dir(arguments.directory()), place, ..ServeOptions::new(boot) };
    let rights = arguments.granted_rights().host_options();
    let host = HostOptions { read_only: arguments.read_only, boot, detection, ..rights };
    if arguments.stdio {
        let tree = HostTree::open(arguments.directory(), host)?;
        return serve_stdio(Server::start(Arc::new(tree), options)?, signals);
    }
    let markers = open_markers(arguments.directory());
    let detection = if markers.is_some() { detection } else { DetectionMode::Nothing };
    let tree = HostTree::open(arguments.directory(), HostOptions { detection, ..host })?;
    listen(arguments, Export { tree: Arc::new(tree), options, markers, has_local_programs: true }, signals)
}

/// Serves a block tree. All changes are made by this server, so no watch is needed.
fn serve_blocks(arguments: &arguments::Serve, blocks: &Blocks, signals: Signals) -> Result<()> {
    if arguments.read_only {
        return Err(failure(
            "a block tree cannot be served read-only",
            "make a checkpoint, and have clients mount .checkpoints/NAME, which nobody can change",
        ));
    }
    let (tree, boot) = blocks.open()?;
    if arguments.stdio {
        return serve_stdio(Server::start(Arc::new(tree), ServeOptions::new(boot))?, signals);
    }
    let markers = match blocks {
        Blocks::Directory(path) => Some(Arc::new(LeaseMarkers::open(path)?)),
        // A server that is killed leaves no state.
        Blocks::Memory => None,
    };
    // Unsynced data of such a tree ends with the process, and so does its ledger.
    let options = ServeOptions::new(boot);
    listen(arguments, Export { tree: Arc::new(tree), options, markers, has_local_programs: false }, signals)
}

/// Serves a 9P server's tree. Nothing is leased, since 9P reports no changes.
fn serve_nine(
    arguments: &arguments::Serve,
    tree: Arc<dyn Tree>,
    boot: BootId,
    signals: Signals,
) -> Result<()> {
    if arguments.read_only {
        return Err(failure(
            "a 9P server's tree cannot be served read-only",
            "have that server export it read-only",
        ));
    }
    let options = ServeOptions::new(boot);
    if arguments.stdio {
        return serve_stdio(Server::start(tree, options)?, signals);
    }
    listen(arguments, Export { tree, options, markers: None, has_local_programs: false }, signals)
}

/// An export.
struct Export {
    tree: Arc<dyn Tree>,
    options: ServeOptions,
    markers: Option<Arc<LeaseMarkers>>,
    /// Local programs may change it too.
    has_local_programs: bool,
}

/// Serves on sockets until a signal.
fn listen(arguments: &arguments::Serve, export: Export, signals: Signals) -> Result<()> {
    let Export { tree, options, markers, has_local_programs } = export;
    let (listeners, authorized) = bind_all(arguments)?;
    let options = with_markers(options, markers.as_ref());
    let metrics = arguments.metrics.map(MetricsPort::bind).transpose()?;
    let server = Server::start(tree, options).context("cannot start threads")?;
    let watch = server.watch();
    let router = Arc::new(ExportRouter::single(server, rights::check(authorized.clone())));
    if let (Some(port), Some(server)) = (metrics, router.servers().into_values().next()) {
        say!("metrics: http://{}/metrics", port.address()?);
        port.serve(ObservedServer(server))?;
    }
    if let Some(file) = authorized {
        rights::watch(&router, file)?;
    }
    if arguments.announce {
        discovery::start(&listeners, Vec::new())?;
    }
    let mut sockets = Vec::new();
    for listener in listeners {
        sockets.extend(listener.address().unix_path().map(Path::to_owned));
        announce(arguments.directory(), "", &listener);
        router.listen(listener).context("cannot start a thread")?;
    }
    if markers.is_some() && has_local_programs {
        report_watch(watch);
    }
    if rustix::process::geteuid().is_root() {
        say!("running as root: clients get root's rights below this directory");
    }
    notify::ready();
    signals.wait().context("cannot wait for signals")?;
    notify::stopping();
    router.stop();
    if let Some(markers) = markers {
        markers.finish(router.servers().values().any(|server| server.are_leases_out()));
    }
    remove_sockets(&sockets);
    Ok(())
}

/// A directory served beside something else.
pub(crate) struct Served {
    router: ExportRouter,
    markers: Option<Arc<LeaseMarkers>>,
}

impl Served {
    /// Serves a directory on this listener, until [`Served::end`].
    ///
    /// # Errors
    /// Fails if the directory cannot be served, or the system has no thread left.
    pub(crate) fn start(
        directory: &Path,
        read_only: bool,
        listener: Listener,
        authorized: PathBuf,
    ) -> Result<Served> {
        let boot = boot::id_of(directory);
        let markers = open_markers(directory);
        let detection = match &markers {
            Some(_) => DetectionMode::Watched(WatchKind::Filesystem),
            None => DetectionMode::Nothing,
        };
        // A node admits other machines.
        let rights = ExportRights::default().host_options();
        let host = HostOptions { read_only, boot, detection, ..rights };
        let tree = Arc::new(HostTree::open(directory, host)?);
        let (ledger, place) = (ledger_dir(directory), identity_of(directory));
        let options = ServeOptions { ledger, place, ..ServeOptions::new(boot) };
        let server =
            Server::start(tree, with_markers(options, markers.as_ref())).context("cannot start threads")?;
        let router = ExportRouter::single(server, rights::check(Some(authorized)));
        router.listen(listener).context("cannot start a thread")?;
        Ok(Served { router, markers })
    }

    /// Serves it on a further listener.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn listen(&self, listener: Listener) -> Result<()> {
        self.router.listen(listener).context("cannot start a thread")
    }

    /// Stops serving.
    pub(crate) fn end(self) {
        self.router.stop();
        if let Some(markers) = self.markers {
            markers.finish(self.router.servers().values().any(|server| server.are_leases_out()));
        }
    }
}

/// Returns the identity by which co-located servers find this one. A missing directory cannot be served either.
fn identity_of(directory: &Path) -> Option<ServedPlace> {
    let found = std::fs::metadata(directory).ok()?;
    Some(ServedPlace { device: found.dev(), inode: found.ino() })
}

/// Opens the lease markers of this directory. Without a directory for them no leases are granted: the next server could
/// not know of the leases of a killed one.
fn open_markers(directory: &Path) -> Option<Arc<LeaseMarkers>> {
    match LeaseMarkers::open(directory) {
        Ok(markers) => Some(Arc::new(markers)),
        Err(error) => {
            note!("wirefs: {error:#}; so mounts are promised nothing, and ask again about what they know");
            None
        }
    }
}

/// Returns the directory of the ledger. Without one the server works, until it is killed.
fn ledger_dir(directory: &Path) -> Option<PathBuf> {
    match ledger::dir_of(directory) {
        Ok(dir) => Some(dir),
        Err(error) => {
            note!(
                "wirefs: {error:#}; so changes are recorded in memory only: if this server is killed, changes that are \
                 in progress may fail"
            );
            None
        }
    }
}

fn with_markers(options: ServeOptions, markers: Option<&Arc<LeaseMarkers>>) -> ServeOptions {
    let Some(markers) = markers.map(Arc::clone) else {
        return options;
    };
    let (recovery, pending_sessions) = (markers.recovery(), markers.pending_sessions());
    if !recovery.is_zero() {
        let until = match pending_sessions.as_ref().map(BTreeSet::len) {
            Some(count) => {
                format!("until all {count} mounts that it has promised something have come back, for ")
            }
            None => "for ".to_owned(),
        };
        note!(
            "wirefs: the server before this one has not ended cleanly; changes wait {until}{} s at most, so that no mount believes what \
             is no longer so",
            recovery.as_secs_f64().ceil()
        );
    }
    let before_leasing = Box::new(move |pending_sessions: &Believers| {
        if let Err(error) = markers.write_own(pending_sessions) {
            note!(
                "wirefs: {error:#}; should this server be killed, mounts may show what is no longer so for some seconds"
            );
        }
    });
    ServeOptions {
        recovery,
        believers: pending_sessions,
        before_leasing: Some(BeforeLeasing::new(before_leasing)),
        ..options
    }
}

/// Prints which changes by local programs are reported to mounts.
fn report_watch(watch: Option<Watch>) {
    match watch {
        Some(Watch::Filesystem) => {
            say!("mounts see changes by programs on this machine at once (the file system is watched)")
        }
        Some(Watch::Directories) => {
            say!(
                "mounts see changes by programs on this machine at once (each directory that they know is watched)"
            );
        }
        Some(Watch::None) => {
            say!("changes by programs on this machine are not reported to mounts (--exclusive)")
        }
        None => say!(
            "changes by programs on this machine cannot be watched in this directory, so mounts validate cached data at \
             each use (start with --exclusive if only mounts change it)"
        ),
    }
}

fn serve_stdio(server: Server, signals: Signals) -> Result<()> {
    let carrier = Stdio::from_std().context("standard input and output cannot be used for frames")?;
    let server = Arc::new(server);
    let stopping = Arc::clone(&server);
    thread::Builder::new()
        .name("wirefs-signals".into())
        .spawn(move || {
            if signals.wait().is_ok() {
                stopping.stop();
            }
        })
        .context("cannot start a thread")?;
    server.serve(carrier);
    server.stop();
    Ok(())
}

/// Binds all addresses or none: a server on half of them would look like a working one. Returns the authorized-keys
/// file too, if an address asks for keys.
fn bind_all(arguments: &arguments::Serve) -> Result<(Vec<Listener>, Option<PathBuf>)> {
    let all = HostPort { host: "::".to_owned(), port: TLS_PORT_DEFAULT };
    let addresses = match arguments.listen.as_slice() {
        [] => vec![Address::Tls(all)],
        addresses => addresses.to_vec(),
    };
    let asks_keys = |address: &Address| matches!(address, Address::Tls(_) | Address::Ether(_));
    let asks_keys = addresses.iter().any(asks_keys);
    let options = if asks_keys { tls_options(arguments)? } else { ListenOptions::default() };
    if let (Some(file), false) = (&arguments.authorized, asks_keys) {
        note!("wirefs: {} is not used: only tls:// and ether:// addresses ask for keys", file.display());
    }
    let bind = |address: &Address| Listener::bind(address, &options).map_err(anyhow::Error::from);
    let listeners = addresses.iter().map(bind).collect::<Result<_>>()?;
    // The cards are open, if any were requested; programs started from now on cannot open others.
    if addresses.iter().any(|address| matches!(address, Address::Ether(_))) {
        ether::drop_net_raw()?;
    }
    Ok((listeners, options.authorized_keys))
}

fn tls_options(arguments: &arguments::Serve) -> Result<ListenOptions> {
    let config = user_dirs::config_dir();
    let authorized = match (&arguments.authorized, &config) {
        (Some(file), _) if !file.exists() => {
            return Err(failure(
                format!("there is no file {}", file.display()),
                format!(
                    "run `wirefs allow --authorized {} KEY`, with the key that `wirefs identity` prints at the client",
                    file.display()
                ),
            ));
        }
        (Some(file), _) => file.clone(),
        (None, Ok(directory)) => directory.join("authorized_keys"),
        (None, Err(_)) => PathBuf::new(),
    };
    let identity = Identity::open(&config?)?;
    Ok(ListenOptions { identity: Some(Arc::new(identity)), authorized_keys: Some(authorized) })
}

/// Prints the address of an export, once the listener accepts connections. `name` is empty for an unnamed export.
fn announce(directory: &Path, name: &str, listener: &Listener) {
    for warning in listener.warnings() {
        note!("wirefs: {warning}");
    }
    let directory = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let address = listener.address();
    let (seen, note) = match address {
        Address::Tls(host) => (format!("tls://{}/{name}", reachable(host)), shown_key()),
        Address::TcpPlain(host) => (
            format!("tcp+plain://{}/{name}", reachable(host)),
            "  NEITHER ENCRYPTED NOR AUTHENTICATED: whoever reaches it has the files".to_owned(),
        ),
        Address::Ether(place) => {
            let place = EtherAddress { remotes: listener.hardware(), cards: place.cards.clone() };
            (format!("{place}/{name}"), shown_key())
        }
        Address::Unix(_) | Address::Ssh(_) => (address.to_string(), String::new()),
    };
    say!("serving {} on {address}{note}; mount it with: wirefs mount {seen} MNT", directory.display());
}

/// Returns our key for a client to compare.
fn shown_key() -> String {
    let identity = user_dirs::config_dir().ok().and_then(|directory| Identity::open(&directory).ok());
    identity.map(|identity| format!("  key {}", identity.public_key().fingerprint())).unwrap_or_default()
}

/// Returns the address as another machine would write it.
fn reachable(host: &HostPort) -> HostPort {
    let name = match host.host.as_str() {
        "0.0.0.0" | "::" | "" => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        name => name.to_owned(),
    };
    HostPort { host: name, port: host.port }
}

/// Each open file of a client is an open file of the server.
pub(crate) fn raise_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // A lower limit means fewer open files, which the tree handles.
    let _raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The listeners remove their files in their own threads; this waits for that, and removes late ones.
fn remove_sockets(sockets: &[PathBuf]) {
    let deadline = Instant::now() + SOCKET_GONE_MAX;
    while sockets.iter().any(|socket| socket.exists()) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    for socket in sockets {
        let _gone = std::fs::remove_file(socket);
    }
}
