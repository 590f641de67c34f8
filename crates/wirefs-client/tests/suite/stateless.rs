//! Directories that are read without being opened: what is asked of the server, and what a reader sees while names come and go.

mod late;

use crate::alone::{Alone, KernelStep, got, stat};
use crate::config;
use crate::deeds::{create, entry, handle};
use crate::world::{STEADY, World};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Caller, Invalidate, Listed, ROOT, STATELESS, TreeNodeId};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::get::GotMode;
use wirefs_op::message::remove::Rremove;
use wirefs_op::{Errno, Kind, Reply, Stat};

const NOTHING: [&str; 0] = [];
const NAMES: usize = 40;

/// Room for about six entries.
fn readdir(node: TreeNodeId, offset: u64) -> Call<'static> {
    Call::Readdir { node, handle: STATELESS, offset, bytes_max: 1000, entry_bytes: 152, with_stats: true }
}

fn name(number: usize) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

/// Client 0 has made files in a directory; client 1 knows only the directory.
fn world(mode: &str, files: usize) -> (World, TreeNodeId, TreeNodeId) {
    let mut world = World::new(1, config(mode), 2, STEADY);
    let dir = entry(world.ask(0, Call::Mkdir { parent: ROOT, name: b"d", mode: 0o755, umask: 0 })).node;
    for number in 0..files {
        let made = world.ask(0, create(dir, &name(number)));
        world.close(0, entry(made.clone()).node, handle(made));
    }
    world.settle();
    let theirs = world.lookup(1, ROOT, b"d");
    world.settle();
    world.seats[1].sent.clear();
    world.seats[1].invalidated.clear();
    (world, dir, theirs)
}

fn part(answer: Answer) -> Vec<Listed> {
    match answer {
        Answer::Listing(listed) => listed,
        other => panic!("no listing: {other:?}"),
    }
}

/// Reads on from there to the end: how often each name comes, and the answer that said that it is the end.
fn rest(world: &mut World, dir: TreeNodeId, mut offset: u64) -> (BTreeMap<Vec<u8>, usize>, Answer) {
    let mut seen = BTreeMap::new();
    loop {
        match world.ask(1, readdir(dir, offset)) {
            Answer::Listing(listed) if !listed.is_empty() => {
                offset = listed.last().unwrap().next;
                listed.into_iter().for_each(|listed| *seen.entry(listed.name).or_default() += 1);
            }
            end => return (seen, end),
        }
    }
}

fn all(world: &mut World, dir: TreeNodeId) -> BTreeMap<Vec<u8>, usize> {
    rest(world, dir, 0).0
}

#[test]
fn a_directory_that_is_not_opened_is_asked_for_once() {
    // So many that they do not come along with the lookup.
    let many = 1500;
    let (mut world, _, dir) = world("lease", many);
    let (seen, end) = rest(&mut world, dir, 0);
    assert!(seen.len() == many + 2 && seen.values().all(|count| *count == 1), "{seen:?}");
    assert_eq!(end, Answer::Listing(Vec::new()), "the kernel may keep it");
    assert_eq!(world.seats[1].sent, ["Get"]);
    world.settle();
    world.seats[1].sent.clear();
    assert_eq!(all(&mut world, dir), seen);
    assert_eq!(world.seats[1].sent, NOTHING);
}

// S-30
#[test]
fn what_stays_is_listed_once_while_names_come_and_go_here_and_elsewhere() {
    let (mut world, theirs, dir) = world("lease", NAMES);
    let first = part(world.ask(1, readdir(dir, 0)));
    let (last, shown) = (first.last().unwrap().next, first.len());
    // The one that was shown last, the next, and others; and new ones before and behind.
    for number in [shown - 3, shown - 2, 20] {
        assert_eq!(world.ask(1, Call::Unlink { parent: dir, name: &name(number) }), Answer::Done);
    }
    world.ask(1, create(dir, b"000-new"));
    world.ask(0, create(theirs, b"020-new"));
    assert_eq!(world.ask(0, Call::Unlink { parent: theirs, name: &name(30) }), Answer::Done);
    let (mut seen, _) = rest(&mut world, dir, last);
    first.into_iter().for_each(|listed| *seen.entry(listed.name).or_default() += 1);
    let gone = [shown - 3, shown - 2, 20, 30];
    for number in (0..NAMES).filter(|number| !gone.contains(number)) {
        assert_eq!(seen.get(&name(number)), Some(&1), "{number}: {seen:?}");
    }
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    // From the beginning it is as it is now.
    let now = all(&mut world, dir);
    assert_eq!(now.len(), NAMES + 2 - gone.len() + 2);
    assert!(now.contains_key(b"000-new".as_slice()) && now.contains_key(b"020-new".as_slice()));
}

