//! Unstable writes: changes of one file that the server has and its disk may not have. They are sent again to a server
//! whose machine has restarted.

use bytes::Bytes;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Data was written at this offset.
    Data(u64, Bytes),
    /// The file was truncated or extended to this size.
    Size(u64),
}

impl Change {
    fn bytes(&self) -> usize {
        match self {
            Change::Data(_, data) => data.len(),
            Change::Size(_) => 0,
        }
    }
}

/// The changes of one file since the last commit, in order.
#[derive(Debug, Default)]
pub(crate) struct Uncommitted {
    /// Each with the number of its request.
    changes: Vec<(u64, Change)>,
    bytes: usize,
    /// A change is missing, so sending the others again would not suffice.
    is_incomplete: bool,
}

impl Uncommitted {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn add(&mut self, order: u64, change: Change) {
        if !self.is_incomplete {
            self.bytes += change.bytes();
            // Replies may come in another order than that of their requests.
            let at = self.changes.partition_point(|(before, _)| *before < order);
            self.changes.insert(at, (order, change));
        }
    }

    /// Notes a change that cannot be kept.
    pub(crate) fn lose(&mut self) {
        *self = Uncommitted { is_incomplete: true, ..Uncommitted::default() };
    }

    /// Drops the changes sent before this request, since they are on the server's disk.
    pub(crate) fn committed(&mut self, order: u64) {
        self.is_incomplete = false;
        self.changes.retain(|(before, _)| *before > order);
        self.bytes = self.changes.iter().map(|(_, change)| change.bytes()).sum();
    }

    /// Takes all changes, to be sent again; `None` if one is missing.
    pub(crate) fn take(&mut self) -> Option<Vec<Change>> {
        let changes = std::mem::take(self);
        (!changes.is_incomplete).then(|| changes.changes.into_iter().map(|(_, change)| change).collect())
    }
}
