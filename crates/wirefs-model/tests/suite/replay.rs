//! Replays of random changes to a tree whose machine loses power.

mod world;

use std::collections::BTreeMap;
use wirefs_journal::{ChangeOutcome, ObjectStat, Record, Replay, ReplayFault, ReplayStep};
use wirefs_op::{FileId, NOTAG, Request, TreePath};
use world::{Change, World};

/// Checks that a replay restores a tree after a power loss; all attempts but the last are interrupted. `false`: the run proves nothing.
fn is_whole_again(mut world: World, seed: u64, attempts: usize) -> bool {
    let mut changes = world.change(40);
    let Some(mut lost) = world.lose_power(&changes) else { return false };
    changes.retain(|change| change.is_journaled);
    let mut decided = Replay::new(lost.root(), 1000).with_synced(world.synced.clone());
    for change in &changes {
        let learned = decided.learn(&change.record, change.outcome);
        learned.unwrap_or_else(|fault| panic!("seed {seed}: {fault}: {changes:#?}"));
    }
    let found = lost.found(decided.probes().unwrap());
    match decided.decide(&found) {
        Ok(()) => {}
        Err(ReplayFault::Ambiguous) => return false,
        Err(fault) => panic!("seed {seed}: {fault}: {found:?} {changes:#?}"),
    }
    let others = lost.paths_of(&decided.unreachable());
    let targets = lost.found(decided.targets().into_iter().chain(others).collect());
    decided.compare(&targets, u64::MAX);
    let mut sent = BTreeMap::new();
    let mut replay = decided.clone();
    for attempt in 1..=attempts {
        replay = decided.clone();
        let all = if attempt == attempts { changes.len() } else { lost.below(changes.len()) };
        for change in changes.iter().take(all) {
            match replay.step(&change.record).unwrap() {
                ReplayStep::Skip => {}
                ReplayStep::Quarantine(_) => return false,
                ReplayStep::Send(number, request) => {
                    sent.insert(change.record.number, number);
                    lost.send(number, *request)
                        .unwrap_or_else(|errno| panic!("seed {seed}: {errno} for {change:?}: {changes:#?}"));
                }
            }
        }
    }
    assert_eq!(lost.contents(), world.contents(), "seed {seed}: {changes:#?}");
    changes.iter().for_each(|change| is_found_again(&replay, change, sent.get(&change.record.number), &lost));
    true
}

/// Checks the report to a live mount: the path and id of the object of each change, and its former ids.
fn is_found_again(replay: &Replay, change: &Change, sent: Option<&u64>, lost: &World) {
    let number = change.record.number;
    let Some(path) = replay.path_of(number) else { return };
    let found = lost.found([path.clone()].into());
    let id = found.get(&path).map(|found| found.id);
    assert!(id.is_some(), "{change:?} is reported at {path:?}");
    let known = replay.former_ids(number);
    match sent.and_then(|sent| lost.made_as(*sent)) {
        Some(made) if !known.is_empty() => assert_eq!(id, Some(made), "{change:?}"),
        _ if sent.is_none() && !known.is_empty() => {
            assert_eq!(id, replay.id_of(number), "{change:?}");
        }
        _ => {}
    }
    if let Some(made) = change.outcome.made {
        assert!(known.contains(&made), "{change:?}: {known:?}");
    }
}

// S-103 S-106
#[test]
fn replay_restores_names_and_contents_after_a_power_loss() {
    let whole = (0..1000).filter(|seed| is_whole_again(World::new(*seed), *seed, 1)).count();
    assert!(whole > 600, "too many say nothing: {whole}");
}

// S-103
#[test]
fn interrupted_replay_is_repeated() {
    let whole = (0..300).filter(|seed| is_whole_again(World::new(*seed), *seed, 3)).count();
    assert!(whole > 180, "too many say nothing: {whole}");
}

