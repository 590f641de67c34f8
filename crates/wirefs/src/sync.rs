//! `wirefs sync`: waits until all that was written is on the server's disk.

use std::io::{IsTerminal, Write};

use anyhow::{Result, anyhow};

use crate::arguments;
use crate::control::{Ask, Told};
use crate::failure::failure;
use crate::status::{bytes, connect};

/// Waits, and on a terminal tells how far it is once that takes over a second.
pub(crate) fn run(arguments: &arguments::Sync) -> Result<()> {
    let mut line = connect(&arguments.mountpoint)?;
    let gone = |error: std::io::Error| anyhow!("the process that serves the mount does not answer: {error}");
    line.ask(Ask::Sync).map_err(gone)?;
    let mut has_shown = false;
    loop {
        match line.answer().map_err(gone)? {
            Told::Progress { unacknowledged_bytes } => {
                if std::io::stderr().is_terminal() {
                    // A terminal that is gone needs no progress.
                    let _gone = write!(std::io::stderr(), "\r{} to go\x1b[K", bytes(unacknowledged_bytes));
                    has_shown = true;
                }
            }
            told @ (Told::Done | Told::Failed { .. } | Told::Status(_) | Told::Echo(_)) => {
                if has_shown {
                    // As above.
                    let _gone = write!(std::io::stderr(), "\r\x1b[K");
                }
                return outcome(told, arguments);
            }
        }
    }
}

fn outcome(told: Told, arguments: &arguments::Sync) -> Result<()> {
    match told {
        Told::Done => Ok(()),
        Told::Failed { message } => Err(failure(
            format!("not everything is on the server's disk: {message}"),
            format!(
                "see `wirefs status {}`, and try again when the server answers",
                arguments.mountpoint.display()
            ),
        )),
        Told::Status(_) | Told::Echo(_) | Told::Progress { .. } => {
            Err(anyhow!("the process that serves the mount answers something else"))
        }
    }
}
