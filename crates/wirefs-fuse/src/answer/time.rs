//! Validity times in answers to the kernel.

use crate::name_cache::Bounds;
use std::time::Duration;
use wirefs_client::call::{Answer, Entry, Listed};

/// The longest time in seconds: 136 years. Linux takes 64 bits and caps the value; other kernels interpret the
/// upper half as a time in the past.
const FOR_EVER_SECS: u64 = u32::MAX as u64;

/// A time in the kernel's format: seconds and nanoseconds.
pub(super) fn split(time: Duration) -> (u64, u32) {
    match time.as_secs() {
        secs @ 0..FOR_EVER_SECS => (secs, time.subsec_nanos()),
        FOR_EVER_SECS.. => (FOR_EVER_SECS, 0),
    }
}

/// Limits the validity of names and their attributes.
pub(crate) fn bound(answer: &mut Answer, bounds: Bounds) {
    let bound_entry = |entry: &mut Entry| {
        entry.entry_ttl = entry.entry_ttl.min(bounds.name);
        entry.attr_ttl = entry.attr_ttl.min(bounds.attributes);
    };
    match answer {
        Answer::Entry(entry) | Answer::Created(entry, ..) => bound_entry(entry),
        Answer::NoEntry(time) => *time = (*time).min(bounds.name),
        Answer::Listing(entries) => {
            let limited = entries.iter_mut().filter_map(|Listed { entry, .. }| entry.as_mut());
            limited.for_each(bound_entry);
        }
        Answer::Fail(_)
        | Answer::Done
        | Answer::Attr(..)
        | Answer::Opened(..)
        | Answer::Data(_)
        | Answer::Size(_)
        | Answer::Count(_)
        | Answer::ListingEnd
        | Answer::FsStat(_)
        | Answer::Lock(_)
        | Answer::Offset(_) => {}
    }
}
