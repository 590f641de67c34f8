//! What goes wrong for a mount that is ahead.

use super::SEAT;
use crate::world::{Event, World};

#[derive(Clone, Copy, Debug)]
enum Trouble {
    Cut,
    Stall,
    ClientCrash,
    ServerCrash,
    PowerCut,
    ServerEnd,
}

impl World {
    /// Something goes wrong, as far as a run has any of it left.
    pub(crate) fn trouble_ahead(&mut self) {
        let troubles = self.plan.troubles;
        let plan = self.plan.ahead.as_ref();
        let (kills, power_cuts) = plan.map_or((false, false), |plan| (plan.kills, plan.power_cuts));
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.troubles_left > 0) else { return };
        ahead.troubles_left -= 1;
        let kinds = [
            (Trouble::Cut, troubles.cuts),
            (Trouble::Stall, troubles.stalls),
            (Trouble::ClientCrash, troubles.client_crashes),
            (Trouble::ServerCrash, troubles.server_crashes && (kills || !power_cuts)),
            (Trouble::PowerCut, troubles.server_crashes && power_cuts),
            (Trouble::ServerEnd, troubles.server_crashes && kills && self.dice.chance(1, 4)),
        ];
        let kinds: Vec<Trouble> =
            kinds.into_iter().filter(|(_, may_be)| *may_be).map(|(kind, _)| kind).collect();
        let at = self.dice.below(kinds.len() as u64) as usize;
        match kinds.get(at) {
            Some(Trouble::Cut) => {
                if let Some(connection) = self.seats.get(SEAT).and_then(|seat| seat.connection()) {
                    self.record.cuts += 1;
                    self.note(|| format!("the line breaks: connection {}", connection.0));
                    self.cut(connection);
                }
            }
            Some(Trouble::Stall) => self.stall(SEAT),
            Some(Trouble::ClientCrash) => self.crash_seat(SEAT),
            Some(Trouble::ServerCrash) => self.crash_server(false),
            Some(Trouble::PowerCut) => self.crash_server(true),
            Some(Trouble::ServerEnd) => self.drain_server(),
            None => {}
        }
        if let Some(between) = self.plan.between_troubles().filter(|_| !self.is_healed) {
            let delay = self.delay(between);
            self.after(delay, Event::Trouble);
        }
    }
}
