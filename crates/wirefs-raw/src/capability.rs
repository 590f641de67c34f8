//! The capability CAP_NET_RAW, which raw sockets need.

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::error::RawError;

/// Returns whether this thread has CAP_NET_RAW.
pub fn has_net_raw() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_RAW))
}

/// Drops CAP_NET_RAW from this thread and the threads and programs it starts. Open sockets keep working.
///
/// # Errors
/// [`RawError::Io`], for which the kernel has no reason.
pub fn drop_net_raw() -> Result<(), RawError> {
    let wrong = |errno: rustix::io::Errno| RawError::io("drop the capability CAP_NET_RAW")(errno.into());
    let mut sets = capabilities(None).map_err(wrong)?;
    sets.effective.remove(CapabilitySet::NET_RAW);
    sets.permitted.remove(CapabilitySet::NET_RAW);
    sets.inheritable.remove(CapabilitySet::NET_RAW);
    set_capabilities(None, sets).map_err(wrong)
}
