//! A mount that is ahead of its server, and what becomes of its changes. One seed is one run.

use crate::crew::first;
use std::sync::{Mutex, PoisonError};
use wirefs_sim::{Flaw, Record, Scene, run, tell};

/// Runs in which nothing is wrong. `make sim AHEAD=1` makes more.
const SEEDS: u64 = 600;
/// Within so many runs each mistake is found.
const FLAWED: u64 = 200;

// S-89 S-86 S-103 S-95 S-102 S-105 S-106 S-107 S-108
#[test]
fn what_a_program_was_told_is_what_the_server_has_in_the_end() {
    let total = Mutex::new(Record::default());
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
    // What is never tried is not proved.
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let told = total.told(Scene::Ahead);
    assert!(
        total.missing(Scene::Ahead).is_empty(),
        "never tried: {:?} in {told}",
        total.missing(Scene::Ahead)
    );
    assert!(total.redone > SEEDS / 40 && total.redone_live > SEEDS / 20, "{told}");
    assert!(total.recovered > SEEDS / 5 && total.client_power_cuts > SEEDS / 40, "{told}");
    assert!(total.cut_early > SEEDS / 100, "{told}");
    // What is kept aside whole says little.
    assert!(total.kept_aside * 4 < total.server_power_cuts, "{told}");
}

#[test]
fn each_mistake_of_a_mount_that_is_ahead_is_found() {
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
fn one_seed_of_a_mount_that_is_ahead_is_always_the_same_run() {
    for seed in [0, 1, 2, 3] {
        let told = tell(Scene::Ahead, seed, None);
        assert!(told.len() > 100);
        assert_eq!(told, tell(Scene::Ahead, seed, None));
    }
}

#[test]
fn a_failure_of_a_mount_that_is_ahead_says_how_to_see_it_again() {
    let failure =
        (0..FLAWED).find_map(|seed| run(Scene::Ahead, seed, Some(Flaw::AnswersFsyncEarly)).err()).unwrap();
    assert!(failure.to_string().contains(&format!("FROM={} SEEDS=1 AHEAD=1", failure.seed)));
}
