//! The other nodes: records, states, and ownership of names.
//!
//! | a node is | becomes | when |
//! |---|---|---|
//! | unknown | alive | its record comes |
//! | alive | suspect | a probe fails, or another node claims that this incarnation is suspect or dead |
//! | suspect | alive | its record comes with a higher incarnation |
//! | suspect | dead | its suspicion timeout expires, by this node's own clock |
//! | dead, left | alive | its record comes with a higher incarnation |
//! | any | left | its record says so |
//! | dead, left | unknown | after an hour, or to make room for a node that announced itself |

use crate::key::{NodeKey, NodeName};
use crate::limits::{DEAD_KEPT, NODES_MAX};
use crate::member::{Liveness, Member};
use crate::record::SignedRecord;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::Time;

/// The result of merging a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordOutcome {
    /// A node that was unknown or down is up.
    Joined,
    /// A later record of a node that is up.
    Updated {
        /// The node was suspected, and refuted that.
        refuted: bool,
    },
    /// The node leaves.
    Left,
    /// The record is already known.
    Unchanged,
    /// The record is older than the known one.
    Stale,
    /// The signature is not its node's.
    BadSignature,
    /// The table has no room.
    TableFull,
}

/// The other nodes.
#[derive(Debug, Default)]
pub(crate) struct MemberTable {
    members: BTreeMap<NodeKey, Member>,
}

impl MemberTable {
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

    /// Returns the nodes that are up.
    pub(crate) fn reachable(&self) -> Vec<NodeKey> {
        self.members.iter().filter(|(_, member)| member.state.is_up()).map(|(key, _)| *key).collect()
    }

    /// Merges a record that another node relayed. A dead node is not evicted for a node that has not announced itself.
    pub(crate) fn merge_relayed(&mut self, now: Time, signed: SignedRecord) -> RecordOutcome {
        match self.members.contains_key(&signed.record.key) || self.has_room() {
            true => self.merge_own(now, signed),
            false => RecordOutcome::TableFull,
        }
    }

    fn has_room(&self) -> bool {
        self.members.len() + 1 < NODES_MAX
    }

    /// Merges a record that its own node sent.
    pub(crate) fn merge_own(&mut self, now: Time, signed: SignedRecord) -> RecordOutcome {
        let Some(member) = self.members.get_mut(&signed.record.key) else {
            return self.admit(now, signed);
        };
        let (known, new) = (member.record().order(), signed.record.order());
        if new < known {
            return RecordOutcome::Stale;
        }
        if member.signed == signed {
            return RecordOutcome::Unchanged;
        }
        // Of two records with the same order, the first one counts.
        if new == known {
            return RecordOutcome::Stale;
        }
        if !signed.is_genuine() {
            return RecordOutcome::BadSignature;
        }
        let (before, is_new_incarnation) = (member.state, new.0 > known.0);
        let leaving = signed.record.leaving;
        // Another node may hold the new name.
        member.holds_name &= member.record().name == signed.record.name;
        member.signed = signed;
        let after = match (leaving, is_new_incarnation, before) {
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
                RecordOutcome::Joined
            }
            (true, false) => RecordOutcome::Left,
            (true, true) => {
                RecordOutcome::Updated { refuted: before == Liveness::Suspect && after == Liveness::Alive }
            }
            (false, false) => RecordOutcome::Unchanged,
        }
    }

    fn admit(&mut self, now: Time, signed: SignedRecord) -> RecordOutcome {
        if signed.record.leaving {
            return RecordOutcome::Unchanged;
        }
        if !signed.is_genuine() {
            return RecordOutcome::BadSignature;
        }
        if !self.has_room() && !self.make_room() {
            return RecordOutcome::TableFull;
        }
        self.members.insert(signed.record.key, Member::new(signed, now));
        RecordOutcome::Joined
    }

    /// Evicts the node that has been dead for longest.
    fn make_room(&mut self) -> bool {
        let down = self.members.iter().filter(|(_, member)| !member.state.is_up());
        let oldest = down.min_by_key(|(_, member)| member.since).map(|(key, _)| *key);
        oldest.is_some_and(|key| self.members.remove(&key).is_some())
    }

    /// Merges a claim about a node's state. Only a claim about the known incarnation counts, so a node can refute all
    /// claims about itself. A claim of death only makes the node a suspect here: a node that was partitioned, and
    /// believes all others dead, harms none when it rejoins. Returns whether anything changed.
    pub(crate) fn merge_claim(
        &mut self,
        now: Time,
        key: &NodeKey,
        incarnation: u64,
        state: Liveness,
        suspicion_timeout: Duration,
    ) -> bool {
        let Some(member) = self.members.get_mut(key).filter(|m| m.record().incarnation == incarnation) else {
            return false;
        };
        let counts = match (member.state, state) {
            (Liveness::Alive, Liveness::Suspect | Liveness::Dead) => true,
            // Only a node's own record makes it left.
            (_, Liveness::Left | Liveness::Alive)
            | (Liveness::Suspect | Liveness::Dead | Liveness::Left, Liveness::Suspect | Liveness::Dead) => {
                false
            }
        };
        if counts {
            member.state = Liveness::Suspect;
            member.since = now;
            member.dead_at = now + suspicion_timeout;
        }
        counts
    }

    /// Declares a suspect dead. Returns whether it was one.
    pub(crate) fn declare_dead(&mut self, now: Time, key: &NodeKey) -> bool {
        let Some(member) = self.members.get_mut(key).filter(|m| m.state == Liveness::Suspect) else {
            return false;
        };
        member.state = Liveness::Dead;
        member.since = now;
        true
    }

    /// Returns the suspects whose timeout has expired.
    pub(crate) fn expired_suspects(&self, now: Time) -> Vec<NodeKey> {
        self.suspects().filter(|(_, member)| member.dead_at <= now).map(|(key, _)| *key).collect()
    }

    pub(crate) fn suspects(&self) -> impl Iterator<Item = (&NodeKey, &Member)> {
        self.members.iter().filter(|(_, member)| member.state == Liveness::Suspect)
    }

    /// Extends all suspicion timeouts after a stall.
    pub(crate) fn extend_deadlines(&mut self, span: Duration) {
        for member in self.members.values_mut() {
            member.dead_at = member.dead_at + span;
        }
    }

    /// Removes nodes that have been dead for long.
    pub(crate) fn remove_expired(&mut self, now: Time) -> Vec<NodeKey> {
        let is_old = |member: &Member| !member.state.is_up() && now.since(member.since) >= DEAD_KEPT;
        let stale = self.members.iter().filter(|(_, member)| is_old(member));
        let stale: Vec<NodeKey> = stale.map(|(key, _)| *key).collect();
        for key in &stale {
            self.members.remove(key);
        }
        stale
    }

    /// Returns the node that holds a name.
    pub(crate) fn holder(&self, name: &NodeName) -> Option<&Member> {
        self.members.values().find(|member| member.holds_name && member.record().name == *name)
    }

    /// Assigns names after a node joined, left, or changed its name. A holder keeps its name while it is up. A free
    /// name goes to the claimant that started first. `own`: the name that this node holds.
    pub(crate) fn assign_names(&mut self, own: Option<&NodeName>) {
        for member in self.members.values_mut() {
            member.holds_name &= member.state.is_up() && Some(&member.record().name) != own;
        }
        let mut claimants: Vec<(u64, NodeKey)> = self
            .members
            .iter()
            .filter(|(_, member)| member.state.is_up() && !member.holds_name)
            .map(|(key, member)| (member.record().born, *key))
            .collect();
        claimants.sort_unstable();
        for (_, key) in claimants {
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
