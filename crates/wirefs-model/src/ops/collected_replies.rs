//! The replies and announcements of a tree for one request.

use wirefs_op::{FileId, Reply, Stat};
use wirefs_server::{Parked, Replies, Stopped, Touched};

/// Collects replies and touches; grants everything.
#[derive(Debug, Default)]
pub(super) struct CollectedReplies {
    pub(super) replies: Vec<Reply>,
    pub(super) touched: Vec<Touched>,
    /// The number of touches to accept before parking; `None`: all.
    accepted_touches: Option<usize>,
    /// Touches that were not accepted.
    pub(super) refused: Vec<Touched>,
}

impl CollectedReplies {
    /// Accepts this many touches, then is_parking.
    pub(super) fn parking_after(accepted_touches: usize) -> CollectedReplies {
        CollectedReplies { accepted_touches: Some(accepted_touches), ..CollectedReplies::default() }
    }
}

impl Replies for CollectedReplies {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.replies.push(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        // An accepted touch stays accepted.
        let new: Vec<Touched> = touched.iter().filter(|it| !self.touched.contains(it)).cloned().collect();
        self.touched.extend_from_slice(touched);
        match &mut self.accepted_touches {
            _ if new.is_empty() => Ok(()),
            None => Ok(()),
            Some(0) => {
                self.refused.extend(new);
                Err(Parked)
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        stats.for_each(|stat| stat.leased = true);
    }

    fn grant_names(&mut self, _dir: FileId) -> bool {
        true
    }

    fn wait(&mut self) {}
}
