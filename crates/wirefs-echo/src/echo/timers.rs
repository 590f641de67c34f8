//! Timers: overdue packets, silent hosts, rates, padding probes.

use std::time::Duration;

use wirefs_op::Time;

use super::{BlockRecords, Echo, EchoOutput};
use crate::block::EchoBlockId;
use crate::host::{Host, HostId};
use crate::index::{self, Flags, Index, LaneState};
use crate::limits::{TICK_MAX, TICK_MIN};

/// Timer ticks per cycle.
const TICKS_PER_CYCLE: u32 = 32;
/// The whole index is searched for overdue packets in 1/8 of a cycle.
const SWEEPS_PER_CYCLE: u32 = 8;
/// Without an index a packet is in flight for at most this many cycles, and the additional time.
const AGE_CYCLES_MAX: u32 = 4;
const AGE_EXTRA: Duration = Duration::from_secs(1);

/// A block found by the sweep.
struct SweepHit {
    id: EchoBlockId,
    is_lost: bool,
}

impl Echo {
    /// Processes the passing of time. Calls before [`deadline`](Echo::deadline) are cheap.
    pub fn tick(&mut self, now: Time) {
        let now = self.clock.advance(now);
        if now < self.tick_at {
            return;
        }
        let cycle_min = if self.is_idle() { TICK_MAX } else { self.cycle_min() };
        let since = now - self.ticked;
        self.ticked = now;
        self.tick_at = now + (cycle_min / TICKS_PER_CYCLE).clamp(TICK_MIN, TICK_MAX);
        let groups = match &self.records {
            BlockRecords::Index(index) => index.group_count(),
            BlockRecords::RootOnly(_) => 0,
        };
        for host in &mut self.hosts {
            if host.close(now) {
                self.sweep_left = groups;
            }
        }
        self.report_silent_hosts(now);
        if self.is_unrepaired && self.ram.is_on() && self.hosts.iter().any(Host::is_responsive) {
            self.is_unrepaired = false;
            self.sweep_left = groups;
        }
        self.sweep(now, since, cycle_min, groups);
        self.tick_root(now);
        for host in &mut self.hosts {
            host.plan_probes(now);
        }
    }

    /// Records that the receive buffer of a host is empty: replies due by now are missing.
    pub fn drained(&mut self, now: Time, host: HostId) {
        let now = self.clock.advance(now);
        if let Some(record) = self.host_mut(host) {
            record.drained(now);
        }
    }

    /// Returns how many packets of a host to receive now, so that each can be sent again at once. The others
    /// stay in the receive buffer.
    pub fn allowance(&mut self, now: Time, host: HostId) -> usize {
        let now = self.clock.advance(now);
        self.host_mut(host).map_or(0, |record| record.allowance(now))
    }

    /// Returns how long a requested or dropped block may be in flight in a store without an index.
    pub(super) fn age_max(&self) -> Duration {
        self.hosts.iter().filter_map(Host::cycle).max().unwrap_or_default() * AGE_CYCLES_MAX + AGE_EXTRA
    }

    /// Returns whether no packet is in flight or queued.
    fn is_idle(&self) -> bool {
        self.hosts.iter().all(|host| host.timeline.in_flight() == 0 && host.send_queue.len() == 0)
    }

    fn cycle_min(&self) -> Duration {
        let cycles = self.hosts.iter().filter(|host| host.is_answering()).filter_map(Host::cycle);
        cycles.min().unwrap_or(TICK_MAX)
    }

    /// Reports hosts that became silent, and moves the packets queued for them.
    fn report_silent_hosts(&mut self, now: Time) {
        for number in 0..self.hosts.len() {
            let Some(record) = self.hosts.get_mut(number) else {
                continue;
            };
            if !record.detect_silence() {
                continue;
            }
            let host = record.id;
            let waiting: Vec<_> = std::iter::from_fn(|| record.send_queue.pop(Time(u64::MAX))).collect();
            self.outputs.push_back(EchoOutput::Silent { host });
            for item in waiting {
                self.move_to_other_host(now, host, item);
            }
        }
    }

    /// Searches the next part of the index if packets are known to be overdue.
    fn sweep(&mut self, now: Time, since: Duration, cycle: Duration, groups: usize) {
        let span = (cycle / SWEEPS_PER_CYCLE).max(TICK_MIN);
        let part = (since.as_secs_f64() / span.as_secs_f64()).min(1.0);
        let count = ((groups as f64 * part).ceil() as usize).min(self.sweep_left);
        self.sweep_left -= count;
        let mut hits = Vec::new();
        let may_repair = self.ram.is_on();
        for _ in 0..count {
            if let BlockRecords::Index(index) = &mut self.records {
                sweep_group(index, &self.hosts, self.shape.needed, may_repair, &mut hits);
            }
        }
        for SweepHit { id, is_lost } in hits {
            if is_lost {
                self.collector.discard(id);
                self.outputs.push_back(EchoOutput::Lost { id });
                self.finish_fetch(id, None);
            }
            if let Some(block) = self.ram.find(id) {
                self.rebuild(now, id, &block);
                self.report_if_recovered(id);
                // Its pieces were collected for the repair.
                if !self.needs_contents(id) {
                    self.collector.discard(id);
                }
            }
        }
    }

    fn tick_root(&mut self, now: Time) {
        let age_max = self.age_max();
        let BlockRecords::RootOnly(root) = &mut self.records else {
            return;
        };
        if let Some(until) = now.0.checked_sub(u64::try_from(age_max.as_nanos()).unwrap_or(u64::MAX)) {
            root.dropped.expire(Time(until));
        }
        let gone: Vec<EchoBlockId> =
            root.wanted.iter().filter(|&(_, &until)| until <= now).map(|(&id, _)| id).collect();
        for host in &mut self.hosts {
            host.assigned = host.timeline.in_flight() + host.send_queue.len() as u64;
        }
        for id in gone {
            self.collector.discard(id);
            self.finish_fetch(id, None);
        }
    }
}

/// Finds overdue packets in the next bucket of the index.
fn sweep_group(index: &mut Index, hosts: &[Host], needed: usize, may_repair: bool, hits: &mut Vec<SweepHit>) {
    index.sweep(|mut entry| {
        let (mut here, mut is_damaged) = (0, false);
        let lanes = entry.lanes().count();
        for lane in (0..lanes).map(|lane| crate::packet::LaneId(lane as u8)) {
            match entry.lane(lane) {
                Some(LaneState::InFlight { host, low }) if is_overdue(hosts, host, low) => {
                    entry.set_lane(lane, LaneState::Overdue { host, low });
                    is_damaged = true;
                }
                Some(LaneState::InFlight { .. } | LaneState::Queued { .. }) => here += 1,
                Some(LaneState::Overdue { .. }) => is_damaged = true,
                None => {}
            }
        }
        let flags = entry.flags();
        let is_lost = here < needed && !flags.is_lost;
        if is_lost {
            entry.set_flags(Flags { is_lost: true, ..flags });
        }
        if is_lost || (is_damaged && may_repair) {
            hits.push(SweepHit { id: entry.id(), is_lost });
        }
    });
}

fn is_overdue(hosts: &[Host], host: HostId, low: u32) -> bool {
    let Some(timeline) = hosts.get(usize::from(host.0)).map(|host| &host.timeline) else {
        return true;
    };
    timeline.newest().is_none_or(|newest| index::whole(low, newest) < timeline.closed_below())
}
