//! Requests that are not answered yet, and the Tflushes that wait for them.

use super::{Admitted, NineConversation, NineFault};
use crate::limits::REQUESTS_MAX;
use crate::message::Rmessage;
use std::collections::BTreeMap;
use wirefs_op::Tag;

/// Each tag in use, with the Tflushes that are answered behind it.
#[derive(Default)]
pub(super) struct Running {
    tags: BTreeMap<Tag, Vec<Tag>>,
    generation: u64,
}

impl Running {
    /// Changes with each Tversion.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// A Tversion cancels all.
    pub(super) fn cancel(&mut self) {
        self.tags.clear();
        self.generation += 1;
    }

    /// # Errors
    /// The tag is in use, or too many are.
    pub(super) fn begin(&mut self, tag: Tag) -> Result<(), NineFault> {
        if self.tags.len() >= REQUESTS_MAX {
            return Err(NineFault::TooMany);
        }
        if self.tags.contains_key(&tag) {
            return Err(NineFault::TagInUse(tag));
        }
        self.tags.insert(tag, Vec::new());
        Ok(())
    }

    /// A request is answered. Returns the Tflushes that are answered behind it, in the order in which they came.
    pub(super) fn end(&mut self, tag: Tag) -> Vec<Tag> {
        let mut ended = self.tags.remove(&tag).unwrap_or_default();
        let mut next = 0;
        while let Some(&flush) = ended.get(next) {
            ended.extend(self.tags.remove(&flush).unwrap_or_default());
            next += 1;
        }
        ended
    }
}

impl NineConversation {
    /// Tflush: answered at once where its request is answered already, else behind it. Nothing that waits long is
    /// executed, so the request is let finish.
    pub(super) fn flush(&self, tag: Tag, old: Tag) -> Result<Admitted, NineFault> {
        let mut state = self.lock();
        if old == tag || !state.running.tags.contains_key(&old) {
            return Ok(Admitted::Reply(Rmessage::Flush {}.encode(tag)));
        }
        state.running.begin(tag)?;
        if let Some(waiting) = state.running.tags.get_mut(&old) {
            waiting.push(tag);
        }
        Ok(Admitted::Later)
    }
}
