//! Faults for an exclusive mount.

use super::HOST;
use crate::world::{Event, World};

#[derive(Clone, Copy, Debug)]
enum Fault {
    Cut,
    Stall,
    ClientCrash,
    ServerCrash,
    PowerCut,
    ServerEnd,
}

impl World {
    /// Injects a fault, while the run has any left.
    pub(crate) fn inject_exclusive_fault(&mut self) {
        let faults = self.plan.faults;
        let plan = self.plan.ahead.as_ref();
        let (kills, power_cuts) = plan.map_or((false, false), |plan| (plan.kills, plan.power_cuts));
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.faults_left > 0) else { return };
        ahead.faults_left -= 1;
        let kinds = [
            (Fault::Cut, faults.cuts),
            (Fault::Stall, faults.stalls),
            (Fault::ClientCrash, faults.client_crashes),
            (Fault::ServerCrash, faults.server_crashes && (kills || !power_cuts)),
            (Fault::PowerCut, faults.server_crashes && power_cuts),
            (Fault::ServerEnd, faults.server_crashes && kills && self.dice.chance(1, 4)),
        ];
        let kinds: Vec<Fault> =
            kinds.into_iter().filter(|(_, may_be)| *may_be).map(|(kind, _)| kind).collect();
        let at = self.dice.below(kinds.len() as u64) as usize;
        match kinds.get(at) {
            Some(Fault::Cut) => {
                if let Some(connection) = self.hosts.get(HOST).and_then(|host| host.connection()) {
                    self.counts.cuts += 1;
                    self.note(|| format!("the line breaks: connection {}", connection.0));
                    self.cut(connection);
                }
            }
            Some(Fault::Stall) => self.stall(HOST),
            Some(Fault::ClientCrash) => self.crash_host(HOST),
            Some(Fault::ServerCrash) => self.crash_server(false),
            Some(Fault::PowerCut) => self.crash_server(true),
            Some(Fault::ServerEnd) => self.drain_server(),
            None => {}
        }
        if let Some(between) = self.plan.fault_interval().filter(|_| !self.is_healed) {
            let delay = self.delay(between);
            self.after(delay, Event::Fault);
        }
    }
}
