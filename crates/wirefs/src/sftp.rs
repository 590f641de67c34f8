//! SFTP servers, as sources of `wirefs mount`.

use std::sync::Arc;

use anyhow::Result;
use wirefs_carrier::ssh::SubsystemDial;
use wirefs_op::message::version::BootId;
use wirefs_server::Tree;
use wirefs_sftp::SftpTree;

use crate::blocks::boot_of_process;

/// Connects to an SFTP server.
///
/// # Errors
/// Fails if the host is not reached, offers no SFTP, or does not have the directory.
pub(crate) fn open(dial: SubsystemDial, path: &[u8]) -> Result<(Arc<dyn Tree>, BootId)> {
    let boot = boot_of_process();
    Ok((Arc::new(SftpTree::open(Box::new(dial), path, boot)?), boot))
}
