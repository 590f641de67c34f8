//! 9P servers, as sources of `wirefs mount` and of `wirefs serve`.

use std::sync::Arc;

use anyhow::Result;
use wirefs_ninefs::{NineSource, NineTree};
use wirefs_op::Errno;
use wirefs_op::message::version::BootId;
use wirefs_server::Tree;

use crate::blocks::boot_of_process;
use crate::failure::failure;

/// Connects to a 9P server.
///
/// # Errors
/// Fails if the server cannot be reached, does not speak 9P, or refuses.
pub(crate) fn open(source: NineSource) -> Result<(Arc<dyn Tree>, BootId)> {
    let boot = boot_of_process();
    let next = |errno| match errno {
        Errno::HostDown => "start the server, or correct the address",
        Errno::Protocol => "name the address of a server of 9P2000 or 9P2000.L",
        Errno::NotFound => "name a tree that the server exports, as in 9p://host:port/tree",
        _ => "see the server's log for the reason",
    };
    let tree = NineTree::open(source, boot)
        .map_err(|errno| failure(format!("the 9P server cannot be used: {errno}"), next(errno)))?;
    Ok((Arc::new(tree), boot))
}
