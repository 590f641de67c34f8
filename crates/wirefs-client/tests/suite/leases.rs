//! The cost and benefit of leases, in requests, and their end.

use crate::config;
use crate::deeds::{
    READ, READ_WRITE, create, data, entry, getattr, handle, is_absent, listing, readdir, write,
};
use crate::world::{STEADY, World};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Handle, Invalidate, OpenHow, PageCache, ROOT, TreeNodeId};
use wirefs_op::{Errno, SetStat};

const NOTHING: [&str; 0] = [];
const HOUR: Duration = Duration::from_secs(3600);

/// Client 0 makes things, client 1 knows of nothing.
fn world() -> World {
    let mut world = World::new(1, config("lease"), 2, STEADY);
    let dir = world.directory(0, ROOT, b"d");
    world.file(0, dir, b"small", b"hello");
    world.file(0, dir, b"other", b"other");
    world.settle();
    world
}

fn read(node: TreeNodeId, handle: Handle) -> Call<'static> {
    Call::Read { node, handle, offset: 0, count: 4096 }
}

/// Client 1 has looked at everything.
fn warm() -> (World, TreeNodeId, TreeNodeId) {
    let mut world = world();
    let dir = world.lookup(1, ROOT, b"d");
    let node = world.lookup(1, dir, b"small");
    let opened = handle(world.ask(1, Call::Open { node, how: READ }));
    world.ask(1, read(node, opened));
    world.close(1, node, opened);
    let opened = handle(world.ask(1, Call::Opendir { node: dir }));
    world.ask(1, readdir(dir, opened, 0));
    world.ask(1, Call::Releasedir { node: dir, handle: opened });
    world.settle();
    world.seats[1].sent.clear();
    world.seats[1].invalidated.clear();
    (world, dir, node)
}

/// Looks at all that is warm once more; tells what was sent for it.
fn look_again(world: &mut World, dir: TreeNodeId, node: TreeNodeId) -> Vec<&'static str> {
    let before = world.seats[1].sent.len();
    assert_eq!(world.lookup(1, ROOT, b"d"), dir);
    assert_eq!(world.lookup(1, dir, b"small"), node);
    assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"nothing" })));
    assert!(matches!(world.ask(1, getattr(node)), Answer::Attr(_, Duration::MAX)));
    let opened = handle(world.ask(1, Call::Open { node, how: READ }));
    assert_eq!(data(world.ask(1, read(node, opened))), "hello");
    world.close(1, node, opened);
    let opened = handle(world.ask(1, Call::Opendir { node: dir }));
    assert_eq!(listing(world.ask(1, readdir(dir, opened, 0))).len(), 4);
    world.ask(1, Call::Releasedir { node: dir, handle: opened });
    world.seats[1].sent[before..].to_vec()
}

// S-6
#[test]
fn what_is_leased_costs_nothing_after_an_hour_of_pings() {
    let (mut world, dir, node) = warm();
    world.pass(HOUR);
    assert!(world.seats[1].sent.iter().all(|name| *name == "Ping"));
    let pings = world.seats[1].sent.len();
    assert!((700..=730).contains(&pings), "{pings} pings in an hour");
    let began = world.now;
    assert_eq!(look_again(&mut world, dir, node), NOTHING);
    assert_eq!(world.now, began);
    let held = world.seats[1].client.snapshot().leases.unwrap();
    assert!(held.are_valid && held.objects >= 3 && held.names >= 2, "{held:?}");
}

#[test]
fn a_client_that_holds_nothing_does_not_ping() {
    let mut world = World::new(1, config("window"), 1, STEADY);
    world.pass(HOUR);
    assert_eq!(world.seats[0].sent, NOTHING);
}

