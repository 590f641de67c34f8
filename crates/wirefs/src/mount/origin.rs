//! The origin of a mount: a tree behind a carrier, or a tree in this process.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use wirefs_cache::{Mode, Validate};
use wirefs_carrier::{Address, Dial, DialError, Source};
use wirefs_mount::{ConnectError, Connected, JournalPlan, MountPlan};
use wirefs_ninefs::NineSource;
use wirefs_op::message::version::BootId;
use wirefs_serve::{InProcessExecution, LocalDial, ServeOptions, Server};
use wirefs_server::Tree;

use super::dial;
use super::persistent;
use super::settings::MountSettings;
use crate::arguments::Symlinks;
use crate::blocks::Blocks;
use crate::failure::failure;
use crate::nine;
use crate::sftp;
use crate::terminal::note;

/// The minimum number of kernel request threads for a tree in this process: they execute requests, and some wait for
/// blocks.
const THREADS_HERE: usize = 8;

/// The mode of a mount over SFTP whose user names none: `window` with a longer window. A removal takes a round trip, so
/// within a second not even the files of one directory are removed, and the others would be looked up again.
const SFTP_MODE: Mode = Mode { validate: Validate::Window(Duration::from_secs(5)), ..Mode::WINDOW };

/// Opens a tree in this process, and returns the boot id of its unsynced data.
pub(crate) type TreeOpener = Box<dyn FnOnce() -> Result<(Arc<dyn Tree>, BootId)>>;

/// The origin of a mount.
pub(crate) enum Origin {
    /// A peer's export, and the source as the user wrote it.
    Peer(Source, Vec<u8>),
    /// A tree in this process. Opened only by the process that mounts it.
    Local(TreeOpener),
    /// A 9P server's tree, whose server checks permissions.
    Nine(NineSource),
    /// A directory of an SFTP server.
    Sftp(Source),
    /// A directory of a gate for gRPC, which a program of its own dials.
    Gate(OsString),
}

/// A connected origin, with the server in this process that must outlive the mount.
pub(super) struct ConnectedOrigin {
    pub(super) connected: Connected,
    pub(super) server: Option<Arc<Server>>,
}

impl Origin {
    /// Parses a source.
    ///
    /// # Errors
    /// Fails if it is malformed.
    pub(crate) fn parse(source: &OsStr) -> Result<Origin> {
        if let Some(blocks) = Blocks::parse(source)? {
            return Ok(Origin::Local(Box::new(move || {
                let (tree, boot) = blocks.open()?;
                Ok((Arc::new(tree), boot))
            })));
        }
        if let Some(source) = NineSource::parse(source.as_bytes()) {
            return Ok(Origin::Nine(source?));
        }
        if [&b"grpc://"[..], b"grpcs://"].iter().any(|scheme| source.as_bytes().starts_with(scheme)) {
            return Ok(Origin::Gate(source.to_owned()));
        }
        let parsed = Source::parse(source.as_bytes())?;
        if source.as_bytes().starts_with(b"sftp://") {
            return Ok(Origin::Sftp(parsed));
        }
        Ok(Origin::Peer(parsed, source.as_bytes().to_vec()))
    }

