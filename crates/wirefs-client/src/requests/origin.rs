//! The causal history of requests. A reply continues the timeline of its request, so that the time of an answer can be
//! split by cause.

use crate::call::CallId;
use std::time::Duration;
use wirefs_metrics::{Cause, Timeline};
use wirefs_op::Time;
use wirefs_op::message::times::Rtimes;

/// The history of an input, which requests and answers made from it inherit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) timeline: Timeline,
    /// The call that started it, if one did.
    pub(crate) call: Option<CallId>,
    /// The server's report about the request, if there was one.
    times: Option<ServerTimes>,
}

/// The server's report about a request.
#[derive(Clone, Copy, Debug)]
struct ServerTimes {
    is_parked: bool,
    queue: Duration,
    run: Duration,
    disk: Duration,
    recall: Duration,
}

/// The present input.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) origin: Origin,
    /// How long the thread that received the message waited for a processor.
    pub(crate) delayed: Duration,
}

impl Origin {
    /// An origin without a history; earlier time has the cause `before`.
    pub(crate) fn new(now: Time, before: Cause, call: Option<CallId>) -> Origin {
        Origin { timeline: Timeline::starting(now, before), call, times: None }
    }

    /// The request is sent now, over a connection that is up since `up`.
    pub(crate) fn sent(&mut self, now: Time, up: Time) {
        self.timeline.extend(up.min(now), Cause::Offline);
        self.timeline.extend(now, Cause::Queue);
        self.times = None;
    }

    /// The server reports the request's times.
    pub(crate) fn timed(&mut self, times: &Rtimes) {
        let micros = |micros: u32| Duration::from_micros(u64::from(micros));
        self.times = Some(ServerTimes {
            is_parked: times.is_parked,
            queue: micros(times.queue_us),
            run: micros(times.run_us),
            disk: micros(times.disk_us),
            recall: micros(times.recall_us),
        });
    }

    /// The server parked the request until other clients give back leases.
    pub(crate) fn is_parked(&self) -> bool {
        self.times.is_some_and(|times| times.is_parked)
    }

    /// The reply was received now, by a thread that waited for a processor for `delayed` before.
    pub(crate) fn replied(&mut self, now: Time, delayed: Duration, is_lock: bool) {
        let sent = self.timeline.end();
        let spent = self.times.filter(|times| !times.is_parked);
        let (queue, recall, run, disk) =
            spent.map_or_else(Default::default, |times| (times.queue, times.recall, times.run, times.disk));
        let delayed = delayed.min(now.since(sent));
        let wire = now.since(sent).saturating_sub(delayed + queue + recall + run + disk);
        let disk_cause = if is_lock { Cause::Lock } else { Cause::ServerDisk };
        let received = Time(now.0 - u64::try_from(delayed.as_nanos()).unwrap_or_default());
        let mut end = sent;
        for (time, cause) in [
            (wire / 2, Cause::Wire),
            (queue, Cause::ServerQueue),
            (recall, Cause::Recall),
            (run, Cause::Server),
            (disk, disk_cause),
        ] {
            end = end + time;
            self.timeline.extend(end.min(received), cause);
        }
        self.timeline.extend(received, Cause::Wire);
        self.timeline.extend(now, Cause::Processor);
    }
}
