//! The cost of each call, in requests.

use crate::config;
use crate::deeds::{
    READ, READ_WRITE, create, data, entry, getattr, handle, is_absent, listing, readdir, write,
};
use crate::world::{STEADY, World};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Entry, Handle, ROOT, TreeNodeId};
use wirefs_op::Errno;

const NOTHING: [&str; 0] = [];

/// Client 0 makes things, client 1 knows of nothing.
fn world() -> World {
    let mut world = World::new(1, config("window"), 2, STEADY);
    let dir = world.directory(0, ROOT, b"d");
    world.file(0, dir, b"small", b"hello");
    world.file(0, dir, b"other", b"other");
    world.pass(Duration::from_secs(2));
    world
}

fn large(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 4096) as u8 ^ at as u8).collect()
}

fn read(node: TreeNodeId, handle: wirefs_client::call::Handle, offset: u64, count: u32) -> Call<'static> {
    Call::Read { node, handle, offset, count }
}

#[test]
fn a_cold_lookup_of_a_small_file_brings_its_contents() {
    let mut world = world();
    let dir = world.lookup(1, ROOT, b"d");
    world.pass(Duration::from_secs(2));
    let (found, sent) = world.cost(1, Call::Lookup { parent: dir, name: b"small" });
    assert_eq!(sent, ["Get"]);
    let node = entry(found).node;
    let (opened, sent) = world.cost(1, Call::Open { node, how: READ });
    assert_eq!(sent, NOTHING);
    let handle = handle(opened);
    let (bytes, sent) = world.cost(1, read(node, handle, 0, 4096));
    assert_eq!((data(bytes).as_ref(), sent), (b"hello".as_ref(), NOTHING.to_vec()));
    let (_, sent) = world.cost(1, Call::Flush { node, handle, owner: 1 });
    assert_eq!(sent, NOTHING);
    let (_, sent) = world.cost(1, Call::Release { node, handle, flock_owner: None });
    assert_eq!(sent, NOTHING);
}

#[test]
fn a_lookup_of_a_directory_brings_its_listing() {
    let mut world = world();
    let (found, sent) = world.cost(1, Call::Lookup { parent: ROOT, name: b"d" });
    assert_eq!(sent, ["Get"]);
    let dir = entry(found).node;
    let (opened, sent) = world.cost(1, Call::Opendir { node: dir });
    assert_eq!(sent, NOTHING);
    let (listed, sent) = world.cost(1, readdir(dir, handle(opened), 0));
    assert_eq!((listing(listed).len(), sent), (4, NOTHING.to_vec()));
}

#[test]
fn a_name_that_a_listed_directory_does_not_have_costs_nothing() {
    let mut world = world();
    let dir = world.lookup(1, ROOT, b"d");
    let (absent, sent) = world.cost(1, Call::Lookup { parent: dir, name: b"nothing" });
    assert!(is_absent(&absent));
    assert_eq!(sent, NOTHING);
}

#[test]
fn attributes_cost_nothing_within_the_window_and_one_request_after_it() {
    let mut world = world();
    let dir = world.lookup(1, ROOT, b"d");
    let (_, sent) = world.cost(1, getattr(dir));
    assert_eq!(sent, NOTHING);
    world.pass(Duration::from_secs(2));
    let (_, sent) = world.cost(1, getattr(dir));
    assert_eq!(sent, ["Get"]);
    let (_, sent) = world.cost(1, getattr(dir));
    assert_eq!(sent, NOTHING);
}

#[test]
fn a_file_that_is_made_written_and_closed_costs_a_request_for_each_and_waits_for_two() {
    let mut world = world();
    let (made, sent) = world.cost(1, create(ROOT, b"new"));
    assert_eq!(sent, ["Put"]);
    let (node, handle) = (entry(made.clone()).node, handle(made));
    let began = world.now;
    let (count, sent) = world.cost(1, write(node, handle, 0, b"data"));
    assert_eq!((count, sent, world.now), (Answer::Count(4), vec!["Put"], began));
    let (done, sent) = world.cost(1, Call::Flush { node, handle, owner: 1 });
    assert_eq!((done, sent), (Answer::Done, NOTHING.to_vec()));
    assert_eq!(world.now.since(began), Duration::from_millis(100));
    let (_, sent) = world.cost(1, Call::Release { node, handle, flock_owner: None });
    assert_eq!(sent, ["Get"], "the server's fd is given back");
}

#[test]
fn making_a_file_in_a_new_directory_needs_no_listing() {
    let mut world = world();
    let dir = world.directory(1, ROOT, b"fresh");
    let (absent, sent) = world.cost(1, Call::Lookup { parent: dir, name: b"f" });
    assert!(is_absent(&absent));
    assert_eq!(sent, NOTHING);
    let (_, sent) = world.cost(1, create(dir, b"f"));
    assert_eq!(sent, ["Put"]);
    let (found, sent) = world.cost(1, Call::Lookup { parent: dir, name: b"f" });
    assert!(matches!(found, Answer::Entry(_)));
    assert_eq!(sent, NOTHING);
}

