//! The origin of a mount: a tree behind a carrier, or a tree in this process.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use anyhow::{Context, Result};
use wirefs_cache::Mode;
use wirefs_carrier::{Dial, Source};
use wirefs_mount::{Connected, JournalPlan, MountPlan};
use wirefs_ninefs::NineSource;
use wirefs_op::message::version::BootId;
use wirefs_serve::{LocalDial, ServeOptions, Server};
use wirefs_server::Tree;

use super::dial;
use super::persistent;
use super::settings::MountSettings;
use crate::blocks::Blocks;
use crate::failure::failure;
use crate::nine;

/// The minimum number of kernel request threads for a tree in this process: they execute requests, and some wait for
/// blocks.
const THREADS_HERE: usize = 8;

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
        Ok(Origin::Peer(Source::parse(source.as_bytes())?, source.as_bytes().to_vec()))
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
        }
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
            Origin::Local(_) | Origin::Nine(_) => Err(failure(
                "a tree in the mount's own process has no journal: its changes are in the tree",
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
        plan: impl FnOnce(Arc<dyn Dial>, Vec<u8>) -> MountPlan,
    ) -> Result<ConnectedOrigin> {
        match self {
            Origin::Peer(source, text) => {
                let plan = plan(dial::of(&source, settings)?, dial::path_below(&source));
                let journal = persistent::journal_of(&source, &text, settings.has_journal())
                    .map(|plan| JournalPlan { fsync: settings.fsync.into(), ..plan });
                let plan = MountPlan { store: persistent::of(&source, settings), journal, ..plan };
                Ok(ConnectedOrigin { connected: wirefs_mount::connect(plan)?, server: None })
            }
            Origin::Local(open) => {
                let (tree, boot) = open()?;
                connect_here(tree, boot, plan)
            }
            Origin::Nine(source) => {
                let (tree, boot) = nine::open(source)?;
                connect_here(tree, boot, plan)
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
    let options = ServeOptions { before_blocking: wirefs_fuse::before_blocking, ..ServeOptions::new(boot) };
    let server = Server::start(tree, options).context("cannot start threads")?;
    let server = Arc::new(server);
    let plan = plan(Arc::new(LocalDial::new(Arc::clone(&server))), Vec::new());
    let plan = MountPlan { threads: plan.threads.max(THREADS_HERE), ..plan };
    Ok(ConnectedOrigin { connected: wirefs_mount::connect(plan)?, server: Some(server) })
}
