//! Where the time of calls goes: the causes of an answer, and the present wait of a call.

use crate::call::{Call, CallId};
use crate::core::Client;
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_metrics::{CallKind, Cause, Causes};
use wirefs_op::{Time, TreePath};

impl Client {
    /// Divides the time from `since` until the last input among its causes. To be called after an input, for the calls
    /// that it answered.
    ///
    /// # Guarantee
    /// S-151.
    pub fn causes(&self, since: Time) -> Causes {
        self.requests.origin(self.view.mount.now).timeline.causes(since, self.view.mount.now)
    }

    /// The time of the last input.
    pub fn time(&self) -> Time {
        self.view.mount.now
    }

    /// Notes for how long the calling thread waited for a processor before the next message.
    pub fn delayed(&mut self, time: Duration) {
        self.requests.input.delayed = time;
    }

    /// The present reason why a call waits, and the name of the request that it waits for. `None` if it waits for no
    /// request of its own.
    pub fn wait_of(&self, call: CallId) -> Option<(Cause, &'static str)> {
        self.requests.wait_of(call)
    }

    /// The path of a node below the mounted directory, if the node has a name.
    pub fn path_of(&self, node: TreeNodeId) -> Option<TreePath> {
        self.view.names.path(node)
    }

    /// The reason for waits that no request explains.
    pub fn common_wait(&self) -> Cause {
        self.requests.common_wait()
    }
}

impl Call<'_> {
    /// The kind of operation for measurements, and its first node; `None` for calls without an answer.
    pub fn operation(&self) -> Option<(CallKind, TreeNodeId)> {
        let operation = match self {
            Call::Forget { .. } | Call::Interrupt { .. } => return None,
            Call::Lookup { .. } => CallKind::Lookup,
            Call::Getattr { .. } => CallKind::Getattr,
            Call::Setattr { .. } => CallKind::Setattr,
            Call::Readlink { .. } => CallKind::Readlink,
            Call::Mknod { .. } => CallKind::Mknod,
            Call::Mkdir { .. } => CallKind::Mkdir,
            Call::Symlink { .. } => CallKind::Symlink,
            Call::Create { .. } => CallKind::Create,
            Call::Tmpfile { .. } => CallKind::Tmpfile,
            Call::Unlink { .. } => CallKind::Unlink,
            Call::Rmdir { .. } => CallKind::Rmdir,
            Call::Rename { .. } => CallKind::Rename,
            Call::Link { .. } => CallKind::Link,
            Call::Open { .. } => CallKind::Open,
            Call::Read { .. } => CallKind::Read,
            Call::Write { .. } => CallKind::Write,
            Call::Flush { .. } => CallKind::Flush,
            Call::Release { .. } => CallKind::Release,
            Call::Fsync { .. } | Call::Fsyncdir { .. } => CallKind::Fsync,
            Call::Opendir { .. } => CallKind::Opendir,
            Call::Readdir { .. } => CallKind::Readdir,
            Call::Releasedir { .. } => CallKind::Releasedir,
            Call::Syncfs { .. } => CallKind::Syncfs,
            Call::Statfs { .. } => CallKind::Statfs,
            Call::Setxattr { .. } | Call::Removexattr { .. } => CallKind::Setxattr,
            Call::Getxattr { .. } | Call::Listxattr { .. } => CallKind::Getxattr,
            Call::Access { .. } => CallKind::Access,
            Call::Getlk { .. } | Call::Setlk { .. } => CallKind::Lock,
            Call::Fallocate { .. } => CallKind::Fallocate,
            Call::Lseek { .. } => CallKind::Lseek,
            Call::CopyRange { .. } => CallKind::Copy,
        };
        self.nodes().into_iter().flatten().next().map(|node| (operation, node))
    }
}
