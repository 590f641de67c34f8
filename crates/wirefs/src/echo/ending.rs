//! What becomes of the data when it is unmounted.

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
use crate::control::{Ask, Line, Told};
use crate::failure::{failure, tell};
use crate::mountpoint;
use crate::places;
use crate::terminal::note;

/// How often a file that cannot be written is tried again, and after how long.
const TRIES_MAX: u32 = 30;
const TRY_EACH: Duration = Duration::from_secs(10);
/// What the sources of such mounts begin with.
pub(super) const SOURCE_PREFIX: &str = "echo:";

/// What the user decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Plan {
    /// Nothing yet.
    #[default]
    Undecided,
    /// It ends.
    Discard,
    /// It is written to a file.
    Save(PathBuf),
}

/// What becomes of the data, which may be decided until the end.
#[derive(Debug)]
pub(crate) struct Ending {
    plan: Mutex<Plan>,
}

impl Ending {
    /// What the arguments say.
    ///
    /// # Errors
    /// The file cannot be named.
    pub(super) fn of(arguments: &EchoMount) -> Result<Ending> {
        let plan = match (&arguments.save, arguments.discard) {
            // The process leaves the directory that it was started in.
            (Some(file), _) => Plan::Save(std::path::absolute(file)?),
            (None, true) => Plan::Discard,
            (None, false) => Plan::Undecided,
        };
        Ok(Ending { plan: Mutex::new(plan) })
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is decided.
    pub(super) fn plan(&self) -> Plan {
        self.lock().clone()
    }

    /// Decides.
    pub(super) fn decide(&self, plan: Plan) {
        *self.lock() = plan;
    }

    /// It is unmounted: does what was decided. What nobody decided about, as behind umount(8), is saved where the user
    /// finds it. A file that cannot be written is tried again, for the data is nowhere else.
    ///
    /// # Errors
    /// The tree could not be saved.
    pub(super) fn end(&self, store: &EchoStore, mountpoint: &Path) -> Result<()> {
        let (file, is_asked) = match self.plan() {
            Plan::Discard => return Ok(()),
            Plan::Save(file) => (file, true),
            Plan::Undecided => (rescue_file(mountpoint)?, false),
        };
        let mut tries = 1;
        let saved = loop {
            match save::write(store, &file) {
                Ok(saved) => break saved,
                Err(error @ SaveError::File { .. }) if tries < TRIES_MAX => tell(&error.into()),
                Err(error) => return Err(error.into()),
            }
            tries += 1;
            std::thread::sleep(TRY_EACH);
        };
        if !is_asked {
            note!(
                "wirefs: it was unmounted without --discard or --save; its {} blocks are in {}, `--load` brings them back",
                saved.blocks,
                file.display()
            );
        }
        if saved.lost > 0 {
            note!("wirefs: {} blocks were lost before; what needs them cannot be read", saved.lost);
        }
        Ok(())
    }
}

/// A file of the user's own that is not there yet.
fn rescue_file(mountpoint: &Path) -> Result<PathBuf> {
    let directory = places::state_dir()?;
    places::make_private(&directory)?;
    let name = mountpoint::file_name(&std::path::absolute(mountpoint)?);
    let free =
        (0..).map(|number| directory.join(format!("{name}.{number}.tree"))).find(|path| !path.exists());
    Ok(free.unwrap_or_else(|| directory.join(name)))
}

/// Decides about the data of the mount that this process serves. Whether it has any.
pub(crate) fn decide(plan: Plan) -> bool {
    super::SERVED.get().map(|served| served.ending.decide(plan)).is_some()
}

/// Whether a mount's blocks are in echo packets.
pub(crate) fn is_echo(mountpoint: &Path) -> bool {
    let mounted = mountpoint::mounted();
    mounted.iter().any(|(path, source)| path == mountpoint && source.starts_with(SOURCE_PREFIX))
}

/// Sees to it that it is decided what becomes of the data before a mount goes: as the arguments say, as was said when it
/// was mounted, or as the person at the terminal says.
///
/// # Errors
/// Nobody decided.
pub(crate) fn prepare(line: &mut Line, path: &Path, save: Option<&Path>, discard: bool) -> Result<()> {
    let plan = match (save, discard) {
        (Some(file), _) => Plan::Save(std::path::absolute(file)?),
        (None, true) => Plan::Discard,
        (None, false) => match ask(line, Ask::Echo)? {
            Told::Echo(report) if report.ending != Plan::Undecided => return Ok(()),
            // The others go on with it.
            Told::Echo(report) if report.nodes.as_ref().is_some_and(Nodes::has_others) => return Ok(()),
            Told::Echo(report) => consent(path, report.blocks)?,
            _ => return Ok(()),
        },
    };
    match ask(line, Ask::End { plan })? {
        Told::Failed { message } => Err(failure(message, "try again")),
        _ => Ok(()),
    }
}

fn ask(line: &mut Line, ask: Ask) -> std::io::Result<Told> {
    line.ask(ask)?;
    line.answer()
}

fn consent(path: &Path, blocks: Option<u64>) -> Result<Plan> {
    let refused = || {
        failure(
            format!("unmounting {} would be the end of its data, which is nowhere else", path.display()),
            "say `wirefs umount --save FILE` to keep it in a file, or `--discard` to let it go",
        )
    };
    if !std::io::stdin().is_terminal() {
        return Err(refused());
    }
    let blocks = blocks.map_or("blocks".to_owned(), |count| format!("{count} blocks"));
    note!("the {blocks} of {} are in packets under way and nowhere else; let them go? [y/N]", path.display());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(Plan::Discard) } else { Err(refused()) }
}