/// Others change the directory, and a program lists it, until the readings of before are not known any more.
fn list_many_times(world: &mut World, theirs: TreeNodeId, dir: TreeNodeId) {
    for round in 0..1100 {
        let made = world.ask(0, create(theirs, format!("new-{round}").as_bytes()));
        world.close(0, entry(made.clone()).node, handle(made));
        assert_eq!(
            world.ask(0, Call::Unlink { parent: theirs, name: format!("new-{round}").as_bytes() }),
            Answer::Done
        );
        world.settle();
        assert!(all(world, dir).len() > NAMES / 2);
        // The next call shows that the thread has come to the end.
        world.ask(1, Call::Getattr { node: dir, handle: None });
    }
}

// S-159
#[test]
fn a_reading_continues_after_many_others_ended() {
    let (mut world, theirs, dir) = world("lease", NAMES);
    let first = part(world.ask(1, readdir(dir, 0)));
    let (last, shown) = (first.last().unwrap().next, first.len());
    let (mut seen, _) = rest(&mut world, dir, last);
    list_many_times(&mut world, theirs, dir);
    // As after a seekdir, and as after the kernel has dropped its listing.
    let (again, end) = rest(&mut world, dir, last);
    assert_ne!(end, Answer::Fail(Errno::Stale));
    assert_eq!(again, seen);
    // Names come and go, also before the position.
    for number in [0, shown - 1, 30] {
        assert_eq!(world.ask(0, Call::Unlink { parent: theirs, name: &name(number) }), Answer::Done);
    }
    world.ask(0, create(theirs, b"000-new"));
    world.settle();
    let (again, _) = rest(&mut world, dir, last);
    for gone in [shown - 1, 30] {
        seen.remove(&name(gone));
    }
    seen.insert(b"000-new".to_vec(), 1);
    assert_eq!(again, seen);
}

// S-159
#[test]
fn reading_that_ended_twice_lists_each_name_once() {
    let (mut world, theirs, dir) = world("lease", NAMES);
    let mut listed = part(world.ask(1, readdir(dir, 0)));
    for _ in 0..2 {
        let last = listed.last().unwrap().next;
        rest(&mut world, dir, last);
        list_many_times(&mut world, theirs, dir);
        listed.extend(part(world.ask(1, readdir(dir, last))));
    }
    let mut seen = BTreeMap::new();
    listed.iter().for_each(|listed| *seen.entry(listed.name.clone()).or_insert(0) += 1);
    let (others, _) = rest(&mut world, dir, listed.last().unwrap().next);
    others.into_iter().for_each(|(name, times)| *seen.entry(name).or_insert(0) += times);
    assert_eq!(seen.len(), NAMES + 2, "{seen:?}");
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
}

// S-159
#[test]
fn a_continued_reading_is_not_read_from_its_beginning() {
    let (mut world, theirs, dir) = world("lease", NAMES);
    let first = part(world.ask(1, readdir(dir, 0)));
    rest(&mut world, dir, first.last().unwrap().next);
    list_many_times(&mut world, theirs, dir);
    let (again, _) = rest(&mut world, dir, first.last().unwrap().next);
    assert_eq!(again.len(), NAMES + 2 - first.len());
    assert_eq!(all(&mut world, dir).len(), NAMES + 2);
    world.settle();
    assert_eq!(all(&mut world, dir).len(), NAMES + 2);
}

#[test]
fn readers_beside_each_other_and_positions_that_are_gone_back_to_do_not_disturb_each_other() {
    let (mut world, _, dir) = world("lease", NAMES);
    let first = part(world.ask(1, readdir(dir, 0)));
    let other = part(world.ask(1, readdir(dir, 0)));
    let places = |part: &[Listed]| -> Vec<(Vec<u8>, u64)> {
        part.iter().map(|listed| (listed.name.clone(), listed.next)).collect()
    };
    assert_eq!(places(&first), places(&other), "readers of the same listing share it");
    let middle = first.last().unwrap().next;
    let second = part(world.ask(1, readdir(dir, middle)));
    let (seen, _) = rest(&mut world, dir, middle);
    world.ask(1, create(dir, b"new"));
    let newer = part(world.ask(1, readdir(dir, 0)));
    assert_ne!(newer.last().unwrap().next, middle);
    // `seekdir`: the same entries again, also behind the end of another reader.
    let places =
        |listed: Vec<Listed>| listed.into_iter().map(|listed| (listed.name, listed.next)).collect::<Vec<_>>();
    assert_eq!(places(part(world.ask(1, readdir(dir, middle)))), places(second));
    assert_eq!(rest(&mut world, dir, middle).0, seen);
    let one = first[3].next;
    assert_eq!(part(world.ask(1, readdir(dir, one)))[0].name, first[4].name);
}

