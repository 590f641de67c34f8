//! Access: `access(2)`, which the kernel forwards only if it does not check permissions itself. The answer is estimated
//! from cached attributes.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Caller};
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, Stat};

/// A first guess for programs that ask before they try; the server decides when they do. The groups of the caller are unknown
/// here, so the group's rights count as the user's.
///
/// # Cost
/// 0 round trips.
pub(crate) fn start(
    answerer: &mut Answerer<'_>,
    call: CallId,
    caller: Caller,
    node: TreeNodeId,
    mask: u32,
) -> Result<(), Errno> {
    let known = answerer.view.names.node(node).ok_or(Errno::Stale)?;
    let stat = answerer.view.present(&known.stat);
    if answerer.view.mount.attachment.read_only && mask & 2 != 0 {
        return Err(Errno::ReadOnly);
    }
    let is_root = caller.uid == 0 || answerer.view.mount.attachment.uid == 0;
    if is_root || rights(&stat, caller) & mask == mask {
        answerer.answer(call, Answer::Done);
        return Ok(());
    }
    Err(Errno::AccessDenied)
}

fn rights(stat: &Stat, caller: Caller) -> u32 {
    if stat.uid == caller.uid { (stat.mode >> 6) & 7 } else { (stat.mode | (stat.mode >> 3)) & 7 }
}
