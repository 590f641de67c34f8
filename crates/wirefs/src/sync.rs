//! `wirefs sync`: waits until all written data is on the server's disk.

use std::io::{IsTerminal, Write};

use anyhow::{Result, anyhow};

use crate::arguments;
use crate::control::{ControlReply, ControlRequest};
use crate::failure::failure;
use crate::status::{bytes, connect};

/// Waits; on a terminal prints the progress after one second.
pub(crate) fn run(arguments: &arguments::Sync) -> Result<()> {
    let mut line = connect(&arguments.mountpoint)?;
    let no_answer =
        |error: std::io::Error| anyhow!("the process that serves the mount does not answer: {error}");
    line.send(ControlRequest::Sync).map_err(no_answer)?;
    let mut has_shown = false;
    loop {
        match line.answer().map_err(no_answer)? {
            ControlReply::Progress { unacknowledged_bytes } => {
                if std::io::stderr().is_terminal() {
                    // Fails if the terminal is closed; then no progress is needed.
                    let _gone = write!(std::io::stderr(), "\r{} to go\x1b[K", bytes(unacknowledged_bytes));
                    has_shown = true;
                }
            }
            reply @ (ControlReply::Done
            | ControlReply::Failed { .. }
            | ControlReply::Status(_)
            | ControlReply::Echo(_)) => {
                if has_shown {
                    // As above.
                    let _gone = write!(std::io::stderr(), "\r\x1b[K");
                }
                return outcome(reply, arguments);
            }
        }
    }
}

fn outcome(reply: ControlReply, arguments: &arguments::Sync) -> Result<()> {
    match reply {
        ControlReply::Done => Ok(()),
        ControlReply::Failed { message } => Err(failure(
            format!("not everything is on the server's disk: {message}"),
            format!(
                "see `wirefs status {}`, and try again when the server answers",
                arguments.mountpoint.display()
            ),
        )),
        ControlReply::Status(_) | ControlReply::Echo(_) | ControlReply::Progress { .. } => {
            Err(anyhow!("the process that serves the mount sent an unexpected answer"))
        }
    }
}
