//! Runs side by side, on as many processors as there are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{available_parallelism, scope};

/// Does something with each number below `end`, until one gives something back: the least such.
pub(crate) fn first<T: Send>(end: u64, what: impl Fn(u64) -> Option<T> + Sync) -> Option<(u64, T)> {
    let (next, found) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            // One above what was found is of no use any more; those below are still done.
            if number >= end.min(found.load(Ordering::Relaxed)) {
                return None;
            }
            if let Some(result) = what(number) {
                found.fetch_min(number, Ordering::Relaxed);
                return Some((number, result));
            }
        }
    };
    let crew = available_parallelism().map_or(1, usize::from);
    scope(|scope| {
        let crew: Vec<_> = (0..crew).map(|_| scope.spawn(work)).collect();
        let results = crew.into_iter().filter_map(|hand| hand.join().expect("no run panics"));
        results.min_by_key(|(number, _)| *number)
    })
}
