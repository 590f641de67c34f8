//! A call that waits for the gate to open.

use wirefs_client::call::{Answer, Call, Caller, TreeNodeId};
use wirefs_fuse::{FileSystem, Reading, Reply};
use wirefs_op::Errno;

/// What is wanted, without what was lent.
pub(super) enum Wanted {
    /// A name below the root.
    Lookup { parent: TreeNodeId, name: Vec<u8> },
    /// The root's listing.
    Opendir { node: TreeNodeId },
    /// Whether the root may be used so.
    Access { node: TreeNodeId, mask: u32 },
    /// What the kernel asks again when it is told that what it knows is stale.
    Again,
}

impl Wanted {
    pub(super) fn of(call: &Call<'_>) -> Wanted {
        match call {
            Call::Lookup { parent, name } => Wanted::Lookup { parent: *parent, name: name.to_vec() },
            Call::Opendir { node } => Wanted::Opendir { node: *node },
            Call::Access { node, mask } => Wanted::Access { node: *node, mask: *mask },
            _ => Wanted::Again,
        }
    }
}

/// A call that waits.
pub(super) struct Held {
    pub(super) caller: Caller,
    pub(super) wanted: Wanted,
    pub(super) reply: Reply,
}

impl Held {
    /// Lets it through.
    pub(super) fn pass(self, to: &dyn FileSystem) {
        let Held { caller, wanted, reply } = self;
        let call = match &wanted {
            Wanted::Lookup { parent, name } => Call::Lookup { parent: *parent, name },
            Wanted::Opendir { node } => Call::Opendir { node: *node },
            Wanted::Access { node, mask } => Call::Access { node: *node, mask: *mask },
            Wanted::Again => return reply.answer(Answer::Fail(Errno::Stale)),
        };
        to.call(caller, call, reply, &Reading::elsewhere());
    }
}
