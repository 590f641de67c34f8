//! Random runs of one exclusive mount with a journal.

use crate::workers::first;
use std::sync::{Mutex, PoisonError};
use wirefs_sim::{EventCounts, Flaw, Scene, run, tell};

/// Runs without a flaw. `make sim AHEAD=1` has more.
const SEEDS: u64 = 600;
/// Runs within which each flaw is found.
const FLAWED: u64 = 200;

// S-89 S-86 S-103 S-95 S-102 S-105 S-106 S-107 S-108
#[test]
fn server_finally_has_all_changes_that_programs_believe_in() {
    let total = Mutex::new(EventCounts::default());
    let wrong = first(SEEDS, |seed| match run(Scene::Ahead, seed, None) {
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
    let summary = total.summary(Scene::Ahead);
    assert!(
        total.missing(Scene::Ahead).is_empty(),
        "never happened: {:?} in {summary}",
        total.missing(Scene::Ahead)
    );
    assert!(total.redone > SEEDS / 40 && total.redone_live > SEEDS / 20, "{summary}");
    assert!(total.recovered > SEEDS / 5 && total.client_power_cuts > SEEDS / 40, "{summary}");
    assert!(total.cut_early > SEEDS / 100, "{summary}");
    // A run that ends with a quarantined journal tests little.
    assert!(total.kept_aside * 4 < total.server_power_cuts, "{summary}");
}

#[test]
fn each_flaw_of_an_exclusive_mount_is_found() {
    let mut missed = Vec::new();
    for flaw in Flaw::AHEAD {
        match first(FLAWED, |seed| run(Scene::Ahead, seed, Some(flaw)).err()) {
            Some((seed, failure)) => println!("{flaw:?}: seed {seed}: {}", failure.what),
            None => missed.push(flaw),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn one_seed_of_an_exclusive_mount_always_gives_the_same_run() {
    for seed in [0, 1, 2, 3] {
        let history = tell(Scene::Ahead, seed, None);
        assert!(history.len() > 100);
        assert_eq!(history, tell(Scene::Ahead, seed, None));
    }
}

#[test]
fn failure_of_an_exclusive_mount_has_a_command_to_repeat_it() {
    let failure =
        (0..FLAWED).find_map(|seed| run(Scene::Ahead, seed, Some(Flaw::AnswersFsyncEarly)).err()).unwrap();
    assert!(failure.to_string().contains(&format!("FROM={} SEEDS=1 AHEAD=1", failure.seed)));
}