    /// Returns whether only the local kernel checks permissions, without a server.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Origin::Local(_))
    }

    /// Returns the mode of a mount whose user names none. Files of a 9P server may be synthetic, so they are read exactly
    /// as programs read them.
    pub(super) fn default_mode(&self) -> Mode {
        match self {
            Origin::Peer(..) | Origin::Local(_) => Mode::default(),
            Origin::Nine(_) => Mode::STRICT,
            Origin::Sftp(_) => SFTP_MODE,
            Origin::Gate(_) => Mode::WINDOW,
        }
    }

    /// Returns the links that programs may follow if the user does not say it. A server that the user may log in to could
    /// change this user's files in easier ways; another one could lead programs to files of this machine.
    ///
    /// # Errors
    /// Fails if the known hosts cannot be read.
    pub(super) fn default_symlinks(&self, settings: &MountSettings) -> Result<Symlinks> {
        let is_trusted = match self {
            Origin::Local(_) | Origin::Sftp(_) => true,
            Origin::Nine(_) | Origin::Gate(_) => false,
            Origin::Peer(source, _) => match &source.address {
                Address::Ssh(_) | Address::Unix(_) => true,
                Address::TcpPlain(_) => false,
                Address::Tls(host) => dial::trusts(&host.to_string(), settings)?,
                Address::Ether(place) => dial::trusts(&place.peer_name(), settings)?,
            },
        };
        Ok(if is_trusted { Symlinks::All } else { Symlinks::Inside })
    }

    /// Returns the plan to send pending changes of journals to the peer.
    ///
    /// # Errors
    /// Fails for a tree in this process, or if our key cannot be read.
    pub(super) fn recovery(
        self,
        settings: &MountSettings,
        plan: impl FnOnce(Arc<dyn Dial>, Vec<u8>) -> MountPlan,
    ) -> Result<MountPlan> {
        match self {
            Origin::Peer(source, text) => {
                let plan = plan(dial::of(&source, settings)?, dial::path_below(&source));
                Ok(MountPlan { journal: persistent::journal_of(&source, &text, false), ..plan })
            }
            Origin::Local(_) | Origin::Nine(_) | Origin::Sftp(_) | Origin::Gate(_) => Err(failure(
                "a tree in the mount's own process, and a source of another protocol, have no journal",
                "name the source of a remote mount; `wirefs recover --list` shows unsent changes",
            )),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// Fails if the peer cannot be reached, or the tree cannot be opened.
    pub(super) fn connect(
        self,
        settings: &MountSettings,
        plan: impl Fn(Arc<dyn Dial>, Vec<u8>) -> MountPlan,
    ) -> Result<ConnectedOrigin> {
        match self {
            Origin::Peer(source, text) => {
                let peer = plan(dial::of(&source, settings)?, dial::path_below(&source));
                let journal = persistent::journal_of(&source, &text, settings.has_journal())
                    .map(|plan| JournalPlan { fsync: settings.fsync.into(), ..plan });
                let peer = MountPlan { store: persistent::of(&source, settings), journal, ..peer };
                match wirefs_mount::connect(peer) {
                    Err(ConnectError::Dial(reason)) if runs_no_wirefs(&reason, &source) => {
                        connect_sftp_instead(&source, settings, &reason, plan)
                    }
                    connected => Ok(ConnectedOrigin { connected: connected?, server: None }),
                }
            }
            Origin::Local(open) => {
                let (tree, boot) = open()?;
                connect_here(tree, boot, plan)
            }
            Origin::Nine(source) => {
                let (tree, boot) = nine::open(source)?;
                connect_here(tree, boot, plan)
            }
            Origin::Sftp(source) => connect_sftp(&source, settings, plan),
            Origin::Gate(source) => {
                let plan = plan(Arc::new(dial::gate(&source, settings)), Vec::new());
                Ok(ConnectedOrigin { connected: wirefs_mount::connect(plan)?, server: None })
            }
        }
    }
}

/// Connects to a tree in this process.
fn connect_here(
    tree: Arc<dyn Tree>,
    boot: BootId,
    plan: impl FnOnce(Arc<dyn Dial>, Vec<u8>) -> MountPlan,
) -> Result<ConnectedOrigin> {
    let in_process = InProcessExecution::CallingThread { before_blocking: wirefs_fuse::before_blocking };
    connect_with(tree, ServeOptions { in_process, ..ServeOptions::new(boot) }, plan)
}

/// Returns whether the login works, and no wirefs can run there.
fn runs_no_wirefs(reason: &DialError, source: &Source) -> bool {
    let is_such = matches!(
        reason,
        DialError::SftpOnly { .. } | DialError::NotCopied { .. } | DialError::RemoteMissing { .. }
    );
    is_such && matches!(source.address, Address::Ssh(_))
}

/// Connects over SFTP to a host that runs no wirefs, and says so.
fn connect_sftp_instead(
    source: &Source,
    settings: &MountSettings,
    reason: &DialError,
    plan: impl FnOnce(Arc<dyn Dial>, Vec<u8>) -> MountPlan,
) -> Result<ConnectedOrigin> {
    let window = |plan: MountPlan| {
        let usual = Mode { fetch: plan.mode.fetch, ..Mode::default() };
        let mode = if plan.mode == usual { Mode { fetch: usual.fetch, ..SFTP_MODE } } else { plan.mode };
        MountPlan { mode, ..plan }
    };
    let connected = connect_sftp(source, settings, |dial, path| window(plan(dial, path)));
    let connected = connected.map_err(|error| error.context(reason.to_string()))?;
    let reason = reason.to_string();
    let reason = reason.lines().next().unwrap_or_default();
    note!("wirefs: mounting over SFTP, not with a wirefs there: {reason}");
    Ok(connected)
}

fn connect_sftp(
    source: &Source,
    settings: &MountSettings,
    plan: impl FnOnce(Arc<dyn Dial>, Vec<u8>) -> MountPlan,
) -> Result<ConnectedOrigin> {
    let (tree, boot) = sftp::open(dial::subsystem(source, settings)?, &source.path)?;
    let in_process = InProcessExecution::Workers;
    connect_with(tree, ServeOptions { in_process, ..ServeOptions::new(boot) }, plan)
}

fn connect_with(
    tree: Arc<dyn Tree>,
    options: ServeOptions,
    plan: impl FnOnce(Arc<dyn Dial>, Vec<u8>) -> MountPlan,
) -> Result<ConnectedOrigin> {
    let server = Server::start(tree, options).context("cannot start threads")?;
    let server = Arc::new(server);
    let plan = plan(Arc::new(LocalDial::new(Arc::clone(&server))), Vec::new());
    let plan = MountPlan { threads: plan.threads.max(THREADS_HERE), ..plan };
    Ok(ConnectedOrigin { connected: wirefs_mount::connect(plan)?, server: Some(server) })
}
