//! What this node says of itself.

use crate::config::Config;
use crate::key::{Name, NodeKey};
use crate::limits::{ADDRESSES_MAX, CARDS_MAX, EXPORTS_MAX, FIGURES_INTERVAL, SETTLING, SETTLING_ALONE};
use crate::record::{Record, SignedRecord};
use crate::seal::Signer;
use std::time::Duration;
use wirefs_op::Time;

/// A packet's number begins with the millisecond of the start, and has so many bits below it.
const NUMBER_BITS: u32 = 20;
/// Free space is told anew when it changed by a part in so many.
const FREE_PART: u64 = 64;
/// Load is told anew when it changed by so much, in hundredths.
const LOAD_STEP: u16 = 25;

/// What this node says of itself.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) signed: SignedRecord,
    pub(super) signer: Signer,
    pub(super) started: Option<Time>,
    /// From then on its name is its own.
    settles_at: Option<Time>,
    /// Another keeps our name.
    pub(super) gave_way: bool,
    /// The next packet's.
    number: u64,
    figures_at: Option<Time>,
}

impl Own {
    pub(super) fn new(config: Config) -> Option<Own> {
        let Config { key, signer, name, born, port, mut addresses, mut exports, mut cards, .. } = config;
        addresses.truncate(ADDRESSES_MAX);
        exports.truncate(EXPORTS_MAX);
        cards.truncate(CARDS_MAX);
        let record = Record {
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
            gave_way: false,
            number,
            figures_at: None,
        })
    }

    pub(super) fn key(&self) -> NodeKey {
        self.signed.record.key
    }

    /// The name that it has, unless it gave way to another.
    pub(super) fn name(&self) -> Option<&Name> {
        (!self.gave_way).then_some(&self.signed.record.name)
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.number = self.number.saturating_add(1);
        self.number
    }

    /// Runs from now on, if it did not yet.
    pub(super) fn start(&mut self, now: Time) {
        self.started.get_or_insert(now);
        self.settles_at.get_or_insert(now + SETTLING_ALONE);
    }

    /// Meets the first other node, which is to have the time to tell whose name this is.
    pub(super) fn meet_first(&mut self, now: Time) {
        if !self.is_settled(now) {
            self.settles_at = Some(now + SETTLING);
        }
    }

    /// It did not run for so long, and could not hear whose its name is.
    pub(super) fn excuse(&mut self, now: Time, late: Duration) {
        // `now` is past the gap already.
        if let Some(at) = self.settles_at.as_mut().filter(|at| **at + late > now) {
            *at = *at + late;
        }
    }

    /// Whether it has had its name for long enough not to give way any more.
    pub(super) fn is_settled(&self, now: Time) -> bool {
        self.settles_at.is_some_and(|at| at <= now)
    }

    /// Says something else from now on. A key that does not sign leaves it as it was.
    fn say(&mut self, change: impl FnOnce(&mut Record)) -> bool {
        let mut record = self.signed.record.clone();
        change(&mut record);
        let Some(signed) = record.sign(&self.signer) else { return false };
        self.signed = signed;
        true
    }

    /// Says that it lives, past this incarnation.
    pub(super) fn outlive(&mut self, incarnation: u64) -> bool {
        self.say(|record| {
            record.incarnation = incarnation.saturating_add(1);
            record.edition = 0;
        })
    }

    pub(super) fn leave(&mut self) {
        self.say(|record| {
            record.leaving = true;
            record.edition = record.edition.saturating_add(1);
        });
    }

    pub(super) fn tell_figures(&mut self, now: Time, load_percent: u16, free_bytes: u64, all_bytes: u64) {
        let known = &self.signed.record;
        let is_new = self.figures_at.is_none();
        let is_due = self.figures_at.is_none_or(|at| now.since(at) >= FIGURES_INTERVAL);
        let matters = load_percent.abs_diff(known.load_percent) >= LOAD_STEP
            || free_bytes.abs_diff(known.free_bytes) > all_bytes / FREE_PART
            || all_bytes != known.all_bytes;
        if (is_new || is_due && matters)
            && self.say(|record| {
                record.edition = record.edition.saturating_add(1);
                (record.load_percent, record.free_bytes, record.all_bytes) =
                    (load_percent, free_bytes, all_bytes);
            })
        {
            self.figures_at = Some(now);
        }
    }
}
