//! Crashes, drains and restarts of the server.

use crate::flaw::Flaw;
use crate::server::TICK;
use crate::wire::Direction;
use crate::world::{Event, World};
use std::time::Duration;
use wirefs_op::message::attach::Watch;
use wirefs_op::message::version::BootId;
use wirefs_server::{ConnectionKey, LeaseTerms, RECOVERY_PERIOD, ServerInput, SessionKey, Sessions, Tree};

/// The downtime, in microseconds.
const AWAY: (u64, u64) = (10_000, 6_000_000);
/// The maximum duration of a drain.
const DRAIN_MAX: Duration = Duration::from_secs(5);

impl World {
    /// Crashes the process, possibly with its machine; applied changes stay.
    pub(crate) fn crash_server(&mut self, with_machine: bool) {
        if !self.server.is_up {
            return;
        }
        self.note(|| format!("the server{} crashes", if with_machine { "'s machine" } else { "" }));
        self.counts.server_crashes += 1;
        if with_machine {
            self.counts.boots += 1;
            self.server.boot = BootId(self.server.boot.0 + 1);
            self.server.notes.clear();
        }
        self.server_is_gone(with_machine);
        if with_machine {
            self.server_loses_power();
        }
        // The cause may keep a client away for longer.
        if self.dice.chance(1, 2) && (self.ahead.is_none() || self.plan.faults.stalls) {
            let host = self.dice.below(self.hosts.len() as u64) as usize;
            self.stall(host);
        }
        let delay = self.delay(AWAY);
        self.after(delay, Event::StartServer(true));
    }

    /// Drops the changes that were not on the disk.
    fn server_loses_power(&mut self) {
        let Some(ahead) = &mut self.ahead else { return };
        let dice = &mut self.dice;
        let tree = self.server.tree.after_power_cut(self.server.boot, &mut |bound| dice.below(bound));
        self.server.tree = tree;
        ahead.believed.server_lost_power();
        ahead.is_torn_for_dead();
        self.counts.server_power_cuts += 1;
    }

    /// Drains the server: it recalls leases, finishes jobs, and ends.
    pub(crate) fn drain_server(&mut self) {
        if self.server.is_up && !self.server.is_draining {
            self.note(|| "the server drains".into());
            self.counts.server_ends += 1;
            self.server.is_draining = true;
            self.server.drains_until = self.ahead.as_ref().map(|_| self.now + DRAIN_MAX);
            self.tell_server(ServerInput::Drain);
        }
    }

    pub(super) fn ends_in_order(&mut self) {
        let is_late = self.server.drains_until.is_some_and(|until| self.now >= until);
        let is_busy = self.server.sessions.jobs() > 0 || self.server.sessions.is_recalling();
        if !self.server.is_draining || is_busy && !is_late {
            return;
        }
        let are_leases_out = self.server.sessions.has_leases_out();
        if !are_leases_out {
            self.server.promised.clear();
        }
        self.tell_server(ServerInput::Stop);
        self.server_is_gone(false);
        let delay = self.delay(AWAY);
        self.after(delay, Event::StartServer(are_leases_out));
    }

    fn server_is_gone(&mut self, in_silence: bool) {
        self.server.is_up = false;
        let promised = std::mem::take(&mut self.server.promised);
        self.server.left.extend(promised);
        self.server.is_draining = false;
        self.server.life += 1;
        self.server.stopped.clear();
        self.server.waiting.clear();
        self.server.unreported = 0;
        let sessions: Vec<SessionKey> = self.server.attached.keys().copied().collect();
        for session in sessions {
            self.server.attached.remove(&session);
            self.server.tree.end(session);
        }
        self.truth.look(&self.server.tree, self.now, crate::truth::By::Outside);
        let open = self.wires.iter().filter(|(_, wire)| wire.at_server);
        for connection in open.map(|(key, _)| *key).collect::<Vec<ConnectionKey>>() {
            if in_silence && self.dice.chance(1, 2) {
                if let Some(wire) = self.wires.get_mut(&connection) {
                    wire.at_server = false;
                }
                self.vanish(connection, Direction::Down);
            } else {
                self.close(connection, Direction::Down);
            }
            self.tidy_wire(connection);
        }
    }

    /// Starts the server. After a crash it has a grace period: until all sessions with leases are back, or for a time.
    pub(crate) fn start_server(&mut self, waits: bool) {
        let now = self.server_now();
        let waits = waits && self.flaw != Some(Flaw::StartsAtOnce);
        let recovering_until = waits.then(|| now + RECOVERY_PERIOD);
        let terms = LeaseTerms { watch: Watch::Filesystem, recovering_until };
        let mut awaited = self.server.left.clone();
        if self.flaw == Some(Flaw::AwaitsAllButOne) {
            awaited.pop_first();
        }
        let sessions = Sessions::leasing(self.server.boot, terms).saving_ledgers();
        self.server.sessions = if waits { sessions.awaiting_holders(awaited) } else { sessions };
        self.server.is_up = true;
        let life = self.server.life;
        self.note(|| format!("the server starts, recovering until {recovering_until:?}"));
        self.after(TICK, Event::TickServer(life));
    }
}
