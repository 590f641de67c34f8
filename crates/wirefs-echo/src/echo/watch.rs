//! What the passing of time brings: packets that are overdue, hosts that fell silent, rates, ballast.

use std::time::Duration;

use wirefs_op::Time;

use super::{Echo, Known, Output};
use crate::block::BlockId;
use crate::host::{Host, HostId};
use crate::index::{self, Flags, Index, Lane};
use crate::limits::{TICK_MAX, TICK_MIN};

/// Looks at the clock's consequences in one lap.
const TICKS_PER_LAP: u32 = 32;
/// Part of a lap in which the whole index is searched for what is overdue.
const SWEEPS_PER_LAP: u32 = 8;
/// A packet without an index is under way for no more than so many laps, and this on top.
const AGE_LAPS_MAX: u32 = 4;
const AGE_EXTRA: Duration = Duration::from_secs(1);

/// What a search found about one block.
struct Found {
    id: BlockId,
    is_lost: bool,
}

impl Echo {
    /// Lets time pass. It is cheap to call too often, and does something when [`deadline`](Echo::deadline) is reached.
    pub fn tick(&mut self, now: Time) {
        let now = self.clock.run(now);
        if now < self.tick_at {
            return;
        }
        let shortest_lap = if self.is_idle() { TICK_MAX } else { self.shortest_lap() };
        let since = now - self.ticked;
        self.ticked = now;
        self.tick_at = now + (shortest_lap / TICKS_PER_LAP).clamp(TICK_MIN, TICK_MAX);
        let groups = match &self.known {
            Known::Index(index) => index.group_count(),
            Known::Root(_) => 0,
        };
        for host in &mut self.hosts {
            if host.close(now) {
                self.sweep_left = groups;
            }
        }
        self.listen(now);
        if self.is_unrepaired && self.ram.is_on() && self.hosts.iter().any(Host::is_prompt) {
            self.is_unrepaired = false;
            self.sweep_left = groups;
        }
        self.sweep(now, since, shortest_lap, groups);
        self.tick_root(now);
        for host in &mut self.hosts {
            host.plan_ballast(now);
        }
    }

    /// Notes that nothing more waits in the receive buffer of a host: what should have come by now is not there.
    pub fn drained(&mut self, now: Time, host: HostId) {
        let now = self.clock.run(now);
        if let Some(record) = self.host_mut(host) {
            record.drained(now);
        }
    }

    /// How many packets of a host to receive now: each may be sent on at once. What is not received waits where it is.
    pub fn allowance(&mut self, now: Time, host: HostId) -> usize {
        let now = self.clock.run(now);
        self.host_mut(host).map_or(0, |record| record.allowance(now))
    }

    /// For how long a block that somebody waits for may be under way, where no index knows it, and a dropped one too.
    pub(super) fn age_max(&self) -> Duration {
        self.hosts.iter().filter_map(Host::lap).max().unwrap_or_default() * AGE_LAPS_MAX + AGE_EXTRA
    }

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool {
        self.hosts.iter().all(|host| host.line.out() == 0 && host.outbox.len() == 0)
    }

    fn shortest_lap(&self) -> Duration {
        let laps = self.hosts.iter().filter(|host| host.is_answering()).filter_map(Host::lap);
        laps.min().unwrap_or(TICK_MAX)
    }

    /// Finds hosts that fell silent, and sends what waits here for them to others.
    fn listen(&mut self, now: Time) {
        for number in 0..self.hosts.len() {
            let Some(record) = self.hosts.get_mut(number) else {
                continue;
            };
            if !record.listen() {
                continue;
            }
            let host = record.id;
            let waiting: Vec<_> = std::iter::from_fn(|| record.outbox.pop(Time(u64::MAX))).collect();
            self.outputs.push_back(Output::Silent { host });
            for item in waiting {
                self.move_away(now, host, item);
            }
        }
    }

    /// Searches the next part of the index, if something is known to be overdue.
    fn sweep(&mut self, now: Time, since: Duration, lap: Duration, groups: usize) {
        let span = (lap / SWEEPS_PER_LAP).max(TICK_MIN);
        let part = (since.as_secs_f64() / span.as_secs_f64()).min(1.0);
        let count = ((groups as f64 * part).ceil() as usize).min(self.sweep_left);
        self.sweep_left -= count;
        let mut found = Vec::new();
        let may_repair = self.ram.is_on();
        for _ in 0..count {
            if let Known::Index(index) = &mut self.known {
                sweep_group(index, &self.hosts, self.shape.needed, may_repair, &mut found);
            }
        }
        for Found { id, is_lost } in found {
            if is_lost {
                self.gather.forget(id);
                self.outputs.push_back(Output::Lost { id });
                self.answer(id, None);
            }
            if let Some(block) = self.ram.find(id) {
                self.rebuild(now, id, &block);
                self.note_found(id);
                // Its packets were collected to repair it.
                if !self.needs_contents(id) {
                    self.gather.forget(id);
                }
            }
        }
    }

    fn tick_root(&mut self, now: Time) {
        let age_max = self.age_max();
        let Known::Root(root) = &mut self.known else {
            return;
        };
        if let Some(until) = now.0.checked_sub(u64::try_from(age_max.as_nanos()).unwrap_or(u64::MAX)) {
            root.dropped.forget(Time(until));
        }
        let gone: Vec<BlockId> =
            root.wanted.iter().filter(|&(_, &until)| until <= now).map(|(&id, _)| id).collect();
        for host in &mut self.hosts {
            host.assigned = host.line.out() + host.outbox.len() as u64;
        }
        for id in gone {
            self.gather.forget(id);
            self.answer(id, None);
        }
    }
}

/// Finds packets that are overdue in the next group of the index.
fn sweep_group(index: &mut Index, hosts: &[Host], needed: usize, may_repair: bool, found: &mut Vec<Found>) {
    index.sweep(|mut entry| {
        let (mut here, mut is_damaged) = (0, false);
        let lanes = entry.lanes().count();
        for lane in (0..lanes).map(|lane| crate::packet::LaneId(lane as u8)) {
            match entry.lane(lane) {
                Some(Lane::Out { host, low }) if is_overdue(hosts, host, low) => {
                    entry.set_lane(lane, Lane::Overdue { host, low });
                    is_damaged = true;
                }
                Some(Lane::Out { .. } | Lane::Here { .. }) => here += 1,
                Some(Lane::Overdue { .. }) => is_damaged = true,
                None => {}
            }
        }
        let flags = entry.flags();
        let is_lost = here < needed && !flags.is_lost;
        if is_lost {
            entry.set_flags(Flags { is_lost: true, ..flags });
        }
        if is_lost || (is_damaged && may_repair) {
            found.push(Found { id: entry.id(), is_lost });
        }
    });
}

fn is_overdue(hosts: &[Host], host: HostId, low: u32) -> bool {
    let Some(line) = hosts.get(usize::from(host.0)).map(|host| &host.line) else {
        return true;
    };
    line.newest().is_none_or(|newest| index::whole(low, newest) < line.closed_below())
}