// S-4
#[test]
fn anothers_write_takes_one_recall_and_is_seen_at_once() {
    let (mut world, dir, node) = warm();
    world.ask(1, getattr(node));
    let theirs = world.lookup(0, ROOT, b"d");
    let theirs = world.lookup(0, theirs, b"small");
    let open = handle(world.ask(0, Call::Open { node: theirs, how: READ_WRITE }));
    world.ask(0, write(theirs, open, 0, b"HELLO"));
    world.ask(0, Call::Flush { node: theirs, handle: open, owner: 1 });
    assert_eq!(world.seats[1].sent, ["Recalled"]);
    assert_eq!(world.seats[1].invalidated, [Invalidate::Node { node, offset: 0, length: 0 }]);
    let (found, sent) = world.cost(1, Call::Lookup { parent: dir, name: b"small" });
    assert_eq!((entry(found).stat.size, sent), (5, vec!["Get"]));
    let opened = handle(world.ask(1, Call::Open { node, how: READ }));
    let (bytes, sent) = world.cost(1, read(node, opened));
    assert_eq!((data(bytes).as_ref(), sent), (b"HELLO".as_ref(), NOTHING.to_vec()));
    world.settle();
    assert_eq!(world.cost(1, Call::Lookup { parent: dir, name: b"other" }).1, NOTHING);
    world.close(1, node, opened);
}

#[test]
fn new_name_by_another_mount_invalidates_one_name_of_a_known_directory() {
    let (mut world, dir, _) = warm();
    assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"new" })));
    let theirs = world.lookup(0, ROOT, b"d");
    world.ask(0, create(theirs, b"new"));
    assert_eq!(world.seats[1].sent, ["Recalled"]);
    assert_eq!(
        world.seats[1].invalidated,
        [
            Invalidate::Entry { parent: dir, name: b"new".to_vec(), is_directory: false },
            Invalidate::Node { node: dir, offset: 0, length: 0 }
        ]
    );
    assert_eq!(world.cost(1, Call::Lookup { parent: dir, name: b"small" }).1, NOTHING);
    assert_eq!(world.cost(1, Call::Lookup { parent: dir, name: b"nothing" }).1, NOTHING);
    let (found, sent) = world.cost(1, Call::Lookup { parent: dir, name: b"new" });
    assert!(matches!(found, Answer::Entry(_)));
    assert_eq!(sent, ["Get"]);
    let (opened, sent) = world.cost(1, Call::Opendir { node: dir });
    assert_eq!(sent, NOTHING, "with the one name asked for, all names are known again");
    assert_eq!(listing(world.ask(1, readdir(dir, handle(opened), 0))).len(), 5);
}

#[test]
fn own_changes_cost_no_recalls_and_leave_what_is_known() {
    let (mut world, dir, node) = warm();
    let made = world.ask(1, create(dir, b"mine"));
    let (mine, opened) = (entry(made.clone()).node, handle(made));
    world.ask(1, write(mine, opened, 0, b"contents"));
    world.close(1, mine, opened);
    let open = handle(world.ask(1, Call::Open { node, how: READ_WRITE }));
    world.ask(1, write(node, open, 0, b"J"));
    world.close(1, node, open);
    world.ask(1, Call::Rename { parent: dir, name: b"mine", to_parent: ROOT, to_name: b"moved", flags: 0 });
    world.ask(1, Call::Unlink { parent: dir, name: b"other" });
    world.settle();
    assert!(!world.seats[1].sent.contains(&"Recalled"));
    assert_eq!(world.seats[1].invalidated, []);
    world.pass(Duration::from_secs(600));
    let before = world.seats[1].sent.len();
    assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"mine" })));
    assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"other" })));
    assert_eq!(world.lookup(1, ROOT, b"moved"), mine);
    let opened = handle(world.ask(1, Call::Open { node: mine, how: READ }));
    assert_eq!(data(world.ask(1, read(mine, opened))), "contents");
    world.close(1, mine, opened);
    let opened = handle(world.ask(1, Call::Open { node, how: READ }));
    assert_eq!(data(world.ask(1, read(node, opened))), "Jello");
    world.close(1, node, opened);
    let opened = handle(world.ask(1, Call::Opendir { node: dir }));
    let listed = listing(world.ask(1, readdir(dir, opened, 0)));
    assert_eq!(listed.len(), 3);
    assert_eq!(world.seats[1].sent[before..], NOTHING);
}

#[test]
fn a_directory_opened_again_may_be_kept_by_the_kernel_until_it_changes() {
    let (mut world, dir, _) = warm();
    let pages = |world: &mut World| match world.ask(1, Call::Opendir { node: dir }) {
        Answer::Opened(handle, pages) => (handle, pages),
        other => panic!("{other:?}"),
    };
    let (early, kept) = pages(&mut world);
    assert_eq!(kept, PageCache::Keep);
    let theirs = world.lookup(0, ROOT, b"d");
    world.ask(0, create(theirs, b"new"));
    // What the kernel keeps of this handle from now on must be the directory as it is.
    assert_eq!(listing(world.ask(1, readdir(dir, early, 0))).len(), 5);
    let (_, kept) = pages(&mut world);
    assert_eq!(kept, PageCache::Drop, "what the kernel read through the first was not promised");
    let (late, kept) = pages(&mut world);
    assert_eq!(kept, PageCache::Keep);
    world.ask(1, create(dir, b"own"));
    assert_eq!(listing(world.ask(1, readdir(dir, late, 0))).len(), 6);
}

