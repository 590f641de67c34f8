//! Random runs, one per seed. `WIREFS_SEEDS` sets the number of seeds; `WIREFS_SEED` runs one alone and
//! prints its events.

use crate::mutations::Mutation;
use crate::simulation::{LeaseSimulation, Record};

/// The number of seeds by default.
const SEEDS_DEFAULT: u64 = 150;
/// The number of seeds within which each mistake must be detected.
const DETECTION_SEEDS: u64 = 400;

#[expect(clippy::disallowed_methods, reason = "a test is reply how long to go on")]
fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"))
}

fn run(seed: u64, mutation: Option<Mutation>) -> Result<Record, String> {
    let mut world = LeaseSimulation::new(seed, mutation);
    let result = world.run();
    if env_number("WIREFS_SEED").is_some() {
        for line in &world.log {
            eprintln!("{line}");
        }
    }
    result
}

#[test]
fn no_client_uses_stale_data_and_every_change_runs() {
    let seeds: Vec<u64> = match env_number("WIREFS_SEED") {
        Some(seed) => vec![seed],
        None => (0..env_number("WIREFS_SEEDS").unwrap_or(SEEDS_DEFAULT)).collect(),
    };
    let mut total = Record::default();
    for seed in &seeds {
        let record = run(*seed, None).unwrap_or_else(|failure| {
            panic!("{failure}\nWIREFS_SEED={seed} runs it alone and prints its events");
        });
        total.recalls += record.recalls;
        total.parked += record.parked;
        total.taken += record.taken;
        total.expelled += record.expelled;
    }
    // The runs must exercise these cases.
    let is_much = total.expelled > 0 && total.parked > 1000 && total.taken > 10_000;
    assert!(seeds.len() < 20 || is_much, "{total:?}");
}

#[test]
fn a_seed_determines_the_run() {
    for seed in 0..3 {
        assert_eq!(run(seed, None), run(seed, None));
    }
}

#[test]
fn each_mutation_is_detected() {
    let mut missed = Vec::new();
    for mutation in Mutation::ALL {
        let found = (0..DETECTION_SEEDS).find_map(|seed| Some((seed, run(seed, Some(mutation)).err()?)));
        match found {
            Some((seed, failure)) => eprintln!("{mutation:?}: seed {seed}: {failure}"),
            None => missed.push(mutation),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
