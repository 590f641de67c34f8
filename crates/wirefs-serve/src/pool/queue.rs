//! The order in which queued work gets workers.

use super::super::options::ServeOptions;
use super::Work;
use std::collections::{BTreeMap, VecDeque};
use wirefs_server::SessionKey;

/// The owner of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Owner {
    /// The server itself: first, and without limits.
    Server,
    /// A session.
    Session(SessionKey),
}

/// The class of work, in the order of priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Rank {
    /// Short.
    Quick,
    /// Waits for another client. Admitted before, and not limited here.
    Waits,
    /// May take long.
    Long,
}

/// The minimum number of threads of a session.
const SHARE_MIN: usize = 2;

/// The number of a session's threads that long work may use.
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

    /// The class of the work that may start if the session may have `share` threads.
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

    /// The amount of work that could start.
    fn ready(&self, share: usize) -> usize {
        let room = share.saturating_sub(self.running_quick + self.running_long);
        let long_room = long_share(share).saturating_sub(self.running_long);
        self.waits.len() + room.min(self.quick.len() + long_room.min(self.long.len()))
    }
}

/// One queue for each owner with queued or running work.
pub(super) struct Queues {
    owners: BTreeMap<Owner, Queue>,
    /// The owner that was served last; the others come first.
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
            last: Owner::Server,
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

    /// The number of threads that an owner may have now.
    fn share(&self, owner: Owner) -> usize {
        match owner {
            Owner::Server => usize::MAX / 4,
            Owner::Session(_) => {
                let free = self.workers_max.saturating_sub(self.running);
                self.session_workers_max.min(free).max(SHARE_MIN)
            }
        }
    }

    /// The number of workers that would find work.
    pub(super) fn ready(&self) -> usize {
        self.owners.iter().map(|(owner, queue)| queue.ready(self.share(*owner))).sum()
    }

    /// Takes the next work, round-robin over the owners.
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

    /// Ends work that [`take`](Queues::take) returned.
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

    /// Returns whether nothing is queued and nothing runs.
    pub(super) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }
}