// S-31
#[test]
fn a_position_past_the_end_of_a_listing_is_stale_and_not_the_end() {
    let (mut world, _, dir) = world("lease", NAMES);
    let first = part(world.ask(1, readdir(dir, 0)));
    rest(&mut world, dir, first.last().unwrap().next);
    // The positions of a later listing are far beyond these: `seekdir` to a random number below those comes here.
    let past = NAMES as u64 + 3;
    assert_eq!(world.ask(1, readdir(dir, past)), Answer::Fail(Errno::Stale));
    assert_eq!(world.ask(1, readdir(dir, past + 100_000)), Answer::Fail(Errno::Stale));
    assert_eq!(all(&mut world, dir).len(), NAMES + 2);
}

// S-32
#[test]
fn anothers_change_has_the_kernel_drop_what_it_keeps_and_no_more() {
    let (mut world, theirs, dir) = world("lease", 3);
    let listing = Invalidate::Listing { node: dir };
    all(&mut world, dir);
    world.settle();
    world.ask(0, create(theirs, b"new"));
    assert_eq!(world.seats[1].invalidated.iter().filter(|what| **what == listing).count(), 1);
    // In the midst of a listing: at its end.
    world.settle();
    world.seats[1].invalidated.clear();
    let first = part(world.ask(1, readdir(dir, 0)));
    world.ask(0, create(theirs, b"newer"));
    assert!(!world.seats[1].invalidated.contains(&listing), "what is on its way would come behind it");
    let (_, end) = rest(&mut world, dir, first.last().unwrap().next);
    assert_eq!(end, Answer::Listing(Vec::new()));
    assert_eq!(world.seats[1].invalidated.iter().filter(|what| **what == listing).count(), 1);
    assert_eq!(all(&mut world, dir).len(), 5 + 2);
}

#[test]
fn what_nobody_promises_is_not_kept() {
    let mut world = World::without_leases(1, config("lease"), STEADY);
    let made = world.ask(0, create(ROOT, b"f"));
    world.close(0, entry(made.clone()).node, handle(made));
    world.settle();
    for _ in 0..3 {
        world.seats[0].invalidated.clear();
        let listed = part(world.ask(0, readdir(ROOT, 0)));
        let last = listed.last().unwrap().next;
        assert_eq!(world.ask(0, readdir(ROOT, last)), Answer::Listing(Vec::new()));
        assert_eq!(world.seats[0].invalidated, [Invalidate::Listing { node: ROOT }]);
    }
}

#[test]
fn a_directory_that_is_gone_is_an_error_and_not_empty() {
    let (mut world, theirs, dir) = world("lease", 1);
    assert_eq!(world.ask(0, Call::Unlink { parent: theirs, name: &name(0) }), Answer::Done);
    assert_eq!(world.ask(0, Call::Rmdir { parent: ROOT, name: b"d" }), Answer::Done);
    world.pass(Duration::from_secs(1));
    assert!(matches!(world.ask(1, readdir(dir, 0)), Answer::Fail(_)));
}

// S-32
#[test]
fn a_change_whose_caller_was_killed_has_the_kernel_drop_what_it_keeps() {
    let (mut world, _, dir) = world("lease", 3);
    all(&mut world, dir);
    world.settle();
    world.seats[1].invalidated.clear();
    let call = world.call(1, Call::Unlink { parent: dir, name: &name(1) });
    let now = world.now;
    assert!(world.seats[1].client.abandon(now, call, Errno::Interrupted));
    world.outputs(1);
    world.settle();
    assert!(world.seats[1].invalidated.contains(&Invalidate::Listing { node: dir }));
    assert_eq!(all(&mut world, dir).len(), 2 + 2);
}