#[test]
fn a_symbolic_link_is_read_from_what_its_lookup_brought() {
    let mut world = world();
    world.ask(0, Call::Symlink { parent: ROOT, name: b"s", target: b"d/small" });
    world.pass(Duration::from_secs(2));
    let node = world.lookup(1, ROOT, b"s");
    let (target, sent) = world.cost(1, Call::Readlink { node });
    assert_eq!((data(target).as_ref(), sent), (b"d/small".as_ref(), NOTHING.to_vec()));
}

#[test]
fn a_long_listing_costs_one_request_in_all() {
    let mut world = world();
    let dir = world.directory(0, ROOT, b"many");
    for index in 0..300_u32 {
        world.file(0, dir, format!("file{index:04}").as_bytes(), b"x");
    }
    world.pass(Duration::from_secs(2));
    let dir = world.lookup(1, ROOT, b"many");
    world.pass(Duration::from_secs(2));
    let (opened, sent) = world.cost(1, Call::Opendir { node: dir });
    assert_eq!(sent, ["Get"]);
    let (handle, before) = (handle(opened), world.seats[1].sent.len());
    let mut offset = 0;
    let mut seen = 0;
    loop {
        let entries = listing(world.ask(1, readdir(dir, handle, offset)));
        let Some(last) = entries.last() else { break };
        offset = last.next;
        seen += entries.len();
        for found in entries.iter().filter_map(|listed| listed.entry.as_ref()) {
            let name = b"system.posix_acl_access";
            let answer = world.ask(1, Call::Getxattr { node: found.node, name, size_max: 0 });
            assert_eq!(answer, Answer::Fail(Errno::NoData));
            assert!(matches!(world.ask(1, getattr(found.node)), Answer::Attr(..)));
        }
    }
    assert_eq!((seen, &world.seats[1].sent[before..]), (302, NOTHING.as_slice()));
}

#[test]
fn many_names_asked_for_in_one_directory_cost_two_requests_and_its_listing() {
    let mut world = world();
    let dir = world.lookup(1, ROOT, b"d");
    world.pass(Duration::from_secs(2));
    let before = world.seats[1].sent.len();
    for name in ["a", "b", "small", "c", "other", "e"] {
        world.ask(1, Call::Lookup { parent: dir, name: name.as_bytes() });
        world.pass(Duration::from_millis(1));
    }
    assert_eq!(world.seats[1].sent[before..], ["Get", "Get", "Get"]);
}

#[test]
fn sequential_reader_has_several_requests_in_flight() {
    let mut world = world();
    let bytes = large(12 * 1024 * 1024);
    world.file(0, ROOT, b"large", &bytes);
    world.pass(Duration::from_secs(2));
    let node = world.lookup(1, ROOT, b"large");
    let handle = handle(world.ask(1, Call::Open { node, how: READ }));
    let (mut at, began) = (0, world.now);
    world.seats[1].in_flight_max = 0;
    while at < bytes.len() {
        let got = data(world.ask(1, read(node, handle, at as u64, 128 * 1024)));
        assert_eq!(got.as_ref(), &bytes[at..at + got.len()]);
        assert_eq!(got.len(), (bytes.len() - at).min(128 * 1024));
        at += got.len();
    }
    assert!(world.seats[1].in_flight_max >= 3, "{} at once", world.seats[1].in_flight_max);
    let round_trips = world.now.since(began).as_millis() / 100;
    assert!(round_trips <= 20, "96 reads took {round_trips} round trips");
    assert!(world.seats[1].sent.len() <= 50, "{} requests", world.seats[1].sent.len());
}

#[test]
fn a_random_read_costs_exactly_one_request() {
    let mut world = world();
    world.file(0, ROOT, b"large", &large(12 * 1024 * 1024));
    world.pass(Duration::from_secs(2));
    let node = world.lookup(1, ROOT, b"large");
    let handle = handle(world.ask(1, Call::Open { node, how: READ }));
    let before = world.seats[1].sent.len();
    let offsets = [9_000_000, 2_000_000, 7_000_000, 4_000_000, 11_000_000, 500_000];
    for offset in offsets {
        let got = data(world.ask(1, read(node, handle, offset, 4096)));
        assert_eq!(got.as_ref(), &large(12 * 1024 * 1024)[offset as usize..][..4096]);
    }
    assert_eq!(world.seats[1].sent[before..], ["Get"; 6]);
}

