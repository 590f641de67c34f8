//! Being alone: the only session that is there is told so, and whoever comes waits until it has given way.
//!
//! ```text
//!   alone: changes are sent behind ──┐ another session's Tattach
//!          the answers to programs   ▼
//!                         Ralone 0 to it; that Tattach is put aside
//!                                    │ Trecalled, or it is waited for no longer
//!                                    ▼
//!                         the tree is asked for those that wait
//! ```

use super::session::Session;
use super::{ConnectionKey, Output, Sessions};
use crate::blame::Parting;
use crate::tree::SessionKey;
use wirefs_lease::exclusive_session::ExclusiveOutcome;
use wirefs_lease::{HolderKey, Serial};
use wirefs_op::message::alone::Ralone;
use wirefs_op::message::version::SessionId;
use wirefs_op::{NOTAG, Reply, Time};

/// Whether other servers serve the same tree. What one of them serves is not alone either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// There are none, and none begins unless this one is asked.
    None,
    /// One wants to begin, as soon as [`Output::GivesWay`] says that nobody is alone here.
    Coming,
    /// There are.
    There,
    /// There may be one with somebody who is alone: until it is known, nobody attaches here.
    Unknown,
}

impl Sessions {
    /// The sessions that are here, those that wait for their client included.
    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.by_id.keys().copied()
    }

    /// There are others, or none, or one wants to begin ([`Input::Neighbours`](super::Input::Neighbours)).
    pub(super) fn neighbours_are(&mut self, now: Time, neighbours: Neighbours) {
        let was_there = self.neighbours == Neighbours::There;
        self.neighbours = neighbours;
        match neighbours {
            // One more of them.
            Neighbours::Coming if was_there => self.let_on(),
            Neighbours::Coming => {
                self.ask_loner(now);
                self.let_on();
            }
            Neighbours::None | Neighbours::There => self.let_on(),
            Neighbours::Unknown => {}
        }
        self.settle_solitude(now);
    }

    /// A session is served by a neighbour from now on ([`Input::Moved`](super::Input::Moved)): it waits for itself there, and for its
    /// notes, which this server has until the session has ended.
    pub(super) fn moved(&mut self, now: Time, session: SessionId) {
        let Some(key) = self.by_id.get(&session).copied() else { return };
        if let Some(leasing) = &mut self.leasing
            && let Some(holder) = leasing.by_id.get(&session).copied()
        {
            leasing.solitude.end(holder);
        }
        let connection = self.sessions.get(&key).and_then(Session::connection);
        if let Some(connection) = connection {
            self.part(now, connection, Parting::Replaced);
        }
        self.end(now, key);
        self.let_on();
    }

    /// Tells a session that it is alone, if one is since the last time.
    pub(super) fn settle_solitude(&mut self, now: Time) {
        let Some(holder) = self.loner() else { return };
        if let Some(leasing) = &mut self.leasing {
            leasing.solitude.grant(now, holder);
            self.tell_loner();
        }
    }

    /// Who is the only one there, nobody else having anything under way or believing anything, and wants to know that.
    fn loner(&self) -> Option<HolderKey> {
        let leasing = self.leasing.as_ref().filter(|leasing| leasing.solitude.is_shared())?;
        if !self.is_serving() || self.neighbours != Neighbours::None {
            return None;
        }
        let mut present = self.conversations.values().filter(|conversation| conversation.is_in_or_coming());
        let (only, None) = (present.next()?, present.next()) else { return None };
        let session = only.session().filter(|_| only.wants_solitude())?;
        let holder = self.sessions.get(&session)?.holder?;
        let is_busy = self.sessions.iter().any(|(key, other)| *key != session && other.jobs > 0);
        (!is_busy && leasing.connection_of(holder).is_some() && leasing.grantor.is_sole_holder(holder))
            .then_some(holder)
    }

    /// Tells the lone session how it stands.
    fn tell_loner(&mut self) {
        let Some(leasing) = &mut self.leasing else { return };
        let Some(holder) = leasing.solitude.holder() else { return };
        let (Some(connection), Some(serial)) =
            (leasing.connection_of(holder), leasing.grantor.next_serial(holder))
        else {
            return;
        };
        leasing.solitude.notice_sent(serial);
        let alone = !leasing.solitude.is_recalling();
        let reply = Reply::Alone(Ralone { serial: serial.0, alone });
        self.outputs.push_back(Output::Reply { connection, tag: NOTAG, reply });
    }

    /// Whether a session that wants to attach has to wait for another one, which is asked to give way.
    pub(super) fn waits_for_loner(&mut self, now: Time, session: SessionKey) -> bool {
        let id = self.sessions.get(&session).map(|owner| owner.id);
        if self.neighbours == Neighbours::Unknown {
            self.outputs.extend(id.map(Output::Waits));
            return true;
        }
        let Some(leasing) = &mut self.leasing else { return false };
        let Some(holder) = leasing.solitude.holder() else { return false };
        if id.is_some_and(|id| leasing.by_id.get(&id) == Some(&holder)) {
            return false;
        }
        self.ask_loner(now);
        self.leasing.as_ref().is_some_and(|leasing| !leasing.solitude.is_shared())
    }

    /// Has the lone session give way.
    pub(super) fn ask_loner(&mut self, now: Time) {
        if self.leasing.as_mut().is_some_and(|leasing| leasing.solitude.recall(now)) {
            self.tell_loner();
        }
        self.pass_solitude(now);
    }

    /// Whether this connection's session is alone, and was asked to give way.
    pub(super) fn is_giving_way(&self, connection: ConnectionKey) -> bool {
        let holder = self.holder_over(connection);
        let Some(leasing) = &self.leasing else { return false };
        holder.is_some() && leasing.solitude.holder() == holder && leasing.solitude.is_recalling()
    }

    /// A session has attached, and its Rattach is on its way.
    pub(super) fn greet_loner(&mut self, now: Time, connection: ConnectionKey) {
        let wants_solitude = self.conversations.get(&connection).is_some_and(|it| it.wants_solitude());
        let holder = self.holder_over(connection);
        let Some(leasing) = &mut self.leasing else { return };
        match holder.filter(|holder| leasing.solitude.holder() == Some(*holder)) {
            Some(holder) if wants_solitude => {
                leasing.solitude.reconnected(now, holder);
                self.tell_loner();
            }
            Some(holder) => {
                leasing.solitude.end(holder);
                self.let_on();
            }
            None => {}
        }
        self.settle_solitude(now);
    }

    /// Trecalled with this serial came. Says whether it was about being alone.
    pub(super) fn gives_way(&mut self, now: Time, holder: HolderKey, serial: Serial) -> bool {
        let is_answer = self.leasing.as_mut().is_some_and(|it| it.solitude.answered(holder, serial));
        if is_answer {
            self.let_on();
            self.settle_solitude(now);
        }
        is_answer
    }

    /// A session says that it goes ahead of nothing for now.
    pub(super) fn rests_alone(&mut self, holder: HolderKey) {
        if let Some(leasing) = &mut self.leasing {
            leasing.solitude.release(holder);
            self.let_on();
        }
    }

    /// A job of this session is over.
    pub(super) fn progressed(&mut self, now: Time, holder: Option<HolderKey>) {
        if let (Some(leasing), Some(holder)) = (&mut self.leasing, holder) {
            leasing.solitude.progressed(now, holder);
        }
    }

    /// Lets the time of a lone session pass.
    pub(super) fn pass_solitude(&mut self, now: Time) {
        let Some(leasing) = &mut self.leasing else { return };
        match leasing.solitude.tick(now) {
            ExclusiveOutcome::Stays => {}
            ExclusiveOutcome::Expelled(holder) => {
                if let Some(connection) = leasing.connection_of(holder) {
                    self.part(now, connection, Parting::Unresponsive);
                }
            }
            ExclusiveOutcome::Shared => self.let_on(),
        }
    }

    /// Lets those attach that wait, if nobody is alone any more.
    fn let_on(&mut self) {
        let is_alone = self.leasing.as_ref().is_some_and(|leasing| !leasing.solitude.is_shared());
        if is_alone || self.neighbours == Neighbours::Unknown {
            return;
        }
        if self.neighbours == Neighbours::Coming {
            self.neighbours = Neighbours::There;
            self.outputs.push_back(Output::GivesWay);
        }
        let held =
            self.conversations.iter().filter_map(|(key, conversation)| Some((*key, conversation.held()?)));
        for (connection, (session, tag, path)) in held.collect::<Vec<_>>() {
            self.ask_tree(connection, session, tag, path);
        }
    }
}