#[test]
fn nothing_is_sent_after_changes_by_others() {
    let mut world = World::new(1);
    let changes = world.changes(&["mkdir d", "create d/f", "rename d/f d/g"]);
    let mut theirs = World::new(1);
    theirs.changes(&["mkdir d", "create d/g"]);
    let lost = theirs;
    let mut replay = Replay::new(lost.root(), 1000);
    changes.iter().for_each(|change| replay.learn(&change.record, change.outcome).unwrap());
    let mut found = lost.found(replay.probes().unwrap());
    // A file of another program.
    found.values_mut().for_each(|found| found.id.generation += 7);
    assert_eq!(replay.decide(&found), Err(ReplayFault::Server));
}

#[test]
fn rejected_change_is_not_repeated() {
    let mut world = World::new(1);
    let changes = world.changes(&["mkdir d", "mkdir d"]);
    assert!(changes[1].outcome.is_rejected);
    let lost = World::new(1);
    let mut replay = Replay::new(lost.root(), 1000);
    changes.iter().for_each(|change| replay.learn(&change.record, change.outcome).unwrap());
    replay.decide(&lost.found(replay.probes().unwrap())).unwrap();
    assert!(matches!(replay.step(&changes[0].record), Ok(ReplayStep::Send(1000, _))));
    assert_eq!(replay.step(&changes[1].record), Ok(ReplayStep::Skip));
}

#[test]
fn contradicting_changes_are_a_fault() {
    let mut world = World::new(1);
    let changes = world.changes(&["mkdir d", "create d/f"]);
    let mut replay = Replay::new(world.root(), 1000);
    replay.learn(&changes[0].record, changes[0].outcome).unwrap();
    let again = Record { number: 9, ..changes[0].record.clone() };
    assert_eq!(replay.learn(&again, changes[0].outcome), Err(ReplayFault::Contradiction));
}

#[test]
fn object_changed_after_the_latest_known_time_stays() {
    let mut world = World::new(1);
    let changes = world.changes(&["write k", "write old/a", "create new", "write new"]);
    let lost = World::new(1);
    let mut replay = Replay::new(lost.root(), 1000);
    changes.iter().for_each(|change| replay.learn(&change.record, change.outcome).unwrap());
    replay.decide(&lost.found(replay.probes().unwrap())).unwrap();
    let mut targets = lost.found(replay.targets());
    assert_eq!(targets.len(), 2);
    targets.values_mut().for_each(|found| found.changed = if found.id == lost.id_of("k") { 8 } else { 7 });
    replay.compare(&targets, 7);
    let steps: Vec<ReplayStep> = changes.iter().map(|change| replay.step(&change.record).unwrap()).collect();
    assert!(matches!(steps[0], ReplayStep::Quarantine(_)), "{steps:?}");
    assert!(steps[1..].iter().all(|step| matches!(step, ReplayStep::Send(..))), "{steps:?}");
}

// S-103 S-102
#[test]
fn object_created_before_the_journal_is_known_by_path() {
    let mut world = World::new(1);
    let changes = world.changes(&["mkdir d", "create d/f"]);
    let mut lost = World::new(1);
    lost.changes(&["mkdir d"]);
    let (_, mut request) = Request::decode(changes[1].record.body.clone()).unwrap();
    request.ids_mut().into_iter().flatten().for_each(|id| *id = FileId::provisional(1));
    let record = Record { number: 2, body: request.encode(NOTAG).to_body() };
    let mut replay = Replay::new(lost.root(), 1000);
    replay.learn(&record, ChangeOutcome::default()).unwrap();
    replay.decide(&lost.found(replay.probes().unwrap())).unwrap();
    replay.compare(&lost.found(replay.targets()), u64::MAX);
    let Ok(ReplayStep::Send(1000, mut request)) = replay.step(&record) else { panic!("no request") };
    let dir = request.ids_mut().into_iter().flatten().next().copied();
    assert_eq!(dir, Some(lost.id_of("d")));
    // A creation within the journal must be in the journal.
    let mut replay = Replay::new(lost.root(), 1000);
    replay
        .learn(
            &Record { number: 1, ..record.clone() },
            ChangeOutcome { is_answered: true, is_rejected: true, ..ChangeOutcome::default() },
        )
        .unwrap();
    assert_eq!(
        replay.learn(&record, ChangeOutcome { is_answered: true, ..ChangeOutcome::default() }),
        Err(ReplayFault::Contradiction)
    );
}

