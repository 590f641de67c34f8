//! Faults, and their end.

use crate::truth::By;
use crate::wire::Direction;
use crate::world::{Event, World};
use wirefs_op::Time;

/// The interval of faults, in microseconds.
const BETWEEN: (u64, u64) = (100_000, 5_000_000);
/// The interval of steps of programs at the server, in microseconds.
const ACTS: (u64, u64) = (50_000, 2_000_000);
/// A short and a long stall, in microseconds.
const STALL_SHORT: (u64, u64) = (100_000, 6_000_000);
const STALL_LONG: (u64, u64) = (6_000_000, 60_000_000);

impl World {
    /// Creates the initial files.
    pub(crate) fn create_initial_files(&mut self) {
        for request in self.initial_files() {
            self.serve_outside(request);
        }
        self.truth.look(&self.server.tree, Time(1), By::Nobody);
    }

    /// Injects a fault.
    pub(crate) fn inject_fault(&mut self) {
        if self.is_healed {
            return;
        }
        if self.ahead.is_some() {
            return self.inject_exclusive_fault();
        }
        let faults = self.plan.faults;
        let host = self.dice.below(self.hosts.len() as u64) as usize;
        match self.dice.below(100) {
            0..45 if faults.cuts => {
                if let Some(connection) = self.hosts.get(host).and_then(|host| host.connection()) {
                    self.counts.cuts += 1;
                    self.note(|| format!("the line of client {host} breaks: connection {}", connection.0));
                    self.cut(connection);
                }
            }
            20..80 if faults.stalls => self.stall(host),
            80..88 if faults.client_crashes => self.crash_host(host),
            88..97 if faults.server_crashes => {
                let with_machine = self.dice.chance(1, 3);
                self.crash_server(with_machine);
            }
            97..100 if faults.server_crashes => self.drain_server(),
            _ => {}
        }
        let delay = self.delay(BETWEEN);
        self.after(delay, Event::Fault);
    }

    /// Stalls a network path; its packets arrive later.
    pub(crate) fn stall(&mut self, host: usize) {
        let span = if self.dice.chance(1, 3) { STALL_LONG } else { STALL_SHORT };
        let until = self.now + self.delay(span);
        let directions: &[Direction] = match self.dice.below(4) {
            0 => &[Direction::Up],
            1 => &[Direction::Down],
            _ => &[Direction::Up, Direction::Down],
        };
        self.counts.stalls += 1;
        let long = until.since(self.now).as_millis();
        self.note(|| format!("no packets to or from client {host} for {long} ms: {directions:?}"));
        for direction in directions {
            let Some(path) = self.paths.get_mut(host) else { return };
            match direction {
                Direction::Up => path.stalled_up = until,
                Direction::Down => path.stalled_down = until,
            }
            self.when(until, Event::Release(host, *direction));
        }
    }

    /// Executes the next step of programs at the server.
    pub(crate) fn outside(&mut self) {
        if self.rivals.is_some() {
            return self.rival_acts_outside();
        }
        if self.is_resting() {
            return;
        }
        self.act_externally();
        let delay = self.delay(ACTS);
        self.after(delay, Event::ActOutside);
    }

    /// Ends all faults; hosts that are down return by themselves.
    pub(crate) fn heal(&mut self) {
        self.note(|| "no more faults".into());
        self.is_healed = true;
        for host in 0..self.paths.len() {
            if let Some(path) = self.paths.get_mut(host) {
                *path = crate::wire::NetworkPath::default();
            }
            self.release(host, Direction::Up);
            self.release(host, Direction::Down);
        }
    }
}
