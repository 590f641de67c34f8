//! What is mounted: a tree behind a carrier, or one that this process serves to itself.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use anyhow::{Context, Result};
use wirefs_carrier::{Dial, Source};
use wirefs_driver::mount::{Connected, JournalPlan, LocalDial, MountPlan};
use wirefs_driver::serve::{ServeOptions, Server};
use wirefs_op::message::version::BootId;
use wirefs_server::Tree;

use super::chosen::Chosen;
use super::dial;
use super::keeping;
use crate::blocks::Blocks;
use crate::failure::failure;

/// Threads of the kernel's requests where the tree is in this process, at least: they carry requests out, and some wait for
/// blocks meanwhile.
const THREADS_HERE: usize = 8;

/// Opens a tree of this process, and tells the life of what is not synced in it.
pub(crate) type Opening = Box<dyn FnOnce() -> Result<(Arc<dyn Tree>, BootId)>>;

/// What is to be mounted.
pub(crate) enum Origin {
    /// What a peer exports, and how the user wrote it.
    Peer(Source, Vec<u8>),
    /// A tree of this process. Opened only by the process that mounts it.
    Here(Opening),
}

/// What was reached, with the server of this process that must outlive the mount.
pub(super) struct Reached {
    pub(super) connected: Connected,
    pub(super) server: Option<Arc<Server>>,
}

impl Origin {
    /// The origin that a source names.
    ///
    /// # Errors
    /// It is written wrongly.
    pub(crate) fn parse(source: &OsStr) -> Result<Origin> {
        if let Some(blocks) = Blocks::parse(source)? {
            return Ok(Origin::Here(Box::new(move || {
                let (tree, boot) = blocks.open()?;
                Ok((Arc::new(tree), boot))
            })));
        }
        Ok(Origin::Peer(Source::parse(source.as_bytes())?, source.as_bytes().to_vec()))
    }

    /// Whether whoever mounts is the only one who keeps the rights: no server does.
    pub(super) fn is_here(&self) -> bool {
        matches!(self, Origin::Here(_))
    }

    /// What it takes to bring to the peer what mounts left in their journals.
    ///
    /// # Errors
    /// It is a tree of this process, or our key cannot be read.
    pub(super) fn recovery(
        self,
        chosen: &Chosen,
        plan: impl FnOnce(Arc<dyn Dial>, Vec<u8>) -> MountPlan,
    ) -> Result<MountPlan> {
        match self {
            Origin::Peer(source, text) => {
                let plan = plan(dial::of(&source, chosen)?, dial::path_below(&source));
                Ok(MountPlan { journal: keeping::journal_of(&source, &text, false), ..plan })
            }
            Origin::Here(_) => Err(failure(
                "a tree of this machine has no journal: what was changed in it is in it",
                "name the source of a mount over a wire; `wirefs recover --list` shows what was left",
            )),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// The peer cannot be reached, or the tree cannot be opened.
    pub(super) fn reach(
        self,
        chosen: &Chosen,
        plan: impl FnOnce(Arc<dyn Dial>, Vec<u8>) -> MountPlan,
    ) -> Result<Reached> {
        match self {
            Origin::Peer(source, text) => {
                let plan = plan(dial::of(&source, chosen)?, dial::path_below(&source));
                let journal = keeping::journal_of(&source, &text, chosen.keeps_journal())
                    .map(|plan| JournalPlan { fsync: chosen.fsync.into(), ..plan });
                let plan = MountPlan { store: keeping::of(&source, chosen), journal, ..plan };
                Ok(Reached { connected: dial::connect(plan, &source, chosen)?, server: None })
            }
            Origin::Here(open) => {
                let (tree, boot) = open()?;
                let server = Server::start(tree, ServeOptions::new(boot)).context("cannot start threads")?;
                let server = Arc::new(server);
                let plan = plan(Arc::new(LocalDial::new(Arc::clone(&server))), Vec::new());
                let plan = MountPlan { threads: plan.threads.max(THREADS_HERE), ..plan };
                Ok(Reached { connected: wirefs_driver::mount::connect(plan)?, server: Some(server) })
            }
        }
    }
}
