//! The client's side of leases: their expiry, recalls that race with replies, and invalidation of all cached
//! data.

mod overtaken;

use crate::limits::{DRIFT, MARGIN, RENEWAL};
use crate::recall::{LeaseItem, Serial};
use overtaken::Overtaken;
use std::time::Duration;
use wirefs_op::{FileId, Time};

/// A request to invalidate the kernel's caches, since the leases have expired or are void. The client calls
/// [`invalidated`](LeaseHolder::invalidated) afterwards; no lease is valid before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullInvalidation {
    /// The time after which the server lets changes run.
    pub by: Time,
    /// True if the client must invalidate its own cache too, because the server lost its record of the
    /// leases. Otherwise cached data is valid again after the next reply.
    pub own_cache_too: bool,
}

/// A recall whose invalidation is in progress; ends with [`LeaseHolder::recall_done`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRecall {
    serial: Serial,
    connection: u64,
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Attached since this time.
    Up(Time),
    Down,
}

/// The leases of one session, on the client.
///
/// Leases are valid for the server's term, from the time when the last answered request was sent (Gray and
/// Cheriton, 1989). The client passes each reply to [`reply_received`](LeaseHolder::reply_received) before it
/// uses the contents. The clock must advance while the machine sleeps.
///
/// # Contract
/// - The client passes a recall to [`recalled`](LeaseHolder::recalled) as soon as it arrives, invalidates the
///   items in its own cache, then in the kernel's, and then answers. The invalidation must not wait for a
///   request of its own.
/// - When the connection is lost, the client and the kernel invalidate the objects of all changes whose
///   replies did not arrive.
/// - A request that is sent again on another connection counts as sent then. The server grants no lease in
///   the reply to a change that it had already executed, since that lease may have been recalled meanwhile.
/// - The client treats data of a reply for which [`is_overtaken`](LeaseHolder::is_overtaken) returns true as
///   not leased.
/// - The client lets the kernel cache nothing while [`is_valid`](LeaseHolder::is_valid) is false.
#[derive(Debug)]
pub struct LeaseHolder {
    term: Duration,
    state: ConnectionState,
    /// The number of connections lost so far.
    connection: u64,
    /// The sending time of the last request that was answered.
    answered: Option<Time>,
    /// The sending time of the last request.
    last_sent: Time,
    /// Leases were valid, and their expiry was not reported yet.
    has_leases: bool,
    requested: Option<FullInvalidation>,
    /// The number of invalidations that were requested and not finished.
    running: u32,
    overtaken: Overtaken,
}

impl LeaseHolder {
    /// Creates the state of a session that has attached at `now` to a server with this term.
    pub fn new(now: Time, term: Duration) -> LeaseHolder {
        LeaseHolder {
            term,
            state: ConnectionState::Up(now),
            connection: 0,
            answered: None,
            last_sent: now,
            has_leases: false,
            requested: None,
            running: 0,
            overtaken: Overtaken::default(),
        }
    }

    /// Records that the session is attached again. Leases become valid with the first request that is sent
    /// from now on and answered. Unless the server has `retained` them, all cached data must be invalidated
    /// first.
    pub fn attached(&mut self, now: Time, term: Duration, retained: bool) {
        self.tick(now);
        self.state = ConnectionState::Up(now);
        self.last_sent = now;
        if !retained {
            self.overtaken.everything(now);
            self.invalidate_all(now, true);
        }
        self.term = term;
    }

    /// Records that the connection is lost. No lease is valid before a request is answered again; the
    /// kernel's caches are valid until the term ends.
    pub fn disconnected(&mut self) {
        self.state = ConnectionState::Down;
        self.connection += 1;
    }

    /// Records that a request is sent.
    pub fn request_sent(&mut self, now: Time) {
        self.last_sent = self.last_sent.max(now);
    }

