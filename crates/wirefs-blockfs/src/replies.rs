//! Adapter from the replies of the server to those of the block tree.

use wirefs_blocks::affected::{AffectedObject, Postponed};
use wirefs_blocks::tree::{ReplySink, RequestAborted};
use wirefs_op::{FileId, Reply, Stat};
use wirefs_server::{Replies, Touched};

/// Forwards replies to the server.
pub(crate) struct ForwardedReplies<'a>(pub(crate) &'a mut dyn Replies);

impl ReplySink for ForwardedReplies<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), RequestAborted> {
        self.0.send(reply).map_err(|_aborted| RequestAborted)
    }

    fn allow_next_change(&mut self) {
        self.0.release_slot();
    }

    fn announce(&mut self, affected: &[AffectedObject]) -> Result<(), Postponed> {
        let touched: Vec<Touched> = affected.iter().map(to_touched).collect();
        self.0.touch(&touched).map_err(|_postponed| Postponed)
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.0.grant(stats);
    }

    fn grant_names(&mut self, dir: FileId) -> bool {
        self.0.grant_names(dir)
    }
}

/// Converts an affected object to the server's type.
fn to_touched(object: &AffectedObject) -> Touched {
    match &object.name {
        Some(name) => Touched { recall_own: object.affects_requester, ..Touched::name(object.id, name) },
        None if object.affects_requester => Touched::with_other_names(object.id),
        None => Touched::object(object.id),
    }
}
