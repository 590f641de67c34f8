//! `wirefs node`: a node of a network whose files are at `/net/NODE`.

mod control;
mod ether;
mod invite;
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
use control::{NodeClient, NodeRequest};

/// The timeout for the end of a node.
const END_MAX: Duration = Duration::from_secs(30);

/// Joins, invites, lists, or leaves.
pub(crate) fn run(arguments: &arguments::Node, words: &[OsString]) -> Result<ExitCode> {
    match &arguments.command {
        NodeCommand::Up(arguments) => return up::run(arguments, words),
        NodeCommand::Invite(arguments) => invite::run(arguments)?,
        NodeCommand::List(arguments) => list::run(arguments)?,
        NodeCommand::Down => down()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether this user has a node on this machine.
pub(crate) fn is_local() -> bool {
    NodeClient::find().is_some()
}

fn down() -> Result<()> {
    let mut line = find()?;
    line.send(NodeRequest::Down)?;
    if !line.wait_for_exit(END_MAX) {
        return Err(failure(
            "the node is still running: it sends pending writes to other nodes",
            "check again with `wirefs node list`, or end its process",
        ));
    }
    Ok(())
}

/// Connects to this user's node.
fn find() -> Result<NodeClient> {
    NodeClient::find()
        .ok_or_else(|| failure("this user runs no node on this machine", "start one with `wirefs node up`"))
}