#[test]
fn an_open_file_that_was_read_from_memory_outlives_its_removal_by_others() {
    let (mut world, dir, node) = warm();
    let opened = handle(world.ask(1, Call::Open { node, how: READ }));
    assert_eq!(world.seats[1].sent, NOTHING);
    let theirs = world.lookup(0, ROOT, b"d");
    assert_eq!(world.ask(0, Call::Unlink { parent: theirs, name: b"small" }), Answer::Done);
    assert_eq!(world.seats[1].sent, ["Get", "Recalled"], "an fd first");
    assert_eq!(data(world.ask(1, read(node, opened))), "hello");
    assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"small" })));
    world.close(1, node, opened);
}

#[test]
fn an_open_file_needs_no_fd_when_others_change_another_name_beside_it() {
    let (mut world, _, node) = warm();
    let opened = handle(world.ask(1, Call::Open { node, how: READ }));
    let theirs = world.lookup(0, ROOT, b"d");
    world.ask(0, create(theirs, b"new"));
    assert_eq!(world.seats[1].sent, ["Recalled"]);
    world.close(1, node, opened);
}

#[test]
fn an_open_file_that_was_read_from_memory_outlives_the_move_of_a_directory_above_it() {
    let (mut world, _, node) = warm();
    let opened = handle(world.ask(1, Call::Open { node, how: READ }));
    let rename = Call::Rename { parent: ROOT, name: b"d", to_parent: ROOT, to_name: b"e", flags: 0 };
    assert_eq!(world.ask(0, rename), Answer::Done);
    let theirs = world.lookup(0, ROOT, b"e");
    world.ask(0, Call::Unlink { parent: theirs, name: b"small" });
    world.pass(HOUR);
    assert_eq!(data(world.ask(1, read(node, opened))), "hello");
    world.close(1, node, opened);
}

#[test]
fn a_name_in_a_directory_that_others_moved_is_not_answered_from_another_one() {
    let (mut world, dir, _) = warm();
    world.ask(0, Call::Rename { parent: ROOT, name: b"d", to_parent: ROOT, to_name: b"e", flags: 0 });
    let other = world.directory(0, ROOT, b"d");
    world.file(0, other, b"small", b"another");
    let answer = world.ask(1, Call::Lookup { parent: dir, name: b"unheard of" });
    assert_eq!(answer, Answer::Fail(Errno::Stale));
    let moved = world.lookup(1, ROOT, b"e");
    assert_eq!(moved, dir);
    assert!(matches!(world.ask(1, Call::Lookup { parent: dir, name: b"small" }), Answer::Entry(_)));
}

#[test]
fn a_silent_server_is_believed_for_its_term_and_then_the_kernel_forgets_all() {
    let (mut world, dir, node) = warm();
    world.ask(1, Call::Lookup { parent: dir, name: b"nothing" });
    world.pass(Duration::from_secs(60));
    world.mute(1);
    world.pass(Duration::from_secs(9));
    assert_eq!(look_again(&mut world, dir, node), NOTHING);
    assert_eq!(world.seats[1].invalidated, []);
    world.pass(Duration::from_secs(12));
    let told = &world.seats[1].invalidated;
    assert!(told.contains(&Invalidate::Node { node, offset: -1, length: 0 }), "{told:?}");
    assert!(told.contains(&Invalidate::Node { node: ROOT, offset: -1, length: 0 }), "{told:?}");
    for name in [b"small".as_slice(), b"nothing"] {
        assert!(
            told.contains(&Invalidate::Entry { parent: dir, name: name.to_vec(), is_directory: false }),
            "{told:?}"
        );
    }
    let asked = world.call(1, getattr(node));
    assert!(!world.seats[1].answers.contains_key(&asked));
}

