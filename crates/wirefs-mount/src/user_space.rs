//! A mount without a mount point: its calls come from this process, not from the kernel.

use super::connect::{Connected, start_threads};
use super::engine::Shared;
use super::invalidation;
use super::mounted::end;
use super::plan::MountPlan;
use std::io;
use wirefs_client::Attachment;
use wirefs_client::call::{Answer, Call, Caller};
use wirefs_fuse::Notifier;
use wirefs_op::Errno;

/// A mounted tree that threads of this process call, several at a time. Dropping it sends pending changes to the
/// server, for at most as long as a call waits.
pub struct UserSpaceMount {
    engine: Shared,
    attachment: Attachment,
}

impl std::fmt::Debug for UserSpaceMount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserSpaceMount").finish_non_exhaustive()
    }
}

impl UserSpaceMount {
    pub(super) fn start(connected: Connected) -> io::Result<UserSpaceMount> {
        let Connected { plan, engine, attached, .. } = connected;
        let attachment = attached.attachment.clone();
        let mount = UserSpaceMount { engine: Shared::clone(&engine), attachment };
        start_threads(&engine, attached, MountPlan { tell: |_| {}, ..plan })?;
        invalidation::start(&engine, Notifier::without_kernel())?;
        Ok(mount)
    }

    /// Returns the server's statements about the tree.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Makes a call and waits for its answer. [`Call::Forget`] has none: [`Answer::Done`] stands for it.
    pub fn call(&self, caller: Caller, call: Call<'_>) -> Answer {
        self.engine.call_as(caller, call).unwrap_or_else(Answer::Fail)
    }

    /// Waits until all changes are on the server's stable storage.
    ///
    /// # Errors
    /// As `syncfs`.
    pub fn sync(&self) -> Result<(), Errno> {
        self.engine.sync()
    }
}

impl Drop for UserSpaceMount {
    fn drop(&mut self) {
        let _logged = end(&self.engine);
    }
}
