//! Mistakes that are built in have to be found.

use crate::crew::first;
use wirefs_sim::{Flaw, Scene, run};

/// Within so many runs each is found.
const FLAWED: u64 = 3000;

#[test]
fn each_mistake_is_found() {
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
fn a_failure_tells_what_happened_and_how_to_see_it_again() {
    let failure =
        (0..FLAWED).find_map(|seed| run(Scene::Beside, seed, Some(Flaw::TouchesNothing)).err()).unwrap();
    let shown = failure.to_string();
    assert!(shown.contains(&format!("FROM={} SEEDS=1", failure.seed)));
    assert!(shown.contains("WRONG: ") && shown.contains("server has changed"), "{shown}");
}
