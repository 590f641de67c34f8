//! `Tput` requests: the pieces of a write.

use crate::call::{CallId, Caller, Handle};
use crate::pending::{Pending, Writing};
use crate::sending::Sender;
use crate::view::View;
use bytes::Bytes;
use wirefs_cache::TreeNodeId;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Request, SetStat};

/// How a write is sent and answered: the fields of [`Writing`] that its caller decides.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    pub(crate) waits: Option<(CallId, u32)>,
    pub(crate) is_ahead: bool,
    pub(crate) passes_pages: bool,
}

/// Sends what was written some time ago.
pub(crate) fn behind(
    sender: &mut Sender<'_>,
    node: TreeNodeId,
    handle: Handle,
    offset: u64,
    data: &Bytes,
    kills_privileges: bool,
) -> Result<(), Errno> {
    let target = sender.view.target(node, Some(handle))?;
    let mode = PutMode::DATA.and_if(kills_privileges, PutMode::KILL_PRIVILEGES);
    for (index, at) in (0..data.len()).step_by(DATA_BYTES_MAX).enumerate() {
        let piece = data.slice(at..data.len().min(at + DATA_BYTES_MAX));
        let offset = offset + (index * DATA_BYTES_MAX) as u64;
        send(sender, node, target.clone(), mode, offset, piece, How::default());
    }
    Ok(())
}

/// The continuation of an unstable write that is sent again.
pub(crate) fn again(sender: &mut Sender<'_>, node: TreeNodeId, request: &Request) -> Pending {
    let (bytes, end) = match request {
        Request::Put(put) if put.mode.has(PutMode::DATA) => {
            let bytes = put.data.0.len() as u64;
            (bytes, Some(put.offset + bytes))
        }
        _ => (0, None),
    };
    sender.change_begins(node, bytes);
    if let Some(end) = end {
        sender.view.files.reaches(node, end);
    }
    Pending::Write(Writing { node, bytes, end, is_ahead: false, waits: None, passes_pages: false })
}

/// Lets set-id bits and capabilities of a file fall before a caller changes its contents otherwise than by a write, which the kernel
/// leaves to the mount. Tells whether there may be some: a file that nobody may execute has none that count.
pub(crate) fn kills_privileges(
    sender: &mut Sender<'_>,
    caller: Caller,
    node: TreeNodeId,
    target: &Target,
) -> bool {
    let mode = sender.view.names.node(node).map(|known| known.stat.mode);
    if caller.uid == 0 || mode.is_some_and(|mode| mode & 0o6111 == 0) {
        return false;
    }
    let empty = Bytes::new();
    send(sender, node, target.clone(), PutMode::KILL_PRIVILEGES, 0, empty, How::default());
    true
}

pub(crate) fn send(
    sender: &mut Sender<'_>,
    node: TreeNodeId,
    target: Target,
    mode: PutMode,
    offset: u64,
    data: Bytes,
    How { waits, is_ahead, passes_pages }: How,
) {
    let bytes = data.len() as u64;
    let mode = mode.and_if(target.fd != NOFD, PutMode::MORE);
    sender.change_begins(node, bytes);
    if is_ahead {
        sender.view.files.set_ahead(node);
        sender.view.exclusive.unconfirmed.issued(bytes, 0);
    }
    let end = (!mode.has(PutMode::APPEND)).then_some(offset + bytes);
    if let Some(end) = end {
        sender.view.files.reaches(node, end);
    }
    let put = Tput { target, mode, create: None, set: SetStat::default(), offset, data: Data(data) };
    sender
        .send(Request::Put(put), Pending::Write(Writing { node, bytes, end, is_ahead, waits, passes_pages }));
}

/// Whether it is known to have set-id bits.
pub(crate) fn has_set_id(view: &View, node: TreeNodeId) -> bool {
    view.names.node(node).is_some_and(|known| known.stat.mode & 0o6000 != 0)
}
