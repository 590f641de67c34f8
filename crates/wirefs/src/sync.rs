//! `wirefs sync`: waits until all written data is on the server's disk.

use anyhow::{Result, anyhow};

use crate::arguments;
use crate::control::{ControlReply, ControlRequest};
use crate::failure::failure;
use crate::progress::Progress;
use crate::status::connect;

/// Waits, and shows the progress after one second.
pub(crate) fn run(arguments: &arguments::Sync) -> Result<()> {
    let mut line = connect(&arguments.mountpoint)?;
    let no_answer =
        |error: std::io::Error| anyhow!("the process that serves the mount does not answer: {error}");
    line.send(ControlRequest::Sync).map_err(no_answer)?;
    let mut progress = Progress::default();
    loop {
        match line.answer().map_err(no_answer)? {
            ControlReply::Progress(unsent) => progress.show(&format!("{} to send", unsent.amount())),
            reply => {
                progress.clear();
                return outcome(reply, arguments);
            }
        }
    }
}

fn outcome(reply: ControlReply, arguments: &arguments::Sync) -> Result<()> {
    reply.outcome()?.map_err(|message| {
        failure(
            format!("not everything is on the server's disk: {message}"),
            format!(
                "see `wirefs status {}`, and try again when the server answers",
                arguments.mountpoint.display()
            ),
        )
    })
}
