//! The client's side: until when leases may be believed, what recalls have overtaken, and when to forget everything.

mod overtaken;

use crate::limits::{DRIFT, MARGIN, RENEWAL};
use crate::recall::{LeaseItem, Serial};
use overtaken::Overtaken;
use std::time::Duration;
use wirefs_op::{FileId, Time};

/// Everything that was learned under leases is to be emptied out of where the client cannot take back single answers: the
/// kernel's caches. The client says [`flushed`](Holder::emptied) afterwards, and believes nothing before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheFlush {
    /// The server lets changes pass after this.
    pub by: Time,
    /// Whether the client's own cache has to be emptied as well: the server does not know any more what it granted.
    /// Without it, what is cached counts again once a request is answered.
    pub own_cache_too: bool,
}

/// A recall that is being forgotten, to be handed back with [`LeaseHolder::forgotten`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRecall {
    serial: Serial,
    connection: u64,
}

/// Whether a connection is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Attached, since then.
    Up(Time),
    Down,
}

/// The leases of one session, as its client sees them.
///
/// Leases count from the sending of the last request that was answered, for the term that the server told. Each answer
/// goes to [`answered`](Holder::answered) before what it says is looked at. The clock is one that goes on while the machine
/// sleeps.
///
/// # What the client owes
/// - It hands a recall in as soon as it comes, forgets what it names, the kernel's caches last, and then answers it. The
///   forgetting must not wait for a request of its own.
/// - When the connection is lost it forgets, with the kernel, what its changes may have changed whose replies did not come.
/// - A request that is sent again over another connection counts as sent then. (The server promises nothing in the reply to
///   a change that it had received before: what it promised then may have been recalled since.)
/// - Whatever it learned from a reply that [`is_overtaken`](Holder::is_overtaken) it does not take as leased.
/// - It gives nothing to the kernel to keep while [`is_valid`](Holder::is_valid) is false.
#[derive(Debug)]
pub struct LeaseHolder {
    term: Duration,
    state: ConnectionState,
    /// How many connections were lost before.
    connection: u64,
    /// When the last request that was answered had been sent.
    answered: Option<Time>,
    /// When the last request was sent.
    last_sent: Time,
    /// Leases counted, and nobody was told yet that they do not.
    has_leases: bool,
    flush: Option<CacheFlush>,
    /// How often the client was told to empty and has not said that it did.
    flushing: u32,
    overtaken: Overtaken,
}

impl LeaseHolder {
    /// A session that has attached at `now`, to a server that names this term.
    pub fn new(now: Time, term: Duration) -> LeaseHolder {
        LeaseHolder {
            term,
            state: ConnectionState::Up(now),
            connection: 0,
            answered: None,
            last_sent: now,
            has_leases: false,
            flush: None,
            flushing: 0,
            overtaken: Overtaken::default(),
        }
    }

    /// The session is attached again. Leases count again from the first request that is sent from now on and answered;
    /// unless they were `retained`, everything is to be forgotten first.
    pub fn attached(&mut self, now: Time, term: Duration, retained: bool) {
        self.tick(now);
        self.state = ConnectionState::Up(now);
        self.last_sent = now;
        if !retained {
            self.overtaken.everything(now);
            self.start_flush(now, true);
        }
        self.term = term;
    }

    /// The connection is gone. Nothing is believed before a request is answered again; what the kernel has counts until the
    /// term is over.
    pub fn disconnected(&mut self) {
        self.state = ConnectionState::Down;
        self.connection += 1;
    }

    /// A request is being sent.
    pub fn request_sent(&mut self, now: Time) {
        self.last_sent = self.last_sent.max(now);
    }

    /// A reply came to the request that was sent at `sent`, any reply.
    pub fn reply_received(&mut self, now: Time, sent: Time) {
        // Leases that are over by now are over, even if nobody was told yet: this answer begins anew.
        self.tick(now);
        match self.state {
            ConnectionState::Up(since) if sent >= since => {
                self.answered = self.answered.max(Some(sent));
                self.has_leases |= now < sent + self.term;
            }
            ConnectionState::Up(_) | ConnectionState::Down => {}
        }
    }

    /// Whether what was learned under leases may be believed.
    pub fn is_valid(&self, now: Time) -> bool {
        self.valid_until().is_some_and(|until| now < until)
    }

    /// Until when leases may be believed, if nothing more is answered: [`LeaseHolder::lost`] ends it sooner.
    pub fn valid_until(&self) -> Option<Time> {
        let ConnectionState::Up(since) = self.state else { return None };
        let answered = self.answered.filter(|sent| *sent >= since)?;
        let is_flushing = self.flush.is_some() || self.flushing > 0;
        (!is_flushing).then(|| answered + self.term)
    }

    /// When a client that holds something should send a request, if it sends none before.
    pub fn renewal_at(&self) -> Option<Time> {
        match self.state {
            ConnectionState::Up(_) => Some(self.last_sent + RENEWAL),
            ConnectionState::Down => None,
        }
    }

    /// A recall came, perhaps ahead of the reply to the attaching.
    pub fn recalled(&mut self, now: Time, serial: Serial, items: &[LeaseItem]) -> PendingRecall {
        if items.is_empty() {
            self.overtaken.everything(now);
        }
        for item in items {
            self.overtaken.item(now, item);
        }
        PendingRecall { serial, connection: self.connection }
    }

    /// What a recall named is forgotten, by the kernel too. Gives back the number to answer with; none when the connection
    /// is gone by which it came: what was not answered comes again, and a server that started anew counts from the
    /// beginning.
    pub fn recall_done(&self, pending: PendingRecall) -> Option<Serial> {
        (pending.connection == self.connection).then_some(pending.serial)
    }

    /// Whether anything about an object was recalled since a request was sent at `sent`, so that what its reply tells of
    /// the object's attributes, contents or listing is not under a lease.
    pub fn is_overtaken(&self, id: FileId, sent: Time) -> bool {
        self.overtaken.object(id, sent)
    }

    /// The same of what one name in a directory means.
    pub fn is_name_overtaken(&self, directory: FileId, name: &[u8], sent: Time) -> bool {
        self.overtaken.name(directory, name, sent)
    }

    /// No request from before `oldest` is under way any more; none at all without it.
    pub fn prune(&mut self, oldest: Option<Time>) {
        self.overtaken.prune(oldest);
    }

    /// When to call [`tick`](Self::tick) next.
    pub fn deadline(&self) -> Option<Time> {
        self.answered.filter(|_| self.has_leases).map(|sent| sent + self.term)
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Time) {
        if self.deadline().is_some_and(|over| over <= now) {
            self.start_flush(now, false);
        }
    }

    /// What is to be emptied, once for each time.
    pub fn poll(&mut self) -> Option<CacheFlush> {
        let flush = self.flush.take()?;
        self.flushing += 1;
        Some(flush)
    }

    /// Everything is empty that one [`poll`](Self::poll) told to.
    pub fn flushed(&mut self) {
        self.flushing = self.flushing.saturating_sub(1);
    }

    fn start_flush(&mut self, now: Time, own_cache_too: bool) {
        let over = self.answered.map_or(now, |sent| sent + self.term);
        let own_cache_too = own_cache_too || self.flush.is_some_and(|flush| flush.own_cache_too);
        self.flush = Some(CacheFlush { by: over + (MARGIN - DRIFT), own_cache_too });
        self.has_leases = false;
    }
}

#[cfg(test)]
mod tests;
