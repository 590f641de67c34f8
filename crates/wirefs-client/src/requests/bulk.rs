//! The size of data requests, and large reads, which may use a data connection.

use super::{Outstanding, Requests, Waiting};
use crate::output::DataKey;
use crate::pending::{Continuation, Pending};
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::{Request, Tag, Time};

/// The large read, if a request may go over a data connection. Its reply needs attributes to identify the version of the data.
fn as_bulk(request: &Request) -> Option<&Tget> {
    match request {
        Request::Get(get) if get.is_bulk() && get.mode.has(GetMode::STAT) => Some(get),
        _ => None,
    }
}

impl Outstanding {
    /// Whether the server sends the first reply at once. The minimum time to such a reply, over many requests, is the
    /// round-trip time.
    pub(crate) fn is_prompt(&self) -> bool {
        match &self.request {
            Request::Ping(_) | Request::Statfs(_) => true,
            Request::Get(get) => !get.mode.has(GetMode::ORDERED),
            _ => false,
        }
    }

    /// The requested bytes of data.
    pub(crate) fn asked_bytes(&self) -> u32 {
        match &self.request {
            Request::Get(get) => get.count,
            Request::Find(find) => find.bytes,
            _ => 0,
        }
    }

    /// Whether it may go over a data connection.
    pub(crate) fn is_bulk(&self) -> bool {
        as_bulk(&self.request).is_some()
    }
}

impl Requests {
    /// The request that is sent next, if it may go over a data connection.
    pub(crate) fn next_bulk(&self) -> Option<&Tget> {
        self.waiting
            .front()
            .filter(|waiting| !waiting.is_for_first)
            .and_then(|waiting| as_bulk(&waiting.request))
    }

    fn over(&self, over: Option<DataKey>) -> impl Iterator<Item = &Outstanding> {
        self.sent.values().filter(move |outstanding| outstanding.over == over)
    }

    /// Bytes of much-data reads that are still to come over a connection.
    pub(crate) fn bytes_to_come(&self, over: Option<DataKey>) -> u64 {
        let bulk = self.over(over).filter(|outstanding| outstanding.is_bulk());
        bulk.map(|outstanding| u64::from(outstanding.asked_bytes()).saturating_sub(outstanding.received))
            .sum()
    }

    /// Since when a reply is due over a data connection.
    pub(crate) fn oldest_over(&self, over: DataKey) -> Option<Time> {
        self.over(Some(over)).map(|outstanding| outstanding.sent).min()
    }

    /// A data connection is gone: what was asked over it waits, before all else, in the order in which it was sent. Hands back what is
    /// of no more use.
    pub(crate) fn interrupted_over(&mut self, over: DataKey) -> Vec<Pending> {
        let mut lost: Vec<(u64, Tag)> = self.over(Some(over)).map(|it| (it.order, it.tag)).collect();
        lost.sort_unstable();
        let mut given_up = Vec::new();
        for (_, tag) in lost.into_iter().rev() {
            let Some(outstanding) = self.sent.remove(&tag) else { continue };
            let Outstanding { request, mut pending, told_since, origin, .. } = outstanding;
            match pending.restart() {
                true => self.waiting.push_front(Waiting::new(told_since, request, pending, origin)),
                false => given_up.push(pending),
            }
        }
        given_up
    }

    /// Queues a request again for the first connection, since its reply is dropped. Returns its continuation if a restart is useless.
    pub(crate) fn ask_first(&mut self, now: Time, outstanding: Outstanding) -> Option<Pending> {
        let Outstanding { request, mut pending, origin, .. } = outstanding;
        if !pending.restart() {
            return Some(pending);
        }
        let waiting = Waiting::new(now, request, pending, origin);
        self.waiting.push_front(Waiting { is_for_first: true, ..waiting });
        None
    }
}
