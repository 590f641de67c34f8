//! Directory entries in the kernel's formats.

use super::attribute::put_entry_out;
use super::{put_u32, put_u64};
use crate::abi;
use wirefs_client::call::Listed;
use wirefs_op::Errno;

/// Per entry: the attributes, if requested, as in the answer to LOOKUP (zeros if there are none, as for `.` and `..`);
/// then `ino[8] off[8] namelen[4] type[4] name`, padded to a multiple of 8.
///
/// A listing that is too large is refused: truncating it would lose the lookup counts of its entries.
pub(super) fn put(
    out: &mut Vec<u8>,
    entries: &[Listed],
    bytes_max: u32,
    with_stats: bool,
) -> Result<(), Errno> {
    let start = out.len();
    let bytes_max = usize::try_from(bytes_max).map_err(|_| Errno::Io)?;
    out.reserve(bytes_max.min(entries.len() * (abi::ENTRY_OUT_BYTES + 64)));
    for listed in entries {
        if with_stats {
            match &listed.entry {
                Some(entry) => put_entry_out(out, entry),
                None => out.resize(out.len() + abi::ENTRY_OUT_BYTES, 0),
            }
        }
        put_u64(out, listed.ino);
        put_u64(out, listed.next);
        put_u32(out, u32::try_from(listed.name.len()).map_err(|_| Errno::Io)?);
        put_u32(out, (listed.st_mode & 0o170_000) >> 12);
        out.extend_from_slice(&listed.name);
        out.resize(start + (out.len() - start).next_multiple_of(8), 0);
        if out.len() - start > bytes_max {
            return Err(Errno::Io);
        }
    }
    Ok(())
}
