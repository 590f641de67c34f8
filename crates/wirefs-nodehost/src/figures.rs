//! Load and free space of this machine.

use std::path::Path;
use wirefs_node::NodeInput;

/// Measures load and free space; 0 where a value is unknown.
pub(super) fn measure(share: Option<&Path>) -> NodeInput<'static> {
    let (free_bytes, all_bytes) = share.map(room).unwrap_or_default();
    NodeInput::Load { load_percent: load(), free_bytes, all_bytes }
}

/// The load average of one minute, in hundredths.
fn load() -> u16 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_default();
    (first * 100.0).clamp(0.0, f64::from(u16::MAX)) as u16
}

fn room(share: &Path) -> (u64, u64) {
    match rustix::fs::statvfs(share) {
        Ok(found) => {
            (found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize))
        }
        Err(_) => (0, 0),
    }
}