// S-103
#[test]
fn removed_file_of_unknown_id_differs_from_the_next_one_of_its_name() {
    // As sqlite does with its rollback journal. Its disk has nothing of it, or all.
    let texts = ["remove k", "open k", "write k", "write k"];
    for done in [&[][..], &texts[..2]] {
        let mut world = World::new(1);
        let changes = world.changes(&texts);
        let mut lost = World::new(1);
        lost.changes(done);
        let mut replay = Replay::new(lost.root(), 1000);
        // No change was answered, and none tells an id of the server.
        for change in &changes {
            let (_, mut request) = Request::decode(change.record.body.clone()).unwrap();
            if change.record.number > 2 {
                request.ids_mut().into_iter().flatten().for_each(|id| *id = FileId::provisional(2));
            }
            let record = Record { body: request.encode(NOTAG).to_body(), ..change.record.clone() };
            replay.learn(&record, ChangeOutcome::default()).unwrap();
        }
        replay.decide(&lost.found(replay.probes().unwrap())).unwrap();
        replay.compare(&lost.found(replay.targets()), u64::MAX);
        for change in &changes {
            if let ReplayStep::Send(number, request) = replay.step(&change.record).unwrap() {
                lost.send(number, *request).unwrap();
            }
        }
        assert_eq!(lost.contents(), world.contents(), "{done:?}");
    }
}

// S-103
#[test]
fn names_that_many_files_had_in_turn_are_restored_without_any_reply() {
    let whole = (0..1000).filter(|seed| is_whole_again(World::crowded(*seed), *seed, 2)).count();
    assert!(whole > 600, "too many prove nothing: {whole}");
}

// S-100
#[test]
fn contents_that_a_sync_acknowledged_are_not_sent_again() {
    let mut world = World::new(1);
    let changes = world.changes(&["write k", "cut k", "append k", "attribute k", "write old/a", "write k"]);
    let mut replay = Replay::new(world.root(), 1000).with_synced([(world.id_of("k"), 6)].into());
    changes.iter().for_each(|change| replay.learn(&change.record, change.outcome).unwrap());
    replay.decide(&world.found(replay.probes().unwrap())).unwrap();
    replay.compare(&world.found(replay.targets()), u64::MAX);
    let steps: Vec<ReplayStep> = changes.iter().map(|change| replay.step(&change.record).unwrap()).collect();
    assert_eq!(steps[..3], [ReplayStep::Skip, ReplayStep::Skip, ReplayStep::Skip]);
    assert!(steps[3..].iter().all(|step| matches!(step, ReplayStep::Send(..))), "{steps:?}");
}

// S-103
#[test]
fn unreported_creation_is_not_the_object_it_replaces() {
    // Its disk has nothing of it, and `k` is the file that was there; or all of it.
    for done in [&[][..], &["spill n", "rename n k"]] {
        let mut world = World::new(1);
        let mut changes = world.changes(&["spill n", "rename n k"]);
        changes.iter_mut().for_each(|change| change.outcome = ChangeOutcome::default());
        let mut lost = World::new(1);
        lost.changes(done);
        let mut replay = Replay::new(lost.root(), 1000);
        changes.iter().for_each(|change| replay.learn(&change.record, change.outcome).unwrap());
        replay.decide(&lost.found(replay.probes().unwrap())).unwrap();
        replay.compare(&lost.found(replay.targets()), u64::MAX);
        for change in &changes {
            let Ok(ReplayStep::Send(number, request)) = replay.step(&change.record) else {
                panic!("{change:?}")
            };
            lost.send(number, *request).unwrap();
        }
        assert_eq!(lost.contents(), world.contents(), "{done:?}");
    }
}

