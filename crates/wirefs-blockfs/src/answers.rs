//! A server's replies, as the block tree sees them.

use wirefs_blocks::touch::{Parked, Touch};
use wirefs_blocks::tree::{Answers, Stopped};
use wirefs_op::{FileId, Reply, Stat};
use wirefs_server::{Replies, Touched};

/// Where the replies to one request go.
pub(crate) struct Passed<'a>(pub(crate) &'a mut dyn Replies);

impl Answers for Passed<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.send(reply).map_err(|_stopped| Stopped)
    }

    fn pass_turn(&mut self) {
        self.0.pass_turn();
    }

    fn touch(&mut self, touched: &[Touch]) -> Result<(), Parked> {
        let touched: Vec<Touched> = touched.iter().map(told).collect();
        self.0.touch(&touched).map_err(|_parked| Parked)
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.0.grant(stats);
    }

    fn grant_place(&mut self, dir: FileId) -> bool {
        self.0.grant_place(dir)
    }
}

/// What is touched, as the server's sessions have it.
fn told(touch: &Touch) -> Touched {
    match &touch.name {
        Some(name) => Touched { recall_own: touch.is_surprise, ..Touched::name(touch.id, name) },
        None if touch.is_surprise => Touched::with_other_names(touch.id),
        None => Touched::object(touch.id),
    }
}
