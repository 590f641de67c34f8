//! PingFS on real links: one tree on several machines.
//!
//! ```text
//!  node1 ──┐
//!  node2 ──┼── hub, which answers pings
//!  node3 ──┘
//! ```

mod changes;
mod group;
mod programs;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use changes::{ChangeLog, SharedFlags, StopProgramsOnDrop, contents};
use group::PingFsGroup;
use wirefs_lab::LinkProfile;

use crate::site::wait_for;

/// Enough capacity for the tests on a busy machine.
const CAPACITY: [&str; 4] = ["--rate", "5000", "--park", "1500"];

fn near() -> LinkProfile {
    LinkProfile::rtt(Duration::from_millis(4))
}

/// S-124: when a call returns, its change is visible on the other nodes; a node that joins later has everything.
#[test]
fn file_written_on_one_node_is_readable_on_the_other() {
    let group = PingFsGroup::new("two", 2, &near());
    group.mount(1, &CAPACITY);
    fs::write(group.at(1, "early"), "before the other came").unwrap();
    group.mount(2, &CAPACITY);
    group.wait_for_members(&[1, 2]);
    assert_eq!(fs::read_to_string(group.at(2, "early")).unwrap(), "before the other came");
    for (from, to) in [(1, 2), (2, 1)] {
        let (name, text) = (format!("of {from}"), format!("by {from}\n").repeat(3_000));
        fs::write(group.at(from, &name), &text).unwrap();
        assert!(fs::read_to_string(group.at(to, &name)).unwrap() == text, "from {from} to {to}");
        fs::remove_file(group.at(to, &name)).unwrap();
        assert!(!group.at(from, &name).exists());
    }
    group.wait_for_equal_roots(&[1, 2]);
}

/// S-125: a node with cached contents is notified of changes by other nodes.
#[test]
fn node_with_cached_contents_sees_changes_of_others() {
    let group = PingFsGroup::new("kept", 2, &near());
    group.mount(1, &["--ram", "4M"]);
    group.mount(2, &["--ram", "4M"]);
    group.wait_for_members(&[1, 2]);
    for round in 0..5 {
        let text = format!("round {round}\n").repeat(100 + round);
        fs::write(group.at(1, "file"), &text).unwrap();
        wait_for("the change to be visible", || {
            fs::read_to_string(group.at(2, "file")).is_ok_and(|found| found == text)
        });
        // The second read comes from the cache.
        assert_eq!(fs::read_to_string(group.at(2, "file")).unwrap(), text);
    }
}

/// S-126: acknowledged changes survive on the remaining nodes, and all trees are equal, whichever node dies, joins or
/// leaves.
#[test]
fn group_survives_a_killed_node_and_a_leaving_node() {
    let group = PingFsGroup::new("killed", 3, &near());
    (1..=3).for_each(|number| group.mount(number, &CAPACITY));
    group.wait_for_members(&[1, 2, 3]);
    let (shared, seed) = (SharedFlags::default(), 5);
    let mut logs: Vec<ChangeLog> = (1..=3).map(|number| ChangeLog::new(seed + number)).collect();
    std::thread::scope(|scope| {
        let _stop = StopProgramsOnDrop(&shared);
        let mut programs = Vec::new();
        for (index, log) in logs.iter_mut().enumerate() {
            let (at, shared) = (group.at(index + 1, ""), &shared);
            programs.push(scope.spawn(move || log.run(&at, index + 1, 1, shared)));
        }
        wait_for("some changes", || fs::read_dir(group.at(1, "")).unwrap().count() > 9);
        group.kill(2);
        // Before the mount is removed, so that the program writes nowhere else.
        programs.remove(1).join().unwrap();
        group.remove_mount(2);
        group.wait_for_members(&[1, 3]);
    });
    let all = contents_of_all(&group, &[1, 3]);
    logs.iter().for_each(|log| log.check(&all));

    group.mount(2, &CAPACITY);
    group.wait_for_members(&[1, 2, 3]);
    assert_eq!(contents_of_all(&group, &[1, 2, 3]), all);

    group.unmount(1);
    group.wait_for_members(&[2, 3]);
    fs::write(group.at(3, "last"), "of two").unwrap();
    assert_eq!(fs::read_to_string(group.at(2, "last")).unwrap(), "of two");
    assert_eq!(contents_of_all(&group, &[2, 3]), all);
}

