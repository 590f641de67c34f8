//! The right to open raw sockets.

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::error::RawError;

/// Whether this thread may open raw sockets now.
pub fn has_right() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_RAW))
}

/// Gives up the right to open raw sockets, for this thread and all that it starts from now on. Sockets that are open go on
/// working.
///
/// # Errors
/// [`RawError::Io`], which the kernel has no reason for.
pub fn give_up_right() -> Result<(), RawError> {
    let wrong =
        |errno: rustix::io::Errno| RawError::io("give up the right to open raw sockets")(errno.into());
    let mut sets = capabilities(None).map_err(wrong)?;
    sets.effective.remove(CapabilitySet::NET_RAW);
    sets.permitted.remove(CapabilitySet::NET_RAW);
    sets.inheritable.remove(CapabilitySet::NET_RAW);
    set_capabilities(None, sets).map_err(wrong)
}
