//! Random runs. One seed is one run.

use crate::crew::first;
use std::sync::{Mutex, PoisonError};
use wirefs_sim::{Record, Scene, run, tell};

/// Runs of each test.
const SEEDS: u64 = 2000;

// S-1 S-8 S-9 S-4 S-6
#[test]
fn nobody_sees_what_was_not_so_and_everything_ends() {
    let total = Mutex::new(Record::default());
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
    // What is never tried is not proved.
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(
        total.missing(Scene::Beside).is_empty(),
        "never tried: {:?} in {total:?}",
        total.missing(Scene::Beside)
    );
    assert!(total.recalls > 2 * SEEDS && total.waited_out > SEEDS / 20, "{total:?}");
    assert!(total.kernel_hits > total.operations / 5 && total.kept > SEEDS / 10, "{total:?}");
}

#[test]
fn one_seed_is_always_the_same_run() {
    for seed in [0, 1, 2, 3] {
        let told = tell(Scene::Beside, seed, None);
        assert!(told.len() > 100);
        assert_eq!(told, tell(Scene::Beside, seed, None));
        assert_eq!(run(Scene::Beside, seed, None).unwrap(), run(Scene::Beside, seed, None).unwrap());
    }
}
