//! After a server that did not end in order: who may believe what that one promised, and until when changes wait for them.
//!
//! ```text
//!   awaited: those whom the mark of the former names
//!      │ one attaches: it is told to forget everything
//!      │ it has answered, or says that it is over: it is awaited no longer
//!      ▼
//!   nobody is awaited, or the time is over: changes pass
//! ```

use super::Leasing;
use crate::sessions::Sessions;
use std::collections::BTreeSet;
use wirefs_lease::HolderKey;
use wirefs_op::Time;
use wirefs_op::message::version::SessionId;

impl Leasing {
    /// Only these may believe what the server before this one promised.
    pub(in crate::sessions) fn await_only(&mut self, believers: BTreeSet<SessionId>) {
        self.awaited = Some(believers);
        self.recover();
    }

    /// A holder has joined. One that may believe what the server before this one promised has to forget it.
    pub(super) fn returns(&mut self, now: Time, holder: HolderKey, id: SessionId) {
        if self.awaited.as_ref().is_some_and(|awaited| awaited.contains(&id)) {
            self.grantor.recall_unrecorded(now, holder);
        }
    }

    /// A holder has answered a recall.
    pub(super) fn has_answered(&mut self, holder: HolderKey) {
        if let (Some(awaited), Some(id)) = (&mut self.awaited, self.ids.get(&holder))
            && self.grantor.is_settled(holder)
        {
            awaited.remove(id);
            self.recover();
        }
    }

    /// A session is over for good: nobody believes anything in its place.
    pub(in crate::sessions) fn has_ended(&mut self, id: &SessionId) {
        if let Some(awaited) = &mut self.awaited {
            awaited.remove(id);
            self.recover();
        }
    }

    /// Lets changes pass once nobody is waited for any more.
    fn recover(&mut self) {
        if self.awaited.as_ref().is_some_and(BTreeSet::is_empty) {
            self.awaited = None;
            self.recovering_until = None;
            self.grantor.recovered();
        }
    }
}

impl Sessions {
    /// Who may believe something, or is about to be promised something. Should this server be killed, the next one has to wait for
    /// these and no others ([`Sessions::awaiting`]).
    pub fn believers(&self) -> BTreeSet<SessionId> {
        let Some(leasing) = &self.leasing else { return BTreeSet::new() };
        let coming = self.conversations.values().filter(|it| it.leases && it.is_in_or_coming());
        let coming = coming.filter_map(|it| Some(self.sessions.get(&it.session()?)?.id));
        let lone = leasing.solitude.holder();
        let may_believe =
            |holder: &HolderKey| lone == Some(*holder) || leasing.grantor.may_hold_leases(*holder);
        let believing = leasing.ids.iter().filter(|(holder, _)| may_believe(holder)).map(|(_, id)| *id);
        coming.chain(believing).collect()
    }

    /// Whether changes wait since somebody may believe what the server before this one promised.
    pub fn is_recovering(&self, now: Time) -> bool {
        let until = self.leasing.as_ref().and_then(|leasing| leasing.recovering_until);
        until.is_some_and(|until| now < until)
    }
}