    /// Records a reply to the request that was sent at `sent`.
    pub fn reply_received(&mut self, now: Time, sent: Time) {
        // Expired leases stay expired even if that was not reported yet: this reply starts a new term.
        self.tick(now);
        match self.state {
            ConnectionState::Up(since) if sent >= since => {
                self.answered = self.answered.max(Some(sent));
                self.has_leases |= now < sent + self.term;
            }
            ConnectionState::Up(_) | ConnectionState::Down => {}
        }
    }

    /// Returns true if leased data may be used.
    pub fn is_valid(&self, now: Time) -> bool {
        self.valid_until().is_some_and(|until| now < until)
    }

    /// Returns the time when leases expire without further replies. [`LeaseHolder::disconnected`] ends them
    /// earlier.
    pub fn valid_until(&self) -> Option<Time> {
        let ConnectionState::Up(since) = self.state else { return None };
        let answered = self.answered.filter(|sent| *sent >= since)?;
        let is_invalidating = self.requested.is_some() || self.running > 0;
        (!is_invalidating).then(|| answered + self.term)
    }

    /// Returns the time when a client with leases should send a request to renew them.
    pub fn renewal_at(&self) -> Option<Time> {
        match self.state {
            ConnectionState::Up(_) => Some(self.last_sent + RENEWAL),
            ConnectionState::Down => None,
        }
    }

    /// Records a recall. It may arrive before the reply to the attach.
    pub fn recalled(&mut self, now: Time, serial: Serial, items: &[LeaseItem]) -> PendingRecall {
        if items.is_empty() {
            self.overtaken.everything(now);
        }
        for item in items {
            self.overtaken.item(now, item);
        }
        PendingRecall { serial, connection: self.connection }
    }

    /// Returns the serial to answer with, once the recalled items are invalidated in the client and the
    /// kernel. Returns `None` if the recall arrived on an earlier connection: the server sends unanswered
    /// recalls again, and a restarted server restarts the numbering.
    pub fn recall_done(&self, pending: PendingRecall) -> Option<Serial> {
        (pending.connection == self.connection).then_some(pending.serial)
    }

    /// Returns true if the object was recalled, wholly or in part, since a request was sent at `sent`. The
    /// attributes, contents and listing in its reply are then not leased.
    pub fn is_overtaken(&self, id: FileId, sent: Time) -> bool {
        self.overtaken.object(id, sent)
    }

    /// Like [`is_overtaken`](Self::is_overtaken), for the entry of one name in a directory.
    pub fn is_name_overtaken(&self, directory: FileId, name: &[u8], sent: Time) -> bool {
        self.overtaken.name(directory, name, sent)
    }

    /// Discards records of recalls from before `oldest`, the sending time of the oldest pending request; of
    /// all recalls without one.
    pub fn prune(&mut self, oldest: Option<Time>) {
        self.overtaken.prune(oldest);
    }

    /// Returns the time when [`tick`](Self::tick) is due.
    pub fn deadline(&self) -> Option<Time> {
        self.answered.filter(|_| self.has_leases).map(|sent| sent + self.term)
    }

    /// Advances the clock: requests an invalidation when the leases have expired.
    pub fn tick(&mut self, now: Time) {
        if self.deadline().is_some_and(|over| over <= now) {
            self.invalidate_all(now, false);
        }
    }

    /// Returns a requested invalidation, once each.
    pub fn poll(&mut self) -> Option<FullInvalidation> {
        let request = self.requested.take()?;
        self.running += 1;
        Some(request)
    }

    /// Records that one invalidation from [`poll`](Self::poll) is finished.
    pub fn invalidated(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    fn invalidate_all(&mut self, now: Time, own_cache_too: bool) {
        let over = self.answered.map_or(now, |sent| sent + self.term);
        let own_cache_too = own_cache_too || self.requested.is_some_and(|request| request.own_cache_too);
        self.requested = Some(FullInvalidation { by: over + (MARGIN - DRIFT), own_cache_too });
        self.has_leases = false;
    }
}

#[cfg(test)]
mod tests;
