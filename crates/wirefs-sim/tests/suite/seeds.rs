//! Random runs of several clients.

use crate::workers::first;
use std::sync::{Mutex, PoisonError};
use wirefs_sim::{EventCounts, Scene, run, tell};

/// Runs of each test.
const SEEDS: u64 = 2000;

// S-1 S-8 S-9 S-4 S-6
#[test]
fn observations_are_possible_and_all_calls_end() {
    let total = Mutex::new(EventCounts::default());
    let wrong = first(SEEDS, |seed| match run(Scene::Beside, seed, None) {
        Ok(record) => {
            *total.lock().unwrap_or_else(PoisonError::into_inner) += record;
            None
        }
        Err(failure) => Some(failure),
    });
    if let Some((_, failure)) = wrong {
        panic!("{failure}");
    }
    // An event that never happens is not tested.
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(
        total.missing(Scene::Beside).is_empty(),
        "never happened: {:?} in {total:?}",
        total.missing(Scene::Beside)
    );
    assert!(total.recalls > 2 * SEEDS && total.waited_out > SEEDS / 20, "{total:?}");
    assert!(total.kernel_hits > total.operations / 5 && total.kept > SEEDS / 10, "{total:?}");
}

#[test]
fn one_seed_always_gives_the_same_run() {
    for seed in [0, 1, 2, 3] {
        let history = tell(Scene::Beside, seed, None);
        assert!(history.len() > 100);
        assert_eq!(history, tell(Scene::Beside, seed, None));
        assert_eq!(run(Scene::Beside, seed, None).unwrap(), run(Scene::Beside, seed, None).unwrap());
    }
}
