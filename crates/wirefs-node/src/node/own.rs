//! This node's own record.

use crate::config::NodeConfig;
use crate::key::{NodeKey, NodeName};
use crate::limits::{ADDRESSES_MAX, CARDS_MAX, EXPORTS_MAX, LOAD_INTERVAL, SETTLING, SETTLING_WITHOUT_PEERS};
use crate::record::{NodeRecord, SignedRecord};
use crate::signature::Signer;
use std::time::Duration;
use wirefs_op::Time;

/// Low bits of a packet number; the bits above are the start time in milliseconds.
const NUMBER_BITS: u32 = 20;
/// Free space is published again after a change by this part of the total.
const FREE_PART: u64 = 64;
/// Load is published again after a change by this much, in hundredths.
const LOAD_STEP: u16 = 25;

/// This node's own record and identity.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) signed: SignedRecord,
    pub(super) signer: Signer,
    pub(super) started: Option<Time>,
    /// From this time on the node keeps its name.
    settles_at: Option<Time>,
    /// Another node holds our name.
    pub(super) yielded_name: bool,
    /// The number of the last packet sent.
    number: u64,
    load_updated_at: Option<Time>,
}

impl Own {
    pub(super) fn new(config: NodeConfig) -> Option<Own> {
        let NodeConfig { key, signer, name, born, port, mut addresses, mut exports, mut cards, .. } = config;
        addresses.truncate(ADDRESSES_MAX);
        exports.truncate(EXPORTS_MAX);
        cards.truncate(CARDS_MAX);
        let record = NodeRecord {
            key,
            name,
            born,
            incarnation: born,
            edition: 0,
            leaving: false,
            port,
            addresses,
            exports,
            load_percent: 0,
            free_bytes: 0,
            all_bytes: 0,
            cards,
        };
        let signed = record.sign(&signer)?;
        let number = born.checked_shl(NUMBER_BITS).unwrap_or(0);
        Some(Own {
            signed,
            signer,
            started: None,
            settles_at: None,
            yielded_name: false,
            number,
            load_updated_at: None,
        })
    }

    pub(super) fn key(&self) -> NodeKey {
        self.signed.record.key
    }

    /// Returns the node's name, unless another node holds it.
    pub(super) fn name(&self) -> Option<&NodeName> {
        (!self.yielded_name).then_some(&self.signed.record.name)
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.number = self.number.saturating_add(1);
        self.number
    }

    /// Sets the start time, once.
    pub(super) fn start(&mut self, now: Time) {
        self.started.get_or_insert(now);
        self.settles_at.get_or_insert(now + SETTLING_WITHOUT_PEERS);
    }

    /// Restarts the settling time at the first other node, so that it has time to report a name conflict.
    pub(super) fn restart_settling(&mut self, now: Time) {
        if !self.is_settled(now) {
            self.settles_at = Some(now + SETTLING);
        }
    }

    /// Extends the settling time after a stall: reports of a name conflict may have been missed.
    pub(super) fn extend_deadlines(&mut self, now: Time, late: Duration) {
        // `now` is already after the stall.
        if let Some(at) = self.settles_at.as_mut().filter(|at| **at + late > now) {
            *at = *at + late;
        }
    }

    /// Returns whether the node keeps its name from now on.
    pub(super) fn is_settled(&self, now: Time) -> bool {
        self.settles_at.is_some_and(|at| at <= now)
    }

    /// Changes the record and signs it again. Returns `false` and changes nothing if the key does not sign.
    fn update_record(&mut self, change: impl FnOnce(&mut NodeRecord)) -> bool {
        let mut record = self.signed.record.clone();
        change(&mut record);
        let Some(signed) = record.sign(&self.signer) else { return false };
        self.signed = signed;
        true
    }

    /// Refutes claims up to `incarnation` by a higher one.
    pub(super) fn raise_incarnation(&mut self, incarnation: u64) -> bool {
        self.update_record(|record| {
            record.incarnation = incarnation.saturating_add(1);
            record.edition = 0;
        })
    }

    pub(super) fn leave(&mut self) {
        self.update_record(|record| {
            record.leaving = true;
            record.edition = record.edition.saturating_add(1);
        });
    }

    pub(super) fn update_load(&mut self, now: Time, load_percent: u16, free_bytes: u64, all_bytes: u64) {
        let known = &self.signed.record;
        let is_first = self.load_updated_at.is_none();
        let is_due = self.load_updated_at.is_none_or(|at| now.since(at) >= LOAD_INTERVAL);
        let matters = load_percent.abs_diff(known.load_percent) >= LOAD_STEP
            || free_bytes.abs_diff(known.free_bytes) > all_bytes / FREE_PART
            || all_bytes != known.all_bytes;
        if (is_first || is_due && matters)
            && self.update_record(|record| {
                record.edition = record.edition.saturating_add(1);
                (record.load_percent, record.free_bytes, record.all_bytes) =
                    (load_percent, free_bytes, all_bytes);
            })
        {
            self.load_updated_at = Some(now);
        }
    }
}
