//! Random runs of programs that create the same names exclusively.

use crate::workers::first;
use std::sync::{Mutex, PoisonError};
use wirefs_sim::{EventCounts, Scene, run, tell};

/// Runs. `make sim RIVALS=1` has more.
const SEEDS: u64 = 400;

// S-50 S-51
#[test]
fn each_name_has_one_holder_on_all_machines() {
    let total = Mutex::new(EventCounts::default());
    let wrong = first(SEEDS, |seed| match run(Scene::Rivals, seed, None) {
        Ok(record) => {
            *total.lock().unwrap_or_else(PoisonError::into_inner) += record;
            None
        }
        Err(failure) => Some(failure),
    });
    if let Some((_, failure)) = wrong {
        panic!("{failure}");
    }
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(total.gained > 5 * SEEDS && total.gained_outside > 5 * SEEDS, "{}", total.summary(Scene::Rivals));
    assert!(total.lost > 5 * SEEDS && total.lost_outside > 5 * SEEDS, "{}", total.summary(Scene::Rivals));
}

#[test]
fn one_seed_of_rivals_always_gives_the_same_run() {
    for seed in [0, 1, 2, 3] {
        let history = tell(Scene::Rivals, seed, None);
        assert!(history.len() > 100);
        assert_eq!(history, tell(Scene::Rivals, seed, None));
    }
}
