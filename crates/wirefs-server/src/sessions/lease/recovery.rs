//! Recovery after an unclean end: changes wait for clients that may hold leases of the previous server.
//!
//! ```text
//!   awaited: the sessions in the previous server's lease marker
//!      │ one attaches: everything is recalled from it
//!      │ it answers, or ends: it is not awaited any more
//!      ▼
//!   no session is awaited, or the time is over: changes are allowed
//! ```

use super::Leasing;
use crate::sessions::Sessions;
use std::collections::BTreeSet;
use wirefs_lease::HolderKey;
use wirefs_op::Time;
use wirefs_op::message::version::SessionId;

impl Leasing {
    /// Limits the possible holders of the previous server's leases to these sessions.
    pub(in crate::sessions) fn await_holders(&mut self, possible_holders: BTreeSet<SessionId>) {
        self.awaited = Some(possible_holders);
        self.recover();
    }

    /// A holder has joined. If the previous server may have granted it leases, all are recalled.
    pub(super) fn holder_returned(&mut self, now: Time, holder: HolderKey, id: SessionId) {
        if self.awaited.as_ref().is_some_and(|awaited| awaited.contains(&id)) {
            self.grantor.recall_unrecorded(now, holder);
        }
    }

    /// A holder has answered a recall.
    pub(super) fn recall_answered(&mut self, holder: HolderKey) {
        if let (Some(awaited), Some(id)) = (&mut self.awaited, self.ids.get(&holder))
            && self.grantor.is_settled(holder)
        {
            awaited.remove(id);
            self.recover();
        }
    }

    /// A session has ended, and its leases with it.
    pub(in crate::sessions) fn session_ended(&mut self, id: &SessionId) {
        if let Some(awaited) = &mut self.awaited {
            awaited.remove(id);
            self.recover();
        }
    }

    /// Allows changes if no session is awaited any more.
    fn recover(&mut self) {
        if self.awaited.as_ref().is_some_and(BTreeSet::is_empty) {
            self.awaited = None;
            self.recovering_until = None;
            self.grantor.recovered();
        }
    }
}

impl Sessions {
    /// The sessions that hold leases or may get some. If this server is killed, the next one waits only for them
    /// ([`Sessions::awaiting_holders`]).
    pub fn possible_holders(&self) -> BTreeSet<SessionId> {
        let Some(leasing) = &self.leasing else { return BTreeSet::new() };
        let attached = self.connections.values().filter(|it| it.leases && it.is_attached_or_attaching());
        let attached = attached.filter_map(|it| Some(self.sessions.get(&it.session()?)?.id));
        let exclusive = leasing.exclusive.holder();
        let may_hold =
            |holder: &HolderKey| exclusive == Some(*holder) || leasing.grantor.may_hold_leases(*holder);
        let holding = leasing.ids.iter().filter(|(holder, _)| may_hold(holder)).map(|(_, id)| *id);
        attached.chain(holding).collect()
    }

    /// Whether changes wait for leases of the previous server.
    pub fn is_recovering(&self, now: Time) -> bool {
        let until = self.leasing.as_ref().and_then(|leasing| leasing.recovering_until);
        until.is_some_and(|until| now < until)
    }
}
