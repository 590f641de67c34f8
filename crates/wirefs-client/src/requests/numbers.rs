//! The numbers of changes, so that one whose reply was lost can be sent again (PROTOCOL.md, "Changes that are sent again").

use std::collections::BTreeSet;
use wirefs_op::limits::LEDGER_MAX;
use wirefs_op::message::number::Tnumber;

/// After this many changes the client reports again which replies have arrived, so that the server can drop them.
const REPORT_EVERY: u64 = 1024;

/// The number of a session's first change. A ledger at 0 has no changes.
const FIRST: u64 = 1;

/// Whether a change may be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It may.
    Goes,
    /// It may, after this message.
    Behind(Tnumber),
    /// Not before older ones are answered.
    Waits,
}

/// The numbers given so far.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Whether the server numbers the changes of this session too.
    is_agreed: bool,
    /// The number of the next new change.
    next: u64,
    /// The number that the server assumes for the next change on this connection; `None` before the client has stated
    /// one.
    implied: Option<u64>,
    /// The client has reported to the server that all changes below this number are answered.
    told: u64,
    /// The numbers of changes without a reply.
    unanswered: BTreeSet<u64>,
    /// After a replay: the number of the first change that is held back. Changes wait until the server has stated
    /// whether the session is exclusive, so that the journal records this correctly before the server's machine can
    /// lose power again.
    pub(super) held_from: Option<u64>,
}

impl Numbers {
    /// Notes a new connection. If the earlier numbers have no meaning there, all changes count as new.
    ///
    /// INVARIANT: no number stands for two changes of a session. The server may keep replies to changes from `ledger`
    /// on, and would give them to new changes with the same numbers. So a client that does not know which numbers were
    /// used skips [`LEDGER_MAX`] of them. These suffice, since the server accepts no number that is so far above the
    /// answered changes, and all changes below `ledger` are answered.
    pub(super) fn attached(&mut self, ledger: Option<u64>, is_known: bool) {
        (self.is_agreed, self.implied) = (ledger.is_some(), None);
        let unused = match ledger {
            None | Some(0) => FIRST,
            Some(ledger) if is_known => ledger,
            Some(ledger) => ledger.saturating_add(LEDGER_MAX),
        };
        self.next = self.next.max(unused);
        if !(self.is_agreed && is_known) {
            self.unanswered.clear();
        }
    }

    /// Whether changes are numbered.
    pub(super) fn is_agreed(&self) -> bool {
        self.is_agreed
    }

    /// The number of the next new change.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The number below which all changes are answered, or given up.
    pub(super) fn answered_below(&self) -> u64 {
        self.unanswered.first().map_or(self.next, |lowest| *lowest)
    }

    /// Gives a number to a change that is sent later.
    pub(super) fn issue(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.unanswered.insert(number);
        number
    }

    /// Gives a number to the change that is sent next, unless it has one.
    pub(super) fn give(&mut self, number: &mut Option<u64>) -> Turn {
        if !self.is_agreed {
            return Turn::Goes;
        }
        if self.held_from.is_some() {
            return Turn::Waits;
        }
        let given = number.unwrap_or(self.next);
        let answered = self.unanswered.first().map_or(given, |lowest| given.min(*lowest));
        if given - answered >= LEDGER_MAX {
            return Turn::Waits;
        }
        if self.implied != Some(given) || given - self.told >= REPORT_EVERY && answered > self.told {
            return Turn::Behind(self.tell(Some(given)));
        }
        if given - self.told >= LEDGER_MAX {
            return Turn::Waits;
        }
        *number = Some(given);
        self.unanswered.insert(given);
        self.next = self.next.max(given + 1);
        self.implied = Some(given + 1);
        Turn::Goes
    }

    /// The statement about answered changes to send before the change with this number, or before a new one.
    pub(super) fn tell(&mut self, given: Option<u64>) -> Tnumber {
        let number = given.unwrap_or(self.next);
        let answered = self.unanswered.first().map_or(number, |lowest| number.min(*lowest));
        (self.implied, self.told) = (Some(number), answered);
        Tnumber { number, answered }
    }

    /// Notes that a change was answered, or given up.
    pub(super) fn answered(&mut self, number: Option<u64>) {
        if let Some(number) = number {
            self.unanswered.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests;