#[test]
fn leases_count_again_after_a_short_break_without_a_question_about_anything() {
    let (mut world, dir, node) = warm();
    world.cut(1, Duration::from_secs(60), true);
    world.pass(Duration::from_secs(61));
    world.settle();
    // The first request that is answered makes everything count again.
    world.ask(1, Call::Lookup { parent: dir, name: b"small" });
    world.settle();
    assert_eq!(look_again(&mut world, dir, node), NOTHING);
}

#[test]
fn what_changed_while_the_line_was_cut_is_known_when_it_is_back() {
    let (mut world, dir, node) = warm();
    world.cut(1, Duration::from_secs(60), true);
    let theirs = world.lookup(0, ROOT, b"d");
    let theirs = world.lookup(0, theirs, b"small");
    let open = handle(world.ask(0, Call::Open { node: theirs, how: READ_WRITE }));
    world.ask(0, write(theirs, open, 0, b"HELLO"));
    world.ask(0, Call::Flush { node: theirs, handle: open, owner: 1 });
    world.pass(Duration::from_secs(61));
    world.ask(1, Call::Statfs { node: ROOT });
    assert_eq!(world.cost(1, Call::Lookup { parent: dir, name: b"other" }).1, NOTHING);
    let opened = handle(world.ask(1, Call::Open { node, how: READ }));
    assert_eq!(data(world.ask(1, read(node, opened))), "HELLO");
}

#[test]
fn a_server_that_does_not_know_the_leases_any_more_makes_all_be_asked_for_again() {
    let (mut world, dir, node) = warm();
    world.cut(1, Duration::from_secs(1), false);
    world.pass(Duration::from_secs(2));
    world.ask(1, Call::Statfs { node: ROOT });
    let (found, sent) = world.cost(1, Call::Lookup { parent: dir, name: b"small" });
    assert_eq!((entry(found).node, sent), (node, vec!["Get"]));
    assert!(!world.seats[1].invalidated.is_empty());
}

#[test]
fn a_change_whose_reply_was_lost_with_the_connection_is_looked_for() {
    let mut world = World::new(1, config("lease"), 1, STEADY);
    let dir = world.directory(0, ROOT, b"d");
    let node = world.file(0, dir, b"small", b"hello");
    world.file(0, dir, b"other", b"other");
    let written = world.file(0, dir, b"written", b"before");
    assert!(is_absent(&world.ask(0, Call::Lookup { parent: dir, name: b"made" })));
    assert!(matches!(world.ask(0, getattr(written)), Answer::Attr(_, Duration::MAX)));
    world.settle();
    let lost = [
        world.call(0, Call::Mkdir { parent: dir, name: b"made", mode: 0o755, umask: 0 }),
        world.call(0, Call::Unlink { parent: dir, name: b"other" }),
        world.call(
            0,
            Call::Rename { parent: dir, name: b"small", to_parent: ROOT, to_name: b"moved", flags: 0 },
        ),
        world.call(0, Call::Link { node: written, parent: dir, name: b"linked" }),
        world.call(
            0,
            Call::Setxattr { node: written, name: b"user.x", value: b"1", flags: 1, kill_sgid: false },
        ),
    ];
    world.pass(Duration::from_millis(70));
    // To a server that has forgotten the session, its ledger with it.
    world.cut(0, Duration::from_secs(1), false);
    for call in lost {
        assert_eq!(world.wait(0, call), Answer::Fail(Errno::Io));
    }
    world.pass(Duration::from_secs(2));
    world.ask(0, Call::Statfs { node: ROOT });
    let told = &world.seats[0].invalidated;
    for (parent, name) in
        [(dir, b"made".as_slice()), (dir, b"other"), (dir, b"small"), (ROOT, b"moved"), (dir, b"linked")]
    {
        assert!(
            told.contains(&Invalidate::Entry { parent, name: name.to_vec(), is_directory: false }),
            "{told:?}"
        );
    }
    for node in [dir, written, node] {
        assert!(told.contains(&Invalidate::Node { node, offset: 0, length: 0 }), "{told:?}");
    }
    let (found, _) = world.cost(0, getattr(written));
    assert!(matches!(found, Answer::Attr(stat, _) if stat.nlink == 2), "{found:?}");
    assert!(matches!(world.ask(0, Call::Lookup { parent: dir, name: b"made" }), Answer::Entry(_)));
    assert!(matches!(world.ask(0, Call::Lookup { parent: dir, name: b"linked" }), Answer::Entry(_)));
    assert!(is_absent(&world.ask(0, Call::Lookup { parent: dir, name: b"other" })));
    assert!(is_absent(&world.ask(0, Call::Lookup { parent: dir, name: b"small" })));
    assert_eq!(world.lookup(0, ROOT, b"moved"), node);
    let opened = handle(world.ask(0, Call::Opendir { node: dir }));
    assert_eq!(listing(world.ask(0, readdir(dir, opened, 0))).len(), 5);
}