#[test]
fn a_writer_goes_on_before_the_reply_until_too_much_is_behind() {
    let mut world = world();
    let made = world.ask(1, create(ROOT, b"w"));
    let (node, handle) = (entry(made.clone()).node, handle(made));
    let piece = vec![7; 1024 * 1024];
    let began = world.now;
    let mut at_once = 0;
    let stopped = loop {
        let call = world.call(1, write(node, handle, at_once * 1024 * 1024, &piece));
        if !world.seats[1].answers.contains_key(&call) {
            break call;
        }
        at_once += 1;
        assert!(at_once < 64, "nothing stops the writer");
    };
    assert_eq!(world.now, began);
    assert_eq!(at_once, 4, "MiB that were left behind");
    assert_eq!(world.wait(1, stopped), Answer::Count(1024 * 1024));
    assert_eq!(world.now.since(began), Duration::from_millis(100));
}

#[test]
fn an_fsync_costs_one_request_behind_the_writes() {
    let mut world = world();
    let made = world.ask(1, create(ROOT, b"w"));
    let (node, handle) = (entry(made.clone()).node, handle(made));
    world.ask(1, write(node, handle, 0, b"a"));
    world.ask(1, write(node, handle, 1, b"b"));
    let began = world.now;
    let (done, sent) = world.cost(1, Call::Fsync { node, handle, data_only: false });
    assert_eq!((done, sent), (Answer::Done, vec!["Commit"]));
    assert_eq!(world.now.since(began), Duration::from_millis(100), "one round trip for all three");
}

#[test]
fn release_is_answered_at_once() {
    let mut world = world();
    let dir = world.lookup(1, ROOT, b"d");
    let node = world.lookup(1, dir, b"small");
    let handle = handle(world.ask(1, Call::Open { node, how: READ_WRITE }));
    world.ask(1, write(node, handle, 0, b"x"));
    let began = world.now;
    assert_eq!(world.ask(1, Call::Release { node, handle, flock_owner: None }), Answer::Done);
    assert_eq!(world.now, began);
    world.settle();
}

/// A file of five bytes that client 1 has looked up and opened in a mode that keeps no contents.
fn opened_in(mode: &str) -> (World, Entry, Handle) {
    let mut world = World::new(1, config(mode), 2, STEADY);
    let dir = world.directory(0, ROOT, b"d");
    world.file(0, dir, b"small", b"hello");
    let dir = world.lookup(1, ROOT, b"d");
    let (found, sent) = world.cost(1, Call::Lookup { parent: dir, name: b"small" });
    assert_eq!(sent, ["Get"]);
    let found = entry(found);
    let (opened, sent) = world.cost(1, Call::Open { node: found.node, how: READ });
    assert_eq!(sent, ["Get"]);
    let handle = handle(opened);
    (world, found, handle)
}

#[test]
fn a_strict_client_asks_for_each_call_and_for_nothing_else() {
    let (mut world, Entry { node, .. }, handle) = opened_in("strict");
    let (bytes, sent) = world.cost(1, read(node, handle, 0, 4096));
    assert_eq!((data(bytes).as_ref(), sent), (b"hello".as_ref(), vec!["Get"]));
    let (_, sent) = world.cost(1, getattr(node));
    assert_eq!(sent, ["Get"]);
}

// S-7
#[test]
fn a_direct_client_asks_for_contents_each_time_and_believes_the_rest() {
    let (mut world, found, handle) = opened_in("direct");
    assert_eq!((found.entry_ttl, found.attr_ttl), (Duration::MAX, Duration::MAX));
    for _ in 0..3 {
        let (bytes, sent) = world.cost(1, read(found.node, handle, 0, 4096));
        assert_eq!((data(bytes).as_ref(), sent), (b"hello".as_ref(), vec!["Get"]));
        let (_, sent) = world.cost(1, getattr(found.node));
        assert_eq!(sent, NOTHING);
    }
}

#[test]
fn a_walk_over_sibling_directories_is_listed_ahead_from_the_first_on() {
    let mut world = world();
    for name in [b"w0", b"w1", b"w2", b"w3", b"w4", b"w5", b"w6", b"w7"] {
        world.directory(0, ROOT, name);
    }
    world.pass(Duration::from_secs(2));
    let (opened, _) = world.cost(1, Call::Opendir { node: ROOT });
    let (listed, _) = world.cost(1, readdir(ROOT, handle(opened), 0));
    let walked = listing(listed).into_iter().filter(|listed| listed.name.starts_with(b"w"));
    let sent: Vec<usize> = walked
        .map(|listed| {
            let node = listed.entry.expect("listed with attributes").node;
            let (opened, sent) = world.cost(1, Call::Opendir { node });
            let (entries, more) = world.cost(1, readdir(node, handle(opened), 0));
            assert_eq!((listing(entries).len(), more), (2, NOTHING.to_vec()));
            sent.len()
        })
        .collect();
    assert_eq!(sent, [2, 1, 0, 0, 0, 0, 0, 0]);
}
