//! `wirefs node`: one machine among others, each of whose files are at `/net/NODE`.

mod control;
mod ether;
mod keys;
pub(crate) mod list;
mod mounting;
pub(crate) mod recover;
mod up;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use crate::arguments::{self, NodeCommand};
use crate::failure::failure;
use control::{Asked, NodeLine};

/// How long a node may take to end.
const END_MAX: Duration = Duration::from_secs(30);

/// Joins, shows, or leaves.
pub(crate) fn run(arguments: &arguments::Node, words: &[OsString]) -> Result<ExitCode> {
    match &arguments.command {
        NodeCommand::Up(arguments) => return up::run(arguments, words),
        NodeCommand::List(arguments) => list::run(arguments)?,
        NodeCommand::Down => down()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether this user has a node here.
pub(crate) fn is_here() -> bool {
    NodeLine::find().is_some()
}

fn down() -> Result<()> {
    let mut line = find()?;
    line.ask(Asked::Down)?;
    if !line.await_end(END_MAX) {
        return Err(failure(
            "the node does not end: it still brings to others what was written",
            "look again with `wirefs node list`, or end its process",
        ));
    }
    Ok(())
}

/// The node of this user.
fn find() -> Result<NodeLine> {
    NodeLine::find().ok_or_else(|| failure("this user has no node here", "start one with `wirefs node up`"))
}
