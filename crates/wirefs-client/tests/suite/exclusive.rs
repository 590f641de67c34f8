//! Exclusive creations beside programs at the server.

use crate::ahead::{alone, at_once, journaling, lone};
use crate::deeds::{READ_WRITE, create, entry, getattr, handle, is_absent};
use crate::world::{Delays, STEADY, World};
use std::time::Duration;
use wirefs_client::Config;
use wirefs_client::call::{Answer, Call, OpenHow, ROOT, TreeNodeId};
use wirefs_op::message::attach::Watch;
use wirefs_op::{Errno, Kind, Timestamp};

const MINUTE: Duration = Duration::from_secs(60);
const NOREPLACE: u32 = 1;

/// Does something that is to wait for the server.
fn after_a_round_trip<R>(world: &mut World, deed: impl FnOnce(&mut World) -> R) -> R {
    let before = world.now;
    let result = deed(world);
    assert!(world.now > before, "it did not wait for the server");
    result
}

fn mkdir(parent: TreeNodeId, name: &[u8]) -> Call<'_> {
    Call::Mkdir { parent, name, mode: 0o755, umask: 0 }
}

/// Creates names in each exclusive way; whether each succeeded.
fn in_each_exclusive_mode(
    world: &mut World,
    dir: TreeNodeId,
    file: TreeNodeId,
    names: [&[u8]; 5],
) -> Vec<bool> {
    let [made, opened, symlink, link, renamed] = names;
    world.file(0, dir, b"plain", b"");
    let mut all = Vec::new();
    for call in [
        mkdir(dir, made),
        create(dir, opened),
        Call::Symlink { parent: dir, name: symlink, target: b"pid" },
        Call::Link { node: file, parent: dir, name: link },
        Call::Rename { parent: dir, name: b"plain", to_parent: dir, to_name: renamed, flags: NOREPLACE },
    ] {
        let answer = world.ask(0, call);
        if let Answer::Created(entry, handle, _) = &answer {
            world.close(0, entry.node, *handle);
        }
        all.push(!matches!(answer, Answer::Fail(_)));
    }
    all
}

// S-51
#[test]
fn lock_names_are_created_at_the_server_in_each_exclusive_mode_and_others_are_not() {
    let mut world = lone();
    let dir = world.directory(0, ROOT, b"d");
    let file = world.file(0, dir, b"f", b"");
    let all =
        at_once(&mut world, |world| in_each_exclusive_mode(world, dir, file, [b"a", b"b", b"c", b"d", b"e"]));
    assert_eq!(all, [true; 5]);
    for call in [
        mkdir(dir, b"a.lock"),
        create(dir, b"b.lock"),
        Call::Symlink { parent: dir, name: b".#c", target: b"pid" },
        Call::Link { node: file, parent: dir, name: b"d.lock" },
        Call::Rename { parent: dir, name: b"e", to_parent: dir, to_name: b"e~", flags: NOREPLACE },
    ] {
        let answer = after_a_round_trip(&mut world, |world| world.ask(0, call));
        assert!(!matches!(answer, Answer::Fail(_)), "{answer:?}");
    }
    // What excludes nobody does not wait: another mode of opening, a rename, a removal.
    at_once(&mut world, |world| {
        let how = OpenHow { exclusive: false, ..READ_WRITE };
        let call = Call::Create { parent: dir, name: b"g.lock", mode: 0o644, umask: 0, how };
        let created = world.ask(0, call);
        world.close(0, entry(created.clone()).node, handle(created));
        let call =
            Call::Rename { parent: dir, name: b"g.lock", to_parent: dir, to_name: b"h.lock", flags: 0 };
        assert_eq!(world.ask(0, call), Answer::Done);
        assert_eq!(world.ask(0, Call::Unlink { parent: dir, name: b"h.lock" }), Answer::Done);
    });
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.late_count, 0);
}

// S-51
#[test]
fn a_lock_that_a_program_at_the_server_has_is_not_given_to_a_program_here_before_that_is_reported() {
    let mut world = lone();
    let dir = world.directory(0, ROOT, b"d");
    world.settle();
    for (name, kind) in [("d/a.lock", Kind::File), ("d/b.lock", Kind::Directory)] {
        let last = name.strip_prefix("d/").unwrap().as_bytes();
        assert!(is_absent(&world.ask(0, Call::Lookup { parent: dir, name: last })));
        assert!(world.outside_creates(name, kind));
        assert_eq!(world.ask(0, create(dir, last)), Answer::Fail(Errno::Exists), "{name}");
        assert_eq!(world.ask(0, mkdir(dir, last)), Answer::Fail(Errno::Exists), "{name}");
    }
    assert_eq!(world.seats[0].client.snapshot().ahead.late_count, 0);
}

// S-51
#[test]
fn one_change_by_a_program_at_the_server_makes_exclusive_creations_wait_for_a_minute_there_and_above() {
    let mut world = lone();
    let above = world.directory(0, ROOT, b"above");
    let dir = world.directory(0, above, b"dir");
    let beside = world.directory(0, above, b"beside");
    let file = world.file(0, dir, b"f", b"");
    world.settle();
    let dir_id = world.outside_stat("above/dir").id;
    at_once(&mut world, |world| world.directory(0, dir, b"before"));
    world.settle();

    assert!(world.outside_creates("above/dir/theirs", Kind::File));
    world.report(dir_id, b"theirs");
    world.pass(Duration::from_secs(1));
    for (at, name) in [(dir, b"a"), (above, b"a"), (ROOT, b"a")] {
        after_a_round_trip(&mut world, |world| world.directory(0, at, name));
    }
    let all = in_each_exclusive_mode(&mut world, dir, file, [b"1", b"2", b"3", b"4", b"5"]);
    assert_eq!(all, [true; 5]);
    at_once(&mut world, |world| world.directory(0, beside, b"a"));

    world.pass(MINUTE);
    // A listing that was taken back is asked for once more.
    list(&mut world, dir);
    world.pass(MINUTE);
    at_once(&mut world, |world| world.directory(0, dir, b"later"));
    at_once(&mut world, |world| world.directory(0, above, b"b"));
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.late_count, 0);
}

