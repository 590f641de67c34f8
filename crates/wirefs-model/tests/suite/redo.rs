//! Random changes of a tree whose machine loses power at some moment, and what is sent again then.

mod world;

use std::collections::BTreeMap;
use wirefs_journal::{Found, Record, Redo, Redone, Told, Unlike};
use wirefs_op::{FileId, NOTAG, Request, TreePath};
use world::{Change, World};

/// What was changed, what the disk kept of it, and what of the rest is done again; the first attempts end somewhere. False: it says
/// nothing.
fn is_whole_again(mut world: World, seed: u64, attempts: usize) -> bool {
    let mut changes = world.change(40);
    let Some(mut lost) = world.lose_power(&changes) else { return false };
    changes.retain(|change| change.is_journaled);
    let mut decided = Redo::new(lost.root(), 1000).with_synced(world.synced.clone());
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
    let others = lost.paths_of(&decided.lost());
    let targets = lost.found(decided.targets().into_iter().chain(others).collect());
    decided.compare(&targets, u64::MAX);
    let mut sent = BTreeMap::new();
    let mut redo = decided.clone();
    for attempt in 1..=attempts {
        redo = decided.clone();
        let all = if attempt == attempts { changes.len() } else { lost.below(changes.len()) };
        for change in changes.iter().take(all) {
            match redo.redo(&change.record).unwrap() {
                Redone::Nothing => {}
                Redone::Aside(_) => return false,
                Redone::Send(number, request) => {
                    sent.insert(change.record.number, number);
                    lost.send(number, *request)
                        .unwrap_or_else(|errno| panic!("seed {seed}: {errno} for {change:?}: {changes:#?}"));
                }
            }
        }
    }
    assert_eq!(lost.contents(), world.contents(), "seed {seed}: {changes:#?}");
    changes.iter().for_each(|change| is_found_again(&redo, change, sent.get(&change.record.number), &lost));
    true
}

/// A client that lives is told where the object of each change is, and its id, and knew what was made by the id that it is told.
fn is_found_again(redo: &Redo, change: &Change, sent: Option<&u64>, lost: &World) {
    let number = change.record.number;
    let Some(path) = redo.path_of(number) else { return };
    let found = lost.found([path.clone()].into());
    let id = found.get(&path).map(|found| found.id);
    assert!(id.is_some(), "{change:?} is said to be at {path:?}");
    let known = redo.known_as(number);
    match sent.and_then(|sent| lost.made_as(*sent)) {
        Some(made) if !known.is_empty() => assert_eq!(id, Some(made), "{change:?}"),
        _ if sent.is_none() && !known.is_empty() => {
            assert_eq!(id, redo.id_of(number), "{change:?}");
        }
        _ => {}
    }
    if let Some(made) = change.told.made {
        assert!(known.contains(&made), "{change:?}: {known:?}");
    }
}

// S-103 S-106
#[test]
fn whatever_a_disk_has_lost_of_names_and_contents_is_there_again() {
    let whole = (0..1000).filter(|seed| is_whole_again(World::new(*seed), *seed, 1)).count();
    assert!(whole > 600, "too many say nothing: {whole}");
}

// S-103
#[test]
fn an_attempt_that_did_not_end_is_made_again() {
    let whole = (0..300).filter(|seed| is_whole_again(World::new(*seed), *seed, 3)).count();
    assert!(whole > 180, "too many say nothing: {whole}");
}

// S-103
#[test]
fn a_removed_file_of_unknown_id_differs_from_the_next_one_of_its_name() {
    // As sqlite does with its rollback journal. Its disk has nothing of it, or all.
    let texts = ["remove k", "open k", "write k", "write k"];
    for done in [&[][..], &texts[..2]] {
        let mut world = World::new(1);
        let changes = world.changes(&texts);
        let mut lost = World::new(1);
        lost.changes(done);
        let mut redo = Redo::new(lost.root(), 1000);
        // No change was answered, and none tells an id of the server.
        for change in &changes {
            let (_, mut request) = Request::decode(change.record.body.clone()).unwrap();
            if change.record.number > 2 {
                request.ids_mut().into_iter().flatten().for_each(|id| *id = FileId::provisional(2));
            }
            let record = Record { body: request.encode(NOTAG).to_body(), ..change.record.clone() };
            redo.learn(&record, Told::default()).unwrap();
        }
        redo.decide(&lost.found(redo.probes().unwrap())).unwrap();
        redo.compare(&lost.found(redo.targets()), u64::MAX);
        for change in &changes {
            if let Redone::Send(number, request) = redo.redo(&change.record).unwrap() {
                lost.send(number, *request).unwrap();
            }
        }
        assert_eq!(lost.contents(), world.contents(), "{done:?}");
    }
}

// S-103
#[test]
fn names_that_many_files_had_in_turn_are_whole_again_though_no_change_was_answered() {
    let whole = (0..1000).filter(|seed| is_whole_again(World::crowded(*seed), *seed, 2)).count();
    assert!(whole > 600, "too many say nothing: {whole}");
}

