//! What a tree says while it serves one request.

use wirefs_op::{FileId, Reply, Stat};
use wirefs_server::{Parked, Replies, Stopped, Touched};

/// Collects replies and what was touched; grants all that it is asked for.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) replies: Vec<Reply>,
    pub(super) touched: Vec<Touched>,
    /// Touches that pass before one does not.
    passing: Option<usize>,
    /// What was not let pass.
    pub(super) refused: Vec<Touched>,
}

impl Collected {
    /// Lets so many touches pass, and then none.
    pub(super) fn parking_after(passing: usize) -> Collected {
        Collected { passing: Some(passing), ..Collected::default() }
    }
}

impl Replies for Collected {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.replies.push(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        // What passed once passes again.
        let new: Vec<Touched> = touched.iter().filter(|it| !self.touched.contains(it)).cloned().collect();
        self.touched.extend_from_slice(touched);
        match &mut self.passing {
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

    fn grant_place(&mut self, _dir: FileId) -> bool {
        true
    }

    fn wait(&mut self) {}
}
