//! `wirefs set`, `pause` and `resume`: the limits of a mount's connections.

use std::path::Path;

use anyhow::{Result, anyhow};

use crate::arguments::{self, LimitChange};
use crate::control::ControlRequest;
use crate::failure::failure;
use crate::status::connect;

/// Changes the limits that are named.
pub(crate) fn set(arguments: &arguments::Set) -> Result<()> {
    arguments.limits.iter().try_for_each(|limit| change(&arguments.mountpoint, *limit))
}

/// Closes the connections of a mount.
pub(crate) fn pause(arguments: &arguments::AtMount) -> Result<()> {
    change(&arguments.mountpoint, LimitChange::Pause)
}

/// Connects a paused mount again.
pub(crate) fn resume(arguments: &arguments::AtMount) -> Result<()> {
    change(&arguments.mountpoint, LimitChange::Resume)
}

fn change(mountpoint: &Path, change: LimitChange) -> Result<()> {
    let mut process = connect(mountpoint)?;
    let no_answer =
        |error: std::io::Error| anyhow!("the process that serves the mount does not answer: {error}");
    process.send(ControlRequest::Limit(change)).map_err(no_answer)?;
    process.answer().map_err(no_answer)?.outcome()?.map_err(|message| {
        failure(
            format!("the limits of {} cannot be changed: {message}", mountpoint.display()),
            "only mounts of a wirefs server have limits",
        )
    })
}
