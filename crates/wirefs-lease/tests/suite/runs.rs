//! Random runs. One seed is one run; `WIREFS_SEEDS` tells how many, `WIREFS_SEED` runs one alone and tells all that
//! happened in it.

use crate::flaws::Flaw;
use crate::world::{Record, World};

/// Seeds that each run of the tests tries.
const USUAL: u64 = 150;
/// Within so many seeds each mistake must be found.
const FLAWED: u64 = 400;

#[expect(clippy::disallowed_methods, reason = "a test is told how long to go on")]
fn told(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"))
}

fn run(seed: u64, flaw: Option<Flaw>) -> Result<Record, String> {
    let mut world = World::new(seed, flaw);
    let result = world.run();
    if told("WIREFS_SEED").is_some() {
        for line in &world.log {
            eprintln!("{line}");
        }
    }
    result
}

#[test]
fn nobody_ever_believes_what_is_not_so_and_every_change_is_made() {
    let seeds: Vec<u64> = match told("WIREFS_SEED") {
        Some(seed) => vec![seed],
        None => (0..told("WIREFS_SEEDS").unwrap_or(USUAL)).collect(),
    };
    let mut total = Record::default();
    for seed in &seeds {
        let record = run(*seed, None).unwrap_or_else(|failure| {
            panic!("{failure}\nWIREFS_SEED={seed} runs it alone and tells what happened");
        });
        total.recalls += record.recalls;
        total.parked += record.parked;
        total.taken += record.taken;
        total.expelled += record.expelled;
    }
    // What is never tried is not proved.
    let is_much = total.expelled > 0 && total.parked > 1000 && total.taken > 10_000;
    assert!(seeds.len() < 20 || is_much, "{total:?}");
}

#[test]
fn one_seed_is_always_the_same_run() {
    for seed in 0..3 {
        assert_eq!(run(seed, None), run(seed, None));
    }
}

#[test]
fn each_mistake_is_found() {
    let mut missed = Vec::new();
    for flaw in Flaw::ALL {
        let found = (0..FLAWED).find_map(|seed| Some((seed, run(seed, Some(flaw)).err()?)));
        match found {
            Some((seed, failure)) => eprintln!("{flaw:?}: seed {seed}: {failure}"),
            None => missed.push(flaw),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
