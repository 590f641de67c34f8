//! Random changes of a tree whose machine loses power at some moment, and what is sent again then.

mod world;

use wirefs_journal::{Record, Redo, Redone, Unlike};
use world::World;

/// What was changed, what the disk kept of it, and what of the rest is done again; the first attempts end somewhere. False: it says
/// nothing.
fn is_whole_again(seed: u64, attempts: usize) -> bool {
    let mut world = World::new(seed);
    let mut changes = world.change(40);
    let Some(mut lost) = world.lose_power(&changes) else { return false };
    changes.retain(|change| change.is_journaled);
    let mut decided = Redo::new(lost.root(), 1000);
    for change in &changes {
        let learned = decided.learn(&change.record, change.told);
        learned.unwrap_or_else(|unlike| panic!("seed {seed}: {unlike}: {changes:#?}"));
    }
    let found = lost.found(decided.probes().unwrap());
    match decided.decide(&found) {
        Ok(()) => {}
        Err(Unlike::Several) => return false,
        Err(unlike) => panic!("seed {seed}: {unlike}: {found:?} {changes:#?}"),
    }
    let targets = lost.found(decided.targets());
    decided.compare(&targets, u64::MAX);
    for attempt in 1..=attempts {
        let mut redo = decided.clone();
        let all = if attempt == attempts { changes.len() } else { lost.below(changes.len()) };
        for change in changes.iter().take(all) {
            match redo.redo(&change.record).unwrap() {
                Redone::Nothing => {}
                Redone::Aside(_) => return false,
                Redone::Send(number, request) => lost
                    .send(number, *request)
                    .unwrap_or_else(|errno| panic!("seed {seed}: {errno} for {change:?}: {changes:#?}")),
            }
        }
    }
    assert_eq!(lost.contents(), world.contents(), "seed {seed}: {changes:#?}");
    true
}

// S-77
#[test]
fn whatever_a_disk_has_lost_of_names_and_contents_is_there_again() {
    let whole = (0..1000).filter(|seed| is_whole_again(*seed, 1)).count();
    assert!(whole > 600, "too many say nothing: {whole}");
}

// S-77
#[test]
fn an_attempt_that_did_not_end_is_made_again() {
    let whole = (0..300).filter(|seed| is_whole_again(*seed, 3)).count();
    assert!(whole > 180, "too many say nothing: {whole}");
}

#[test]
fn nothing_is_sent_where_somebody_else_was_at_work() {
    let mut world = World::new(1);
    let changes = world.changes(&["mkdir d", "create d/f", "rename d/f d/g"]);
    let mut theirs = World::new(1);
    theirs.changes(&["mkdir d", "create d/g"]);
    let lost = theirs;
    let mut redo = Redo::new(lost.root(), 1000);
    changes.iter().for_each(|change| redo.learn(&change.record, change.told).unwrap());
    let mut found = lost.found(redo.probes().unwrap());
    // Somebody else's.
    found.values_mut().for_each(|found| found.id.generation += 7);
    assert_eq!(redo.decide(&found), Err(Unlike::Server));
}

#[test]
fn what_was_refused_is_not_tried_again() {
    let mut world = World::new(1);
    let changes = world.changes(&["mkdir d", "mkdir d"]);
    assert!(changes[1].told.is_refused);
    let lost = World::new(1);
    let mut redo = Redo::new(lost.root(), 1000);
    changes.iter().for_each(|change| redo.learn(&change.record, change.told).unwrap());
    redo.decide(&lost.found(redo.probes().unwrap())).unwrap();
    assert!(matches!(redo.redo(&changes[0].record), Ok(Redone::Send(1000, _))));
    assert_eq!(redo.redo(&changes[1].record), Ok(Redone::Nothing));
}

#[test]
fn changes_that_contradict_each_other_are_those_of_several() {
    let mut world = World::new(1);
    let changes = world.changes(&["mkdir d", "create d/f"]);
    let mut redo = Redo::new(world.root(), 1000);
    redo.learn(&changes[0].record, changes[0].told).unwrap();
    let again = Record { number: 9, ..changes[0].record.clone() };
    assert_eq!(redo.learn(&again, changes[0].told), Err(Unlike::Journal));
}

#[test]
fn what_was_changed_after_the_client_heard_of_the_server_is_left_alone() {
    let mut world = World::new(1);
    let changes = world.changes(&["write k", "write old/a", "create new", "write new"]);
    let lost = World::new(1);
    let mut redo = Redo::new(lost.root(), 1000);
    changes.iter().for_each(|change| redo.learn(&change.record, change.told).unwrap());
    redo.decide(&lost.found(redo.probes().unwrap())).unwrap();
    let mut targets = lost.found(redo.targets());
    assert_eq!(targets.len(), 2);
    targets.values_mut().for_each(|found| found.changed = if found.id == lost.id_of("k") { 8 } else { 7 });
    redo.compare(&targets, 7);
    let redone: Vec<Redone> = changes.iter().map(|change| redo.redo(&change.record).unwrap()).collect();
    assert!(matches!(redone[0], Redone::Aside(_)), "{redone:?}");
    assert!(redone[1..].iter().all(|redone| matches!(redone, Redone::Send(..))), "{redone:?}");
}