// S-51
#[test]
fn where_a_directory_was_changed_a_moment_before_it_was_looked_at_exclusive_creations_wait() {
    for (age, waits) in [(3600, false), (30, true)] {
        let mut world = World::new(1, journaling(), 1, STEADY);
        world.make("d", Kind::Directory, b"");
        let changed = world.outside_stat("d").ctime;
        let day = changed.secs + age - (world.now.0 / 1_000_000_000) as i64;
        let day = Timestamp { secs: day, nanos: 0 };
        let mut world = World::new(1, Config { day, ..journaling() }, 1, STEADY);
        world.make("d", Kind::Directory, b"");
        world.pass(Duration::from_secs(1));
        let dir = world.lookup(0, ROOT, b"d");
        list(&mut world, dir);
        let make = |world: &mut World| world.directory(0, dir, b"a");
        if waits {
            after_a_round_trip(&mut world, make);
            world.pass(MINUTE);
            at_once(&mut world, |world| world.directory(0, dir, b"b"));
        } else {
            at_once(&mut world, make);
        }
    }
}

// S-51
#[test]
fn a_server_that_watches_for_nothing_has_no_rivals() {
    let mut world = alone(World::watched(1, journaling(), STEADY, Watch::None));
    at_once(&mut world, |world| {
        let dir = world.directory(0, ROOT, b"d.lock");
        world.ask(0, create(dir, b"index.lock"));
    });
}

// S-50 S-51
#[test]
fn of_a_program_here_and_one_at_the_server_exactly_one_gets_each_lock() {
    const DELAYS: Delays = Delays { wire: (1_000, 60_000), server: (0, 30_000), kernel: (0, 20_000) };
    for seed in 0..60 {
        let world = World::new(seed, journaling(), 1, DELAYS);
        world.make("d", Kind::Directory, b"");
        let mut world = alone(world);
        let dir = world.lookup(0, ROOT, b"d");
        let id = world.outside_stat("d").id;
        list(&mut world, dir);
        // A name that looks like a lock, and one that does not, in a directory that is contended by then.
        world.report(id, b"x");
        world.pass(Duration::from_secs(1));
        for (round, name) in ["lock", "here"].into_iter().cycle().take(16).enumerate() {
            let place = format!("d/{name}");
            let here = match round % 4 < 2 {
                true => world.call(0, create(dir, name.as_bytes())),
                false => world.call(0, mkdir(dir, name.as_bytes())),
            };
            let span = Duration::from_micros(world.dice.below(150_000));
            world.pass(span);
            let there = world.outside_creates(&place, Kind::File);
            if there && world.dice.chance(1, 2) {
                world.report(id, name.as_bytes());
            }
            let answer = world.wait(0, here);
            let got = !matches!(answer, Answer::Fail(_));
            assert!(got != there, "seed {seed}, round {round}: {answer:?}, at the server: {there}");
            if let Answer::Created(entry, handle, _) = &answer {
                world.close(0, entry.node, *handle);
            }
            world.settle();
            // The program at the server clears up, and the watch reports it.
            assert!(world.outside_removes(&place, false) || world.outside_removes(&place, true));
            world.report(id, name.as_bytes());
            world.settle();
            world.pass(Duration::from_secs(1));
        }
        assert_eq!(world.seats[0].client.snapshot().ahead.late_count, 0, "seed {seed}");
    }
}

// S-51
#[test]
fn after_a_directory_was_replaced_at_the_server_the_second_try_of_a_program_finds_the_new_one() {
    let world = World::new(1, journaling(), 1, STEADY);
    world.make("d", Kind::Directory, b"");
    world.make("d/x", Kind::Directory, b"");
    let mut world = alone(world);
    let dir = world.lookup(0, ROOT, b"d");
    let inner = world.lookup(0, dir, b"x");
    for dir in [ROOT, dir, inner] {
        list(&mut world, dir);
    }
    for place in ["d/x", "d"] {
        assert!(world.outside_removes(place, true));
    }
    for place in ["d", "d/x"] {
        assert!(world.outside_creates(place, Kind::Directory));
    }
    // The watch has not reported it yet.
    assert_eq!(world.ask(0, mkdir(inner, b"y.lock")), Answer::Fail(Errno::Stale));
    // The kernel looks the whole path up once more, and then gives up.
    let dir = after_a_round_trip(&mut world, |world| world.lookup(0, ROOT, b"d"));
    let inner = world.lookup(0, dir, b"x");
    world.directory(0, inner, b"y.lock");
    assert_eq!(world.seats[0].client.snapshot().ahead.late_count, 0);
}

/// Looks at a directory's names.
fn list(world: &mut World, dir: TreeNodeId) {
    let listed = handle(world.ask(0, Call::Opendir { node: dir }));
    world.ask(0, Call::Releasedir { node: dir, handle: listed });
}

// S-53
#[test]
fn within_a_window_a_lock_by_a_name_has_what_was_known_asked_for_again() {
    let mut world = World::new(1, crate::config("window"), 1, STEADY);
    world.make("old", Kind::File, b"");
    let old = world.lookup(0, ROOT, b"old");
    let look = |world: &mut World| world.ask(0, getattr(old));
    world.directory(0, ROOT, b"dir");
    at_once(&mut world, look);
    world.directory(0, ROOT, b"dir.lock");
    after_a_round_trip(&mut world, look);
}
