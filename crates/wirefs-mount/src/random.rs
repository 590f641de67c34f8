//! Random numbers from the kernel.

use std::fs::File;
use std::io::{self, Read};
use wirefs_op::message::version::SessionId;

/// Returns an unguessable session id.
pub(super) fn session_id() -> io::Result<SessionId> {
    let mut id = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(SessionId(id))
}

/// Returns a number below `bound`, to spread retries; 0 if the kernel has none.
pub(super) fn below(bound: u64) -> u64 {
    let mut bytes = [0; 8];
    match File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)) {
        Ok(()) => u64::from_le_bytes(bytes) % bound.max(1),
        Err(_) => 0,
    }
}
