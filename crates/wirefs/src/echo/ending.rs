//! The fate of the data at unmount: saved to a file, or discarded.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use wirefs_pingfs::EchoStore;
use wirefs_pingfs::save::{self, SaveError};

use super::nodes::Nodes;
use crate::arguments::EchoMount;
use crate::control::{ControlClient, ControlReply, ControlRequest};
use crate::failure::{failure, print_error};
use crate::mountpoint;
use crate::terminal::note;
use crate::user_dirs;

/// Attempts to write the file.
const TRIES_MAX: u32 = 30;
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The prefix of the sources of such mounts.
pub(super) const SOURCE_PREFIX: &str = "echo:";

/// The user's decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Plan {
    /// None yet.
    #[default]
    Undecided,
    /// Discard the data.
    Discard,
    /// Write the data to a file.
    Save(PathBuf),
}

/// The decision about the data, which can change until the unmount.
#[derive(Debug)]
pub(crate) struct Ending {
    plan: Mutex<Plan>,
}

impl Ending {
    /// Returns the decision in the arguments.
    ///
    /// # Errors
    /// The file's path cannot be resolved.
    pub(super) fn of(arguments: &EchoMount) -> Result<Ending> {
        let plan = match (&arguments.save, arguments.discard) {
            // The process changes its working directory later.
            (Some(file), _) => Plan::Save(std::path::absolute(file)?),
            (None, true) => Plan::Discard,
            (None, false) => Plan::Undecided,
        };
        Ok(Ending { plan: Mutex::new(plan) })
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the decision.
    pub(super) fn plan(&self) -> Plan {
        self.lock().clone()
    }

    /// Sets the decision.
    pub(super) fn decide(&self, plan: Plan) {
        *self.lock() = plan;
    }

    /// Carries out the decision after the unmount. Without one, as after umount(8), the data is saved to a file in the
    /// state directory. A failed write is retried, since the data exists nowhere else.
    ///
    /// # Errors
    /// The tree could not be saved.
    pub(super) fn end(&self, store: &EchoStore, mountpoint: &Path) -> Result<()> {
        let (file, is_asked) = match self.plan() {
            Plan::Discard => return Ok(()),
            Plan::Save(file) => (file, true),
            Plan::Undecided => (fallback_file(mountpoint)?, false),
        };
        let mut tries = 1;
        let saved = loop {
            match save::write(store, &file) {
                Ok(saved) => break saved,
                Err(error @ SaveError::File { .. }) if tries < TRIES_MAX => print_error(&error.into()),
                Err(error) => return Err(error.into()),
            }
            tries += 1;
            std::thread::sleep(RETRY_INTERVAL);
        };
        if !is_asked {
            note!(
                "wirefs: unmounted without --discard or --save; its {} blocks were saved to {}, `--load` restores them",
                saved.blocks,
                file.display()
            );
        }
        if saved.lost > 0 {
            note!("wirefs: {} blocks were lost earlier; files that need them cannot be read", saved.lost);
        }
        Ok(())
    }
}

/// Returns a new file in the user's state directory.
fn fallback_file(mountpoint: &Path) -> Result<PathBuf> {
    let directory = user_dirs::state_dir()?;
    user_dirs::create_private(&directory)?;
    let name = mountpoint::file_name(&std::path::absolute(mountpoint)?);
    let free =
        (0..).map(|number| directory.join(format!("{name}.{number}.tree"))).find(|path| !path.exists());
    Ok(free.unwrap_or_else(|| directory.join(name)))
}

/// Sets the decision for the mount of this process. Returns whether it has a PingFS.
pub(crate) fn decide(plan: Plan) -> bool {
    super::SERVED.get().map(|served| served.ending.decide(plan)).is_some()
}

/// Returns whether a mount is a PingFS.
pub(crate) fn is_echo(mountpoint: &Path) -> bool {
    let mounted = mountpoint::mounted();
    mounted.iter().any(|mount| mount.mountpoint == mountpoint && mount.source.starts_with(SOURCE_PREFIX))
}

/// Obtains a decision about the data before an unmount: from the arguments, from the mount's arguments, or from the
/// user at the terminal.
///
/// # Errors
/// There is no decision.
pub(crate) fn prepare(
    line: &mut ControlClient,
    path: &Path,
    save: Option<&Path>,
    discard: bool,
) -> Result<()> {
    let plan = match (save, discard) {
        (Some(file), _) => Plan::Save(std::path::absolute(file)?),
        (None, true) => Plan::Discard,
        (None, false) => match ask(line, ControlRequest::Echo)? {
            ControlReply::Echo(report) if report.ending != Plan::Undecided => return Ok(()),
            // The other nodes keep the data.
            ControlReply::Echo(report) if report.nodes.as_ref().is_some_and(Nodes::has_others) => {
                return Ok(());
            }
            ControlReply::Echo(report) => consent(path, report.blocks)?,
            _ => return Ok(()),
        },
    };
    match ask(line, ControlRequest::End { plan })? {
        ControlReply::Failed { message } => Err(failure(message, "try again")),
        _ => Ok(()),
    }
}

fn ask(line: &mut ControlClient, ask: ControlRequest) -> std::io::Result<ControlReply> {
    line.send(ask)?;
    line.answer()
}

fn consent(path: &Path, blocks: Option<u64>) -> Result<Plan> {
    let refused = || {
        failure(
            format!("unmounting {} would discard its data, and there is no other copy", path.display()),
            "use `wirefs umount --save FILE` to save it to a file, or `--discard` to drop it",
        )
    };
    if !std::io::stdin().is_terminal() {
        return Err(refused());
    }
    let blocks = blocks.map_or("blocks".to_owned(), |count| format!("{count} blocks"));
    note!("the {blocks} of {} exist only in packets in flight; discard them? [y/N]", path.display());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(Plan::Discard) } else { Err(refused()) }
}
