//! The other nodes: what they say of themselves, how they are, whose name is whose.
//!
//! | a node is | becomes | when |
//! |---|---|---|
//! | unknown | alive | its record comes |
//! | alive | suspect | a probe fails, or another says of this incarnation that it is suspected, or dead |
//! | suspect | alive | its record comes with a higher incarnation |
//! | suspect | dead | it does not in time, by this node's own clock |
//! | dead, left | alive | its record comes with a higher incarnation |
//! | any | left | its record says so |
//! | dead, left | unknown | after an hour, or to make room for one that came itself |

use crate::key::{Name, NodeKey};
use crate::limits::{DEAD_KEPT, NODES_MAX};
use crate::member::{Liveness, Member};
use crate::record::SignedRecord;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::Time;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// A node that was not known or not there.
    Came,
    /// A node that was there says something new: an incarnation, an edition.
    Newer {
        /// It was suspected, and lives.
        refuted: bool,
    },
    /// It goes.
    Left,
    /// What was known.
    Same,
    /// Older than what is known.
    Old,
    /// No signature of its node.
    Forged,
    /// No room.
    Full,
}

/// The other nodes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    members: BTreeMap<NodeKey, Member>,
}

impl Table {
    pub(crate) fn find(&self, key: &NodeKey) -> Option<&Member> {
        self.members.get(key)
    }

