//! A call that waits for the connection.

use wirefs_client::call::{Answer, Call, Caller, TreeNodeId};
use wirefs_fuse::{FileSystem, ReaderRole, Reply};
use wirefs_op::Errno;

/// The owned arguments of a held call.
pub(super) enum HeldCall {
    /// A lookup below the root.
    Lookup { parent: TreeNodeId, name: Vec<u8> },
    /// An open of the root directory.
    Opendir { node: TreeNodeId },
    /// An access check of the root.
    Access { node: TreeNodeId, mask: u32 },
    /// Any other call: it fails with `ESTALE`, and the kernel repeats it.
    Repeat,
}

impl HeldCall {
    pub(super) fn of(call: &Call<'_>) -> HeldCall {
        match call {
            Call::Lookup { parent, name } => HeldCall::Lookup { parent: *parent, name: name.to_vec() },
            Call::Opendir { node } => HeldCall::Opendir { node: *node },
            Call::Access { node, mask } => HeldCall::Access { node: *node, mask: *mask },
            _ => HeldCall::Repeat,
        }
    }
}

/// A held call.
pub(super) struct Held {
    pub(super) caller: Caller,
    pub(super) call: HeldCall,
    pub(super) reply: Reply,
}

impl Held {
    /// Forwards the call.
    pub(super) fn forward(self, to: &dyn FileSystem) {
        let Held { caller, call: held, reply } = self;
        let call = match &held {
            HeldCall::Lookup { parent, name } => Call::Lookup { parent: *parent, name },
            HeldCall::Opendir { node } => Call::Opendir { node: *node },
            HeldCall::Access { node, mask } => Call::Access { node: *node, mask: *mask },
            HeldCall::Repeat => return reply.answer(Answer::Fail(Errno::Stale)),
        };
        to.call(caller, call, reply, &ReaderRole::elsewhere());
    }
}