/// An empty directory is listed to its end by a thread that is known; the answer to that.
fn listed_empty(alone: &mut Alone) -> Answer {
    let ask = |alone: &mut Alone, offset, is_asked: bool| {
        let (now, id) = (alone.now, CallId(1 << 32 | offset));
        alone.client.call(now, id, Caller { uid: 0, gid: 0, pid: 5 }, readdir(ROOT, offset));
        alone.outputs();
        if is_asked {
            let tag = alone.next();
            let root = Stat { leased: true, ..stat(1, Kind::Directory, 0) };
            alone.reply(tag, &got(GotMode::LAST, Some(root), b"")).unwrap();
        }
        alone.answer(id).unwrap().clone()
    };
    let told = part(ask(alone, 0, true));
    ask(alone, told.last().unwrap().next, false)
}

// S-32
#[test]
fn a_first_listing_that_overtakes_a_change_whose_caller_was_killed_is_not_kept() {
    let mut alone = Alone::leased();
    let unlink = alone.call(Call::Unlink { parent: ROOT, name: b"f" });
    let tag = alone.next();
    let now = alone.now;
    assert!(alone.client.abandon(now, unlink, Errno::Interrupted));
    alone.outputs();
    alone.kernel_steps.clear();
    assert_eq!(listed_empty(&mut alone), Answer::Listing(Vec::new()), "the kernel keeps it");
    alone.reply(tag, &Reply::Remove(Rremove { dir: None })).unwrap();
    assert!(
        alone.kernel_steps.contains(&KernelStep::Forget(Invalidate::Listing { node: ROOT })),
        "{:?}",
        alone.kernel_steps
    );
}

// S-32
#[test]
fn a_change_of_unknown_outcome_leaves_the_kernel_the_pages_that_it_gathers_in() {
    let mut alone = Alone::leased();
    assert_eq!(listed_empty(&mut alone), Answer::Listing(Vec::new()));
    alone.call(Call::Unlink { parent: ROOT, name: b"f" });
    alone.next();
    alone.kernel_steps.clear();
    alone.lost();
    assert!(
        alone.kernel_steps.contains(&KernelStep::Forget(Invalidate::Listing { node: ROOT })),
        "{:?}",
        alone.kernel_steps
    );
    assert!(alone.kernel_steps.contains(&KernelStep::Forget(Invalidate::Node {
        node: ROOT,
        offset: -1,
        length: 0
    })));
    assert!(!alone.kernel_steps.contains(&KernelStep::Forget(Invalidate::Node {
        node: ROOT,
        offset: 0,
        length: 0
    })));
}

// S-30
#[test]
fn a_listing_goes_on_where_it_was_when_its_connection_broke() {
    let (mut world, _, dir) = world("lease", 6000);
    let call = world.call(1, readdir(dir, 0));
    let first = part(world.wait(1, call));
    world.cut(1, Duration::from_millis(10), true);
    let (mut seen, _) = rest(&mut world, dir, first.last().unwrap().next);
    first.into_iter().for_each(|listed| *seen.entry(listed.name).or_default() += 1);
    assert_eq!(seen.len(), 6000 + 2);
    assert!(seen.values().all(|count| *count == 1));
}

// S-31
#[test]
fn what_the_server_refuses_fails_when_it_is_read() {
    let mut alone = Alone::new();
    let call = alone.call(readdir(ROOT, 0));
    let tag = alone.next();
    alone.reply(tag, &Reply::Error(Rerror::from(Errno::AccessDenied))).unwrap();
    assert_eq!(alone.answer(call), Some(&Answer::Fail(Errno::AccessDenied)));
    // A position in what was never read.
    let call = alone.call(readdir(ROOT, 17));
    assert_eq!(alone.answer(call), Some(&Answer::Fail(Errno::Stale)));
}

// S-31
#[test]
fn repeated_removal_of_the_first_of_many_entries_fills_no_memory() {
    let many = 1500;
    let (mut world, _, dir) = world("lease", many);
    let lister = part(world.ask(1, readdir(ROOT, 0)));
    for number in 0..300 {
        let first = part(world.ask(1, readdir(dir, 0)));
        assert_eq!(world.ask(1, Call::Unlink { parent: dir, name: &first[2].name }), Answer::Done);
        let taken = world.seats[1].client.snapshot().memory.listings;
        assert!(taken <= 34 * 1024 * 1024, "{number}: {taken}");
    }
    // Who reads elsewhere goes on.
    let last = lister.last().unwrap().next;
    assert_eq!(world.ask(1, readdir(ROOT, last)), Answer::Listing(Vec::new()));
}