/// Returns the steps for changes of which the disk has none, where another program has created `k` since.
fn steps_beside_another_file(texts: &[&str], answered: usize) -> Vec<ReplayStep> {
    let mut world = World::new(1);
    let mut changes = world.changes(texts);
    changes.iter_mut().skip(answered).for_each(|change| change.outcome = ChangeOutcome::default());
    let lost = World::new(1);
    let mut replay = Replay::new(lost.root(), 1000);
    changes.iter().for_each(|change| replay.learn(&change.record, change.outcome).unwrap());
    let theirs = lost.id_of("k");
    let later = |mut found: BTreeMap<TreePath, ObjectStat>| {
        found.values_mut().for_each(|found| found.changed = if found.id == theirs { 8 } else { 7 });
        found
    };
    replay.decide(&later(lost.found(replay.probes().unwrap()))).unwrap();
    replay.compare(&later(lost.found(replay.targets())), 7);
    changes.iter().map(|change| replay.step(&change.record).unwrap()).collect()
}

// S-103
#[test]
fn objects_put_there_by_others_are_not_removed_replaced_or_moved() {
    let is_sent = |step: &ReplayStep| matches!(step, ReplayStep::Send(..));
    let sent = |texts: &[&str], answered: usize| -> Vec<bool> {
        steps_beside_another_file(texts, answered).iter().map(is_sent).collect()
    };
    assert_eq!(sent(&["remove k"], 1), [false]);
    assert_eq!(sent(&["remove k"], 0), [false], "nor where nobody knows whether it was done");
    assert_eq!(sent(&["rename old/a k", "remove old"], 2), [false, true]);
    assert_eq!(sent(&["rename k old/a"], 1), [false]);
    // The file is not created in its place, and its contents are not written to the other file.
    assert_eq!(sent(&["remove k", "create k", "write k", "create n"], 4), [false, false, false, true]);
}

/// Returns the steps for changes of which the disk has these, if it was mounted since and has set the times of `k`. `elsewhere`: the
/// times are not those of a truncation.
fn steps_after_mount(texts: &[&str], done: &[&str], elsewhere: bool) -> Vec<ReplayStep> {
    let mut world = World::new(1);
    let changes = world.changes(texts);
    let mut lost = World::new(1);
    let k = lost.id_of("k");
    lost.changes(done);
    let mut replay = Replay::new(lost.root(), 1000);
    changes.iter().for_each(|change| replay.learn(&change.record, change.outcome).unwrap());
    let mounted = |mut found: BTreeMap<TreePath, ObjectStat>| {
        for found in found.values_mut().filter(|found| found.id == k) {
            (found.changed, found.modified) = (8, if elsewhere { 6 } else { 8 });
        }
        found
    };
    replay.decide(&mounted(lost.found(replay.probes().unwrap()))).unwrap();
    replay.compare(&mounted(lost.found(replay.targets())), 7);
    changes.iter().map(|change| replay.step(&change.record).unwrap()).collect()
}

// S-131
#[test]
fn truncation_that_the_disk_completes_when_it_is_mounted_is_own() {
    let all_sent = |steps: &[ReplayStep]| steps.iter().all(|step| matches!(step, ReplayStep::Send(..)));
    let texts = ["cut k 0", "write k", "rename k n"];
    for done in [&[][..], &["cut k 0"], &["cut k 0", "rename k n"]] {
        let steps = steps_after_mount(&texts, done, false);
        let sent = &steps[..if done.len() == 2 { 2 } else { 3 }];
        assert!(all_sent(sent), "{done:?}: {steps:?}");
        let others = steps_after_mount(&texts, done, true);
        assert!(matches!(others[1], ReplayStep::Quarantine(_)), "{done:?}: {others:?}");
    }
    let steps = steps_after_mount(&texts, &["write k"], false);
    assert!(matches!(steps[1], ReplayStep::Quarantine(_)), "another size: {steps:?}");
}

// S-103
#[test]
fn object_known_by_id_is_renamed_despite_changed_contents() {
    for answered in [0, 3] {
        let steps = steps_beside_another_file(&["write k", "rename k old/a", "create k"], answered);
        assert!(matches!(steps[0], ReplayStep::Quarantine(_)), "{steps:?}");
        assert!(steps[1..].iter().all(|step| matches!(step, ReplayStep::Send(..))), "{steps:?}");
    }
}

