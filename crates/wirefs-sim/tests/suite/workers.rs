//! Parallel runs on all processors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{available_parallelism, scope};

/// Returns the least number below `end` with a result of `what`, and the result.
pub(crate) fn first<T: Send>(end: u64, what: impl Fn(u64) -> Option<T> + Sync) -> Option<(u64, T)> {
    let (next, found) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            // A larger number than a found one is useless; smaller ones are still tried.
            if number >= end.min(found.load(Ordering::Relaxed)) {
                return None;
            }
            if let Some(result) = what(number) {
                found.fetch_min(number, Ordering::Relaxed);
                return Some((number, result));
            }
        }
    };
    let workers = available_parallelism().map_or(1, usize::from);
    scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let results = workers.into_iter().filter_map(|hand| hand.join().expect("no run panics"));
        results.min_by_key(|(number, _)| *number)
    })
}
