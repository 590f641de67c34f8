//! Files that were opened from the cache, without a request. Once another client removes the last name of such a file,
//! no path leads to it. So its contents as of the open are kept until the server has an fd of it.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Handle};
use crate::sending::Sender;
use crate::view::View;
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, Stat};

/// Prepares a file that was just opened without an fd for the loss of its name. A leased file is recalled in time to get an fd. The
/// contents of any other file are kept if they are complete; otherwise an fd is requested in the background.
pub(crate) fn keep(sender: &mut Sender<'_>, node: TreeNodeId, handle: Handle) {
    let Some(known) = sender.view.names.node(node) else { return };
    let size = known.stat.size;
    let is_leased = known.freshness.is_some_and(|known| sender.view.coherency().is_leased(known));
    if !sender.view.files.keep_as_opened(handle, size) && !is_leased {
        sender.ask_fd(node, handle);
    }
}

/// The answer to a read of a file that cannot be reached any more.
fn read(view: &View, handle: Handle, offset: u64, count: u64) -> Option<Answer> {
    let open = view.files.open(handle)?;
    let (ranges, size) = open.as_opened.as_ref()?;
    let end = offset.checked_add(count)?.min(*size);
    ranges.read(offset.min(end), end).map(Answer::Data)
}

/// Answers a failed read from the kept contents, if its file is gone.
pub(crate) fn read_failed(
    answerer: &mut Answerer<'_>,
    call: CallId,
    (handle, offset, count): (Handle, u64, u64),
    errno: Errno,
) {
    let kept = is_gone(errno).then(|| read(answerer.view, handle, offset, count)).flatten();
    answerer.answer(call, kept.unwrap_or(Answer::Fail(errno)));
}

/// Attributes could not be asked for. Of a file that is open and gone they are those that it had, without a name.
pub(crate) fn attributes_failed(answerer: &mut Answerer<'_>, call: CallId, node: TreeNodeId, errno: Errno) {
    let size_of = |handle: Handle| Some(answerer.view.files.open(handle)?.as_opened.as_ref()?.1);
    let size = answerer.view.files.handles_of(node).find_map(size_of);
    let answer = match (answerer.view.names.node(node), size) {
        (Some(known), Some(size)) if is_gone(errno) => {
            let stat = Stat { size, nlink: known.stat.nlink.saturating_sub(1), ..known.stat };
            Answer::Attr(answerer.view.present(&stat), Duration::ZERO)
        }
        _ => Answer::Fail(errno),
    };
    answerer.answer(call, answer);
}

fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::Stale | Errno::NotFound | Errno::NotDirectory)
}
