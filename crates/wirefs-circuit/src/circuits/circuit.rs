//! One circuit: an entry of the table.

use crate::address::{Class, Number};
use crate::limits::{BULK_CREDIT_MAX, REQUEST_CREDIT_MAX};
use crate::receiving::Receiving;
use crate::sending::Sending;

#[derive(Debug)]
pub(crate) struct Circuit {
    pub(super) number: Number,
    /// The path that a request circuit uses while that lives.
    home: u8,
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
    pub(super) is_queued: bool,
    pub(super) is_credit_queued: bool,
    pub(super) is_readable_told: bool,
    pub(super) is_finished_told: bool,
    /// Its user could not write all and wants to know when there is room.
    pub(super) wants_room: bool,
    /// The peer is done with its place, though our user is not.
    pub(super) is_freed: bool,
}

impl Circuit {
    pub(super) fn new(number: Number, home: u8) -> Circuit {
        Circuit {
            number,
            home,
            sending: Sending::new(),
            receiving: Receiving::new(),
            is_queued: false,
            is_credit_queued: false,
            is_readable_told: false,
            is_finished_told: false,
            wants_room: false,
            is_freed: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.sending.is_done() && self.receiving.is_done()
    }

    pub(super) fn credit_max(&self) -> u64 {
        match self.number.class() {
            Class::Request => REQUEST_CREDIT_MAX,
            Class::Bulk => BULK_CREDIT_MAX,
        }
    }

    /// Whether its data may go over this path: bulk over each, requests over their home while that has room.
    pub(super) fn may_use(&self, path: u8, open: u16) -> bool {
        self.number.class() == Class::Bulk || self.home == path || open & 1 << self.home == 0
    }
}