// S-103 S-105
#[test]
fn file_with_two_old_names_is_restored() {
    let whole = (0..600).filter(|seed| is_whole_again(World::with_twins(*seed), *seed, 1)).count();
    assert!(whole > 400, "too many say nothing: {whole}");
}

// S-105
#[test]
fn write_under_a_removed_name_reaches_the_other_name() {
    for rest in [&["remove old/k"][..], &["create n", "rename n old/k"]] {
        let mut world = World::with_twins(1);
        let mut changes = world.changes(&[&["write old/k", "attribute old/k"], rest].concat());
        // The disk has the names without the contents.
        let mut lost = World::with_twins(1);
        lost.changes(rest);
        changes.iter_mut().for_each(|change| change.outcome.offset = None);
        let mut replay = Replay::new(lost.root(), 1000);
        changes.iter().for_each(|change| replay.learn(&change.record, ChangeOutcome::default()).unwrap());
        replay.decide(&lost.found(replay.probes().unwrap())).unwrap();
        let wanted = replay.unreachable();
        assert_eq!(wanted, [lost.id_of("k")].into());
        replay.compare(&lost.found(lost.paths_of(&wanted)), u64::MAX);
        for change in &changes {
            if let ReplayStep::Send(number, request) = replay.step(&change.record).unwrap() {
                lost.send(number, *request).unwrap();
            }
        }
        assert_eq!(lost.contents(), world.contents(), "{rest:?}");
    }
}

// S-105
#[test]
fn two_names_turn_out_to_be_one_file() {
    let mut world = World::with_twins(1);
    // The last write shows which file the rename moves.
    let changes = world.changes(&["write k", "rename old/k new", "write new"]);
    let mut lost = World::with_twins(1);
    let mut replay = Replay::new(lost.root(), 1000);
    changes.iter().for_each(|change| replay.learn(&change.record, change.outcome).unwrap());
    replay.decide(&lost.found(replay.probes().unwrap())).unwrap();
    replay.compare(&lost.found(replay.targets()), u64::MAX);
    for change in &changes {
        let Ok(ReplayStep::Send(number, request)) = replay.step(&change.record) else { panic!("{change:?}") };
        lost.send(number, *request).unwrap();
    }
    assert_eq!(lost.contents(), world.contents());
}

// S-103 S-105
#[test]
fn unanswered_changes_by_a_second_old_name_are_sent() {
    let steps_after = |edit: fn(&mut Vec<Change>)| {
        let mut world = World::with_twins(1);
        let mut changes = world.changes(&["write old/k", "write k", "write old/k", "cut k"]);
        changes.iter_mut().for_each(|change| change.outcome = ChangeOutcome::default());
        edit(&mut changes);
        let lost = World::with_twins(1);
        let mut replay = Replay::new(lost.root(), 1000);
        changes.iter().for_each(|change| replay.learn(&change.record, change.outcome).unwrap());
        replay.decide(&lost.found(replay.probes().unwrap())).unwrap();
        replay.compare(&lost.found(replay.targets()), u64::MAX);
        changes.iter().map(|change| replay.step(&change.record).unwrap()).collect::<Vec<ReplayStep>>()
    };
    // The id identifies the file.
    let all = steps_after(|_| {});
    assert!(all.iter().all(|step| matches!(step, ReplayStep::Send(..))), "{all:?}");
    // The first change names no id; a later one shows that both names are of one file.
    let some = steps_after(|changes| {
        let (_, request) = Request::decode(changes[0].record.body.clone()).unwrap();
        let Request::Put(mut put) = request else { panic!("{request:?}") };
        put.target.id = None;
        changes[0].record.body = Request::Put(put).encode(NOTAG).to_body();
    });
    assert!(some.iter().all(|step| matches!(step, ReplayStep::Send(..))), "{some:?}");
}