/// S-127: blocks lost on a node's own link are restored from the other nodes.
#[test]
fn lost_blocks_of_one_node_are_read_from_the_others() {
    // So far away that blocks are in flight and not parked in receive buffers, so that a cut loses them.
    let group = PingFsGroup::new("lost", 2, &LinkProfile::rtt(Duration::from_millis(100)));
    let in_flight = ["--rate", "5000", "--park", "0"];
    group.mount(1, &in_flight);
    group.mount(2, &in_flight);
    group.wait_for_members(&[1, 2]);
    let text = |number: usize| format!("file {number}\n").repeat(300);
    for number in 0..10 {
        fs::write(group.at(1, format!("file{number}")), text(number)).unwrap();
    }
    group.wait_for_equal_roots(&[1, 2]);
    let lost_before = group.status(2)["hosts"][0]["lost"].as_u64().unwrap();
    // All packets in flight are lost; the link works again at once.
    group.link(2).cut();
    group.link(2).heal();
    for number in 0..10 {
        let path = group.at(2, format!("file{number}"));
        wait_for("a file to come back", || {
            fs::read_to_string(&path).is_ok_and(|found| found == text(number))
        });
    }
    let lost = group.status(2)["hosts"][0]["lost"].as_u64().unwrap() - lost_before;
    assert!(lost >= 10, "{lost} packets were lost: the cut lost nothing");
    // The blocks are in the node's own packets again: no other node is left to ask.
    group.unmount(1);
    group.wait_for_members(&[2]);
    for number in 0..10 {
        assert_eq!(fs::read_to_string(group.at(2, format!("file{number}"))).unwrap(), text(number));
    }
    fs::write(group.at(2, "after"), "the cut").unwrap();
    assert_eq!(fs::read_to_string(group.at(2, "after")).unwrap(), "the cut");
}

/// Returns the files of these nodes' trees, which must be equal.
fn contents_of_all(group: &PingFsGroup, numbers: &[usize]) -> BTreeMap<String, String> {
    group.wait_for_equal_roots(numbers);
    std::thread::scope(|scope| {
        let read = |number: &usize| {
            let at = group.at(*number, "");
            scope.spawn(move || contents(&at))
        };
        let readers: Vec<_> = numbers.iter().map(read).collect();
        let mut found: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        let all = found.pop().unwrap();
        assert!(!all.is_empty() && found.iter().all(|one| *one == all), "{found:?} {all:?}");
        all
    })
}

/// Returns the duration; `scripts/together` sets it.
fn duration() -> Duration {
    let seconds = std::env::var("WIREFS_TOGETHER_SECONDS").ok();
    Duration::from_secs(seconds.map_or(20, |seconds| seconds.parse().unwrap()))
}

/// S-124: programs on three nodes change one tree concurrently for 20 s; then all roots are equal, and acknowledged
/// changes are there.
#[test]
fn three_nodes_change_one_tree_concurrently_and_end_equal() {
    let group = PingFsGroup::new("at-once", 3, &LinkProfile::rtt(Duration::from_millis(10)));
    (1..=3).for_each(|number| group.mount(number, &CAPACITY));
    group.wait_for_members(&[1, 2, 3]);
    let shared = SharedFlags::default();
    let mut logs: Vec<ChangeLog> = (1..=3).map(ChangeLog::new).collect();
    std::thread::scope(|scope| {
        for (index, log) in logs.iter_mut().enumerate() {
            let (at, shared) = (group.at(index + 1, ""), &shared);
            scope.spawn(move || log.run(&at, index + 1, 1, shared));
        }
        let _stop = StopProgramsOnDrop(&shared);
        std::thread::sleep(duration());
    });
    group.wait_for_members(&[1, 2, 3]);
    let all = contents_of_all(&group, &[1, 2, 3]);
    logs.iter().for_each(|log| log.check(&all));
    let changes: Vec<u64> = logs.iter().map(|log| log.changes).collect();
    let (least, most) = (changes.iter().min().unwrap(), changes.iter().max().unwrap());
    assert!(least * 2 > *most, "unequal progress: {changes:?}");
    eprintln!("{} s: {changes:?} changes of three nodes, all roots equal", duration().as_secs());
}
