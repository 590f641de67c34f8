//! How long the kernel is told that it may believe something.

use crate::beliefs::Bounds;
use std::time::Duration;
use wirefs_client::call::{Answer, Entry, Listed};

/// As good as for ever, in seconds: 136 years. The kernel takes 64 bits, and cuts what its clock does not hold; other
/// kernels read the upper half as a time in the past.
const FOR_EVER_SECS: u64 = u32::MAX as u64;

/// A time as the kernel takes it: seconds, and nanoseconds beyond.
pub(super) fn split(time: Duration) -> (u64, u32) {
    match time.as_secs() {
        secs @ 0..FOR_EVER_SECS => (secs, time.subsec_nanos()),
        FOR_EVER_SECS.. => (FOR_EVER_SECS, 0),
    }
}

/// Tells names, and what comes with them, for no longer than the bounds.
pub(crate) fn bound(answer: &mut Answer, bounds: Bounds) {
    let bound_entry = |entry: &mut Entry| {
        entry.entry_ttl = entry.entry_ttl.min(bounds.name);
        entry.attr_ttl = entry.attr_ttl.min(bounds.attributes);
    };
    match answer {
        Answer::Entry(entry) | Answer::Created(entry, ..) => bound_entry(entry),
        Answer::NoEntry(time) => *time = (*time).min(bounds.name),
        Answer::Listing(entries) => {
            let told = entries.iter_mut().filter_map(|Listed { entry, .. }| entry.as_mut());
            told.for_each(bound_entry);
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