#[test]
fn a_walk_over_directories_is_listed_ahead_and_costs_nothing_the_next_time() {
    let mut world = World::new(1, config("lease"), 2, STEADY);
    for name in [b"w0", b"w1", b"w2", b"w3", b"w4", b"w5", b"w6", b"w7"] {
        let dir = world.directory(0, ROOT, name);
        world.file(0, dir, b"f", b"x");
    }
    world.settle();
    let walk = |world: &mut World| {
        let before = (world.now, world.seats[1].sent.len());
        let root = handle(world.ask(1, Call::Opendir { node: ROOT }));
        let walked = listing(world.ask(1, readdir(ROOT, root, 0)));
        world.ask(1, Call::Releasedir { node: ROOT, handle: root });
        for listed in walked.into_iter().filter(|listed| listed.name.starts_with(b"w")) {
            let node = world.lookup(1, ROOT, &listed.name);
            let opened = handle(world.ask(1, Call::Opendir { node }));
            assert_eq!(listing(world.ask(1, readdir(node, opened, 0))).len(), 3);
            world.ask(1, Call::Releasedir { node, handle: opened });
        }
        (world.now.since(before.0), world.seats[1].sent.len() - before.1)
    };
    // The root, the first directory, the stream, the free space, and one directory that the stream had not told of.
    assert_eq!(walk(&mut world), (Duration::from_millis(200), 5));
    world.pass(HOUR);
    world.seats[1].sent.clear();
    assert_eq!(walk(&mut world), (Duration::ZERO, 0));
}

#[test]
fn a_lease_client_of_a_server_without_leases_asks_for_each_call_and_fetches_nothing_ahead() {
    let mut world = World::without_leases(1, config("lease"), STEADY);
    let dir = world.directory(0, ROOT, b"d");
    world.file(0, dir, b"f", b"hello");
    for _ in 0..3 {
        let (found, sent) = world.cost(0, Call::Lookup { parent: dir, name: b"f" });
        assert_eq!((entry(found).entry_ttl, sent), (Duration::ZERO, vec!["Get"]));
        assert_eq!(world.cost(0, getattr(dir)).1, ["Get"]);
    }
    world.pass(HOUR);
    world.settle();
    assert!(!world.seats[0].sent.contains(&"Ping"));
    assert_eq!(world.seats[0].client.snapshot().leases, None);
}

/// A kernel that writes past its pages keeps the mode that it knew.
#[test]
fn a_set_id_bit_that_a_write_took_is_forgotten_before_its_caller_goes_on() {
    let mut world = World::new(1, config("direct"), 1, STEADY);
    let node = world.file(0, ROOT, b"f", b"contents");
    let handle = handle(world.ask(0, Call::Open { node, how: READ_WRITE }));
    for (mode, told) in [(0o755, vec![]), (0o4755, vec![Invalidate::Node { node, offset: -1, length: 0 }])] {
        let set = SetStat { mode: Some(mode), ..SetStat::default() };
        world.ask(0, Call::Setattr { node, handle: None, set, kill_privileges: false });
        world.ask(0, getattr(node));
        world.seats[0].invalidated.clear();
        assert_eq!(world.ask(0, write(node, handle, 0, b"C")), Answer::Count(1));
        assert_eq!(world.seats[0].invalidated, told, "{mode:o}");
        let set = SetStat { mode: Some(mode), ..SetStat::default() };
        world.ask(0, Call::Setattr { node, handle: None, set, kill_privileges: false });
        world.seats[0].invalidated.clear();
        let cut = world.ask(0, Call::Open { node, how: OpenHow { truncate: true, ..READ_WRITE } });
        world.close(0, node, crate::deeds::handle(cut));
        world.settle();
        assert_eq!(world.seats[0].invalidated, told, "{mode:o}, cut");
    }
}
