//! Who gets the next worker.

use super::super::options::ServeOptions;
use super::Work;
use std::collections::{BTreeMap, VecDeque};
use wirefs_server::SessionKey;

/// Whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Owner {
    /// The server's own: goes first and is never held back.
    House,
    /// A session's.
    Session(SessionKey),
}

/// What kind of work, in the order in which it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Rank {
    /// Done at once.
    Quick,
    /// Waits for somebody else; admitted before, never held back.
    Waits,
    /// May take long.
    Long,
}

/// Threads that a session may always have.
const SHARE_MIN: usize = 2;

/// How many of a session's threads what is long may take.
fn long_share(share: usize) -> usize {
    (share / 4 * 3).max(1)
}

#[derive(Default)]
struct Queue {
    quick: VecDeque<Work>,
    waits: VecDeque<Work>,
    long: VecDeque<Work>,
    running_quick: usize,
    running_long: usize,
    /// Waiting locks, queued or running.
    waiters: usize,
    running_waits: usize,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.quick.is_empty()
            && self.waits.is_empty()
            && self.long.is_empty()
            && self.running_quick + self.running_long + self.running_waits + self.waiters == 0
    }

    /// What may start when the session may have `share` threads.
    fn next_rank(&self, share: usize) -> Option<Rank> {
        let running = self.running_quick + self.running_long;
        if !self.waits.is_empty() {
            Some(Rank::Waits)
        } else if !self.quick.is_empty() && running < share {
            Some(Rank::Quick)
        } else if !self.long.is_empty() && running < share && self.running_long < long_share(share) {
            Some(Rank::Long)
        } else {
            None
        }
    }

    /// How many more could start.
    fn ready(&self, share: usize) -> usize {
        let room = share.saturating_sub(self.running_quick + self.running_long);
        let long_room = long_share(share).saturating_sub(self.running_long);
        self.waits.len() + room.min(self.quick.len() + long_room.min(self.long.len()))
    }
}

/// One queue for each owner that has something queued or running.
pub(super) struct Queues {
    owners: BTreeMap<Owner, Queue>,
    /// Who was served last: the others come first.
    last: Owner,
    running: usize,
    waiters: usize,
    workers_max: usize,
    session_workers_max: usize,
    waiters_max: usize,
    session_waiters_max: usize,
}

impl Queues {
    pub(super) fn new(options: &ServeOptions) -> Queues {
        Queues {
            owners: BTreeMap::new(),
            last: Owner::House,
            running: 0,
            waiters: 0,
            workers_max: options.workers_max,
            session_workers_max: options.session_workers_max,
            waiters_max: options.waiters_max,
            session_waiters_max: options.session_waiters_max,
        }
    }

    pub(super) fn admit_waiter(&mut self, session: SessionKey) -> bool {
        if self.waiters >= self.waiters_max {
            return false;
        }
        let queue = self.owners.entry(Owner::Session(session)).or_default();
        if queue.waiters >= self.session_waiters_max {
            return false;
        }
        queue.waiters += 1;
        self.waiters += 1;
        true
    }

    pub(super) fn push(&mut self, owner: Owner, rank: Rank, work: Work) {
        let queue = self.owners.entry(owner).or_default();
        match rank {
            Rank::Quick => queue.quick.push_back(work),
            Rank::Waits => queue.waits.push_back(work),
            Rank::Long => queue.long.push_back(work),
        }
    }

    /// How many threads one owner may have now.
    fn share(&self, owner: Owner) -> usize {
        match owner {
            Owner::House => usize::MAX / 4,
            Owner::Session(_) => {
                let free = self.workers_max.saturating_sub(self.running);
                self.session_workers_max.min(free).max(SHARE_MIN)
            }
        }
    }

    /// How many workers would find something to do.
    pub(super) fn ready(&self) -> usize {
        self.owners.iter().map(|(owner, queue)| queue.ready(self.share(*owner))).sum()
    }

    /// The next work, the owners taking turns.
    pub(super) fn take(&mut self) -> Option<(Owner, Rank, Work)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = self.owners.range((Excluded(self.last), Unbounded));
        let up_to = self.owners.range(..=self.last);
        let (owner, rank) = after.chain(up_to).find_map(|(owner, queue)| {
            let rank = queue.next_rank(self.share(*owner))?;
            Some((*owner, rank))
        })?;
        let queue = self.owners.get_mut(&owner)?;
        let work = match rank {
            Rank::Quick => {
                queue.running_quick += 1;
                self.running += 1;
                queue.quick.pop_front()
            }
            Rank::Waits => {
                queue.running_waits += 1;
                queue.waits.pop_front()
            }
            Rank::Long => {
                queue.running_long += 1;
                self.running += 1;
                queue.long.pop_front()
            }
        };
        self.last = owner;
        Some((owner, rank, work?))
    }

    /// Work that [`take`](Queues::take) gave out is over.
    pub(super) fn done(&mut self, owner: Owner, rank: Rank) {
        let Some(queue) = self.owners.get_mut(&owner) else {
            return;
        };
        match rank {
            Rank::Quick => {
                queue.running_quick -= 1;
                self.running -= 1;
            }
            Rank::Waits => {
                queue.running_waits -= 1;
                queue.waiters -= 1;
                self.waiters -= 1;
            }
            Rank::Long => {
                queue.running_long -= 1;
                self.running -= 1;
            }
        }
        if queue.is_idle() {
            self.owners.remove(&owner);
        }
    }

    /// Whether nothing is queued and nothing runs.
    pub(super) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }
}
