//! Each flaw must be found.

use crate::workers::first;
use wirefs_sim::{Flaw, Scene, run};

/// Runs within which each flaw is found.
const FLAWED: u64 = 3000;

#[test]
fn each_flaw_is_found() {
    let mut missed = Vec::new();
    for flaw in Flaw::ALL {
        match first(FLAWED, |seed| run(Scene::Beside, seed, Some(flaw)).err()) {
            Some((seed, failure)) => println!("{flaw:?}: seed {seed}: {}", failure.what),
            None => missed.push(flaw),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn failure_has_its_history_and_a_command_to_repeat_it() {
    let failure =
        (0..FLAWED).find_map(|seed| run(Scene::Beside, seed, Some(Flaw::TouchesNothing)).err()).unwrap();
    let shown = failure.to_string();
    assert!(shown.contains(&format!("FROM={} SEEDS=1", failure.seed)));
    assert!(shown.contains("WRONG: ") && shown.contains("server has changed"), "{shown}");
}