// S-100
#[test]
fn contents_that_a_sync_acknowledged_are_not_sent_again() {
    let mut world = World::new(1);
    let changes = world.changes(&["write k", "cut k", "append k", "attribute k", "write old/a", "write k"]);
    let mut redo = Redo::new(world.root(), 1000).with_synced([(world.id_of("k"), 6)].into());
    changes.iter().for_each(|change| redo.learn(&change.record, change.told).unwrap());
    redo.decide(&world.found(redo.probes().unwrap())).unwrap();
    redo.compare(&world.found(redo.targets()), u64::MAX);
    let redone: Vec<Redone> = changes.iter().map(|change| redo.redo(&change.record).unwrap()).collect();
    assert_eq!(redone[..3], [Redone::Nothing, Redone::Nothing, Redone::Nothing]);
    assert!(redone[3..].iter().all(|redone| matches!(redone, Redone::Send(..))), "{redone:?}");
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

// S-103 S-102
#[test]
fn what_was_made_by_a_change_that_is_forgotten_is_known_by_its_path() {
    let mut world = World::new(1);
    let changes = world.changes(&["mkdir d", "create d/f"]);
    let mut lost = World::new(1);
    lost.changes(&["mkdir d"]);
    let (_, mut request) = Request::decode(changes[1].record.body.clone()).unwrap();
    request.ids_mut().into_iter().flatten().for_each(|id| *id = FileId::provisional(1));
    let record = Record { number: 2, body: request.encode(NOTAG).to_body() };
    let mut redo = Redo::new(lost.root(), 1000);
    redo.learn(&record, Told::default()).unwrap();
    redo.decide(&lost.found(redo.probes().unwrap())).unwrap();
    redo.compare(&lost.found(redo.targets()), u64::MAX);
    let Ok(Redone::Send(1000, mut request)) = redo.redo(&record) else { panic!("it is not sent") };
    let dir = request.ids_mut().into_iter().flatten().next().copied();
    assert_eq!(dir, Some(lost.id_of("d")));
    // One that is not forgotten, and not there, is nobody's.
    let mut redo = Redo::new(lost.root(), 1000);
    redo.learn(
        &Record { number: 1, ..record.clone() },
        Told { is_answered: true, is_refused: true, ..Told::default() },
    )
    .unwrap();
    assert_eq!(redo.learn(&record, Told { is_answered: true, ..Told::default() }), Err(Unlike::Journal));
}

// S-103
#[test]
fn what_was_made_and_never_told_is_not_taken_for_what_it_was_to_replace() {
    // Its disk has nothing of it, and `k` is the file that was there; or all of it.
    for done in [&[][..], &["spill n", "rename n k"]] {
        let mut world = World::new(1);
        let mut changes = world.changes(&["spill n", "rename n k"]);
        changes.iter_mut().for_each(|change| change.told = Told::default());
        let mut lost = World::new(1);
        lost.changes(done);
        let mut redo = Redo::new(lost.root(), 1000);
        changes.iter().for_each(|change| redo.learn(&change.record, change.told).unwrap());
        redo.decide(&lost.found(redo.probes().unwrap())).unwrap();
        redo.compare(&lost.found(redo.targets()), u64::MAX);
        for change in &changes {
            let Ok(Redone::Send(number, request)) = redo.redo(&change.record) else { panic!("{change:?}") };
            lost.send(number, *request).unwrap();
        }
        assert_eq!(lost.contents(), world.contents(), "{done:?}");
    }
}

/// What becomes of these changes, of which the disk has nothing, where what somebody else made has the name `k` since.
fn redone_beside_another(texts: &[&str], answered: usize) -> Vec<Redone> {
    let mut world = World::new(1);
    let mut changes = world.changes(texts);
    changes.iter_mut().skip(answered).for_each(|change| change.told = Told::default());
    let lost = World::new(1);
    let mut redo = Redo::new(lost.root(), 1000);
    changes.iter().for_each(|change| redo.learn(&change.record, change.told).unwrap());
    let theirs = lost.id_of("k");
    let later = |mut found: BTreeMap<TreePath, Found>| {
        found.values_mut().for_each(|found| found.changed = if found.id == theirs { 8 } else { 7 });
        found
    };
    redo.decide(&later(lost.found(redo.probes().unwrap()))).unwrap();
    redo.compare(&later(lost.found(redo.targets())), 7);
    changes.iter().map(|change| redo.redo(&change.record).unwrap()).collect()
}

// S-103
#[test]
fn what_somebody_else_has_put_there_since_is_neither_removed_nor_replaced_nor_moved() {
    let is_sent = |redone: &Redone| matches!(redone, Redone::Send(..));
    let sent = |texts: &[&str], answered: usize| -> Vec<bool> {
        redone_beside_another(texts, answered).iter().map(is_sent).collect()
    };
    assert_eq!(sent(&["remove k"], 1), [false]);
    assert_eq!(sent(&["remove k"], 0), [false], "nor where nobody knows whether it was done");
    assert_eq!(sent(&["rename old/a k", "remove old"], 2), [false, true]);
    assert_eq!(sent(&["rename k old/a"], 1), [false]);
    // What was to be made in its place is not made, and what was to be written to that is not written to the other.
    assert_eq!(sent(&["remove k", "create k", "write k", "create n"], 4), [false, false, false, true]);
}

// S-103
#[test]
fn what_is_known_by_its_number_gets_its_new_name_whoever_has_changed_its_contents() {
    for answered in [0, 3] {
        let redone = redone_beside_another(&["write k", "rename k old/a", "create k"], answered);
        assert!(matches!(redone[0], Redone::Aside(_)), "{redone:?}");
        assert!(redone[1..].iter().all(|redone| matches!(redone, Redone::Send(..))), "{redone:?}");
    }
}

// S-103 S-105
#[test]
fn a_file_that_had_two_names_before_the_first_change_is_whole_again() {
    let whole = (0..600).filter(|seed| is_whole_again(World::with_twins(*seed), *seed, 1)).count();
    assert!(whole > 400, "too many say nothing: {whole}");
}

// S-105
#[test]
fn what_was_changed_by_a_name_that_is_gone_reaches_the_file_by_its_other_name() {
    for rest in [&["remove old/k"][..], &["create n", "rename n old/k"]] {
        let mut world = World::with_twins(1);
        let mut changes = world.changes(&[&["write old/k", "attribute old/k"], rest].concat());
        // The disk has the names, and nothing of the contents.
        let mut lost = World::with_twins(1);
        lost.changes(rest);
        changes.iter_mut().for_each(|change| change.told.offset = None);
        let mut redo = Redo::new(lost.root(), 1000);
        changes.iter().for_each(|change| redo.learn(&change.record, Told::default()).unwrap());
        redo.decide(&lost.found(redo.probes().unwrap())).unwrap();
        let wanted = redo.lost();
        assert_eq!(wanted, [lost.id_of("k")].into());
        redo.compare(&lost.found(lost.paths_of(&wanted)), u64::MAX);
        for change in &changes {
            if let Redone::Send(number, request) = redo.redo(&change.record).unwrap() {
                lost.send(number, *request).unwrap();
            }
        }
        assert_eq!(lost.contents(), world.contents(), "{rest:?}");
    }
}

// S-105
#[test]
fn a_name_whose_file_turns_out_to_have_another_name_is_of_one_file_with_it() {
    let mut world = World::with_twins(1);
    // The rename does not tell which file it moves; the last write does.
    let changes = world.changes(&["write k", "rename old/k new", "write new"]);
    let mut lost = World::with_twins(1);
    let mut redo = Redo::new(lost.root(), 1000);
    changes.iter().for_each(|change| redo.learn(&change.record, change.told).unwrap());
    redo.decide(&lost.found(redo.probes().unwrap())).unwrap();
    redo.compare(&lost.found(redo.targets()), u64::MAX);
    for change in &changes {
        let Ok(Redone::Send(number, request)) = redo.redo(&change.record) else { panic!("{change:?}") };
        lost.send(number, *request).unwrap();
    }
    assert_eq!(lost.contents(), world.contents());
}

// S-103 S-105
#[test]
fn changes_by_a_second_old_name_that_were_never_answered_are_not_passed_over() {
    let redone = |edit: fn(&mut Vec<Change>)| {
        let mut world = World::with_twins(1);
        let mut changes = world.changes(&["write old/k", "write k", "write old/k", "cut k"]);
        changes.iter_mut().for_each(|change| change.told = Told::default());
        edit(&mut changes);
        let lost = World::with_twins(1);
        let mut redo = Redo::new(lost.root(), 1000);
        changes.iter().for_each(|change| redo.learn(&change.record, change.told).unwrap());
        redo.decide(&lost.found(redo.probes().unwrap())).unwrap();
        redo.compare(&lost.found(redo.targets()), u64::MAX);
        changes.iter().map(|change| redo.redo(&change.record).unwrap()).collect::<Vec<Redone>>()
    };
    // Whoever says the number says which file it is.
    let all = redone(|_| {});
    assert!(all.iter().all(|redone| matches!(redone, Redone::Send(..))), "{all:?}");
    // The first change names no id; a later one shows that both names are of one file.
    let some = redone(|changes| {
        let (_, request) = Request::decode(changes[0].record.body.clone()).unwrap();
        let Request::Put(mut put) = request else { panic!("{request:?}") };
        put.target.id = None;
        changes[0].record.body = Request::Put(put).encode(NOTAG).to_body();
    });
    assert!(some.iter().all(|redone| matches!(redone, Redone::Send(..))), "{some:?}");
}