    pub(crate) fn find_mut(&mut self, key: &NodeKey) -> Option<&mut Member> {
        self.members.get_mut(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NodeKey, &Member)> {
        self.members.iter()
    }

    pub(crate) fn after(&self, key: NodeKey) -> impl Iterator<Item = (&NodeKey, &Member)> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.members.range((Excluded(key), Unbounded))
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Those that are there.
    pub(crate) fn up(&self) -> Vec<NodeKey> {
        self.members.iter().filter(|(_, member)| member.state.is_up()).map(|(key, _)| *key).collect()
    }

    /// Takes a node's word from another. For a node that has not come itself nobody is forgotten.
    pub(crate) fn learn_passed_on(&mut self, now: Time, signed: SignedRecord) -> Learned {
        match self.members.contains_key(&signed.record.key) || self.has_room() {
            true => self.learn(now, signed),
            false => Learned::Full,
        }
    }

    fn has_room(&self) -> bool {
        self.members.len() + 1 < NODES_MAX
    }

    /// Takes a node's word from itself.
    pub(crate) fn learn(&mut self, now: Time, signed: SignedRecord) -> Learned {
        let Some(member) = self.members.get_mut(&signed.record.key) else {
            return self.admit(now, signed);
        };
        let (known, new) = (member.record().order(), signed.record.order());
        if new < known {
            return Learned::Old;
        }
        if member.signed == signed {
            return Learned::Same;
        }
        // Two records of one order: the first one counts.
        if new == known {
            return Learned::Old;
        }
        if !signed.is_genuine() {
            return Learned::Forged;
        }
        let (before, is_new_life) = (member.state, new.0 > known.0);
        let leaving = signed.record.leaving;
        // A name that it takes from now on may be another's already.
        member.holds_name &= member.record().name == signed.record.name;
        member.signed = signed;
        let after = match (leaving, is_new_life, before) {
            (true, _, _) => Liveness::Left,
            (false, true, _) => Liveness::Alive,
            (false, false, before) => before,
        };
        if after != before {
            member.state = after;
            member.since = now;
        }
        match (before.is_up(), after.is_up()) {
            (false, true) => {
                member.up_since = now;
                Learned::Came
            }
            (true, false) => Learned::Left,
            (true, true) => {
                Learned::Newer { refuted: before == Liveness::Suspect && after == Liveness::Alive }
            }
            (false, false) => Learned::Same,
        }
    }

    fn admit(&mut self, now: Time, signed: SignedRecord) -> Learned {
        if signed.record.leaving {
            return Learned::Same;
        }
        if !signed.is_genuine() {
            return Learned::Forged;
        }
        if !self.has_room() && !self.make_room() {
            return Learned::Full;
        }
        self.members.insert(signed.record.key, Member::new(signed, now));
        Learned::Came
    }

    /// Forgets the node that has been dead for longest.
    fn make_room(&mut self) -> bool {
        let gone = self.members.iter().filter(|(_, member)| !member.state.is_up());
        let oldest = gone.min_by_key(|(_, member)| member.since).map(|(key, _)| *key);
        oldest.is_some_and(|key| self.members.remove(&key).is_some())
    }

    /// Takes another's word on how a node is. Only what it says of the incarnation that is known counts: so nobody can say
    /// of a node what it could not refute. And nobody's word is a death: whoever is called dead is a suspect here, and has its
    /// moment. So one that was cut off, and thinks all others dead, harms nobody when it is back. Says whether anything
    /// changed.
    pub(crate) fn claim(
        &mut self,
        now: Time,
        key: &NodeKey,
        incarnation: u64,
        state: Liveness,
        suspicion: Duration,
    ) -> bool {
        let Some(member) = self.members.get_mut(key).filter(|m| m.record().incarnation == incarnation) else {
            return false;
        };
        let counts = match (member.state, state) {
            (Liveness::Alive, Liveness::Suspect | Liveness::Dead) => true,
            // Only its own word says that it left.
            (_, Liveness::Left | Liveness::Alive)
            | (Liveness::Suspect | Liveness::Dead | Liveness::Left, Liveness::Suspect | Liveness::Dead) => {
                false
            }
        };
        if counts {
            member.state = Liveness::Suspect;
            member.since = now;
            member.dead_at = now + suspicion;
        }
        counts
    }

    /// A suspect whose time is over is dead. Says whether it was one.
    pub(crate) fn give_up(&mut self, now: Time, key: &NodeKey) -> bool {
        let Some(member) = self.members.get_mut(key).filter(|m| m.state == Liveness::Suspect) else {
            return false;
        };
        member.state = Liveness::Dead;
        member.since = now;
        true
    }

    /// Suspects whose time is over.
    pub(crate) fn overdue(&self, now: Time) -> Vec<NodeKey> {
        self.suspects().filter(|(_, member)| member.dead_at <= now).map(|(key, _)| *key).collect()
    }

    pub(crate) fn suspects(&self) -> impl Iterator<Item = (&NodeKey, &Member)> {
        self.members.iter().filter(|(_, member)| member.state == Liveness::Suspect)
    }

    /// All suspects get so much more time.
    pub(crate) fn excuse(&mut self, span: Duration) {
        for member in self.members.values_mut() {
            member.dead_at = member.dead_at + span;
        }
    }

    /// Forgets those that have been dead for long.
    pub(crate) fn forget(&mut self, now: Time) -> Vec<NodeKey> {
        let is_old = |member: &Member| !member.state.is_up() && now.since(member.since) >= DEAD_KEPT;
        let old = self.members.iter().filter(|(_, member)| is_old(member));
        let old: Vec<NodeKey> = old.map(|(key, _)| *key).collect();
        for key in &old {
            self.members.remove(key);
        }
        old
    }

    /// Who has this name.
    pub(crate) fn holder(&self, name: &Name) -> Option<&Member> {
        self.members.values().find(|member| member.holds_name && member.record().name == *name)
    }

    /// Settles whose name is whose, after a node came, went, or changed its name: who has it keeps it while it is there; of
    /// those that want a name that is free, the one that was started first gets it. `own`: the name that this node has.
    pub(crate) fn settle_names(&mut self, own: Option<&Name>) {
        for member in self.members.values_mut() {
            member.holds_name &= member.state.is_up() && Some(&member.record().name) != own;
        }
        let mut wanting: Vec<(u64, NodeKey)> = self
            .members
            .iter()
            .filter(|(_, member)| member.state.is_up() && !member.holds_name)
            .map(|(key, member)| (member.record().born, *key))
            .collect();
        wanting.sort_unstable();
        for (_, key) in wanting {
            let Some(name) = self.members.get(&key).map(|member| member.record().name.clone()) else {
                continue;
            };
            let is_free = Some(&name) != own && self.holder(&name).is_none();
            if let Some(member) = self.members.get_mut(&key) {
                member.holds_name = is_free;
            }
        }
    }
}

#[cfg(test)]
mod tests;
