//! File systems in pings on real lines: one tree on several machines.
//!
//! ```text
//!  node1 ──┐
//!  node2 ──┼── hub, which answers pings
//!  node3 ──┘
//! ```

mod changes;
mod company;
mod programs;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use changes::{Common, End, Log, contents};
use company::Company;
use wirefs_lab::LinkProfile;

use crate::site::wait_for;

/// Room for all that the tests do, however busy the machine is.
const ROOM: [&str; 4] = ["--rate", "5000", "--park", "1500"];

fn near() -> LinkProfile {
    LinkProfile::rtt(Duration::from_millis(4))
}

/// S-130: what a call has changed on one node is there on the others when it comes back; who comes later has all.
#[test]
fn file_that_one_node_wrote_is_read_on_the_other() {
    let company = Company::new("two", 2, &near());
    company.mount(1, &ROOM);
    fs::write(company.at(1, "early"), "before the other came").unwrap();
    company.mount(2, &ROOM);
    company.wait_until_together(&[1, 2]);
    assert_eq!(fs::read_to_string(company.at(2, "early")).unwrap(), "before the other came");
    for (from, to) in [(1, 2), (2, 1)] {
        let (name, text) = (format!("of {from}"), format!("by {from}\n").repeat(3_000));
        fs::write(company.at(from, &name), &text).unwrap();
        assert!(fs::read_to_string(company.at(to, &name)).unwrap() == text, "from {from} to {to}");
        fs::remove_file(company.at(to, &name)).unwrap();
        assert!(!company.at(from, &name).exists());
    }
    company.wait_until_same(&[1, 2]);
}

/// S-131: a node that keeps what it read is told that it has changed elsewhere.
#[test]
fn node_that_keeps_contents_sees_what_others_change() {
    let company = Company::new("kept", 2, &near());
    company.mount(1, &["--ram", "4M"]);
    company.mount(2, &["--ram", "4M"]);
    company.wait_until_together(&[1, 2]);
    for round in 0..5 {
        let text = format!("round {round}\n").repeat(100 + round);
        fs::write(company.at(1, "file"), &text).unwrap();
        wait_for("the other to see it", || {
            fs::read_to_string(company.at(2, "file")).is_ok_and(|found| found == text)
        });
        // What is read again is what is kept.
        assert_eq!(fs::read_to_string(company.at(2, "file")).unwrap(), text);
    }
}

/// S-132: what was answered is there on all that are left, and the tree is the same, whoever dies, comes or goes.
#[test]
fn node_that_is_killed_comes_back_and_one_that_goes_is_not_missed() {
    let company = Company::new("killed", 3, &near());
    (1..=3).for_each(|number| company.mount(number, &ROOM));
    company.wait_until_together(&[1, 2, 3]);
    let (common, seed) = (Common::default(), 5);
    let mut logs: Vec<Log> = (1..=3).map(|number| Log::new(seed + number)).collect();
    std::thread::scope(|scope| {
        let _end = End(&common);
        let mut programs = Vec::new();
        for (index, log) in logs.iter_mut().enumerate() {
            let (at, common) = (company.at(index + 1, ""), &common);
            programs.push(scope.spawn(move || log.run(&at, index + 1, 1, common)));
        }
        wait_for("some changes", || fs::read_dir(company.at(1, "")).unwrap().count() > 9);
        company.kill(2);
        // Before its mount is gone, so that it writes nowhere else.
        programs.remove(1).join().unwrap();
        company.take_away(2);
        company.wait_until_together(&[1, 3]);
    });
    let all = contents_of_all(&company, &[1, 3]);
    logs.iter().for_each(|log| log.check(&all));

    company.mount(2, &ROOM);
    company.wait_until_together(&[1, 2, 3]);
    assert_eq!(contents_of_all(&company, &[1, 2, 3]), all);

    company.unmount(1);
    company.wait_until_together(&[2, 3]);
    fs::write(company.at(3, "last"), "of two").unwrap();
    assert_eq!(fs::read_to_string(company.at(2, "last")).unwrap(), "of two");
    assert_eq!(contents_of_all(&company, &[2, 3]), all);
}

/// S-133: what is lost on a node's own line comes back from the others.
#[test]
fn what_is_lost_on_one_node_is_read_from_the_others() {
    // So far away that blocks are on the way, and not parked: a cut takes them.
    let company = Company::new("lost", 2, &LinkProfile::rtt(Duration::from_millis(100)));
    let flying = ["--rate", "5000", "--park", "0"];
    company.mount(1, &flying);
    company.mount(2, &flying);
    company.wait_until_together(&[1, 2]);
    let text = |number: usize| format!("file {number}\n").repeat(300);
    for number in 0..10 {
        fs::write(company.at(1, format!("file{number}")), text(number)).unwrap();
    }
    company.wait_until_same(&[1, 2]);
    let lost_before = company.status(2)["hosts"][0]["lost"].as_u64().unwrap();
    // Whatever is under way at this moment is gone; the line is there again at once.
    company.link(2).cut();
    company.link(2).heal();
    for number in 0..10 {
        let path = company.at(2, format!("file{number}"));
        wait_for("a file to come back", || {
            fs::read_to_string(&path).is_ok_and(|found| found == text(number))
        });
    }
    let lost = company.status(2)["hosts"][0]["lost"].as_u64().unwrap() - lost_before;
    assert!(lost >= 10, "{lost} packets were lost: the cut took nothing");
    // It is in packets of its own again: nobody else is there to ask.
    company.unmount(1);
    company.wait_until_together(&[2]);
    for number in 0..10 {
        assert_eq!(fs::read_to_string(company.at(2, format!("file{number}"))).unwrap(), text(number));
    }
    fs::write(company.at(2, "after"), "the cut").unwrap();
    assert_eq!(fs::read_to_string(company.at(2, "after")).unwrap(), "the cut");
}

/// What is in the tree of these nodes, which is the same.
fn contents_of_all(company: &Company, numbers: &[usize]) -> BTreeMap<String, String> {
    company.wait_until_same(numbers);
    std::thread::scope(|scope| {
        let read = |number: &usize| {
            let at = company.at(*number, "");
            scope.spawn(move || contents(&at))
        };
        let readers: Vec<_> = numbers.iter().map(read).collect();
        let mut found: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        let all = found.pop().unwrap();
        assert!(!all.is_empty() && found.iter().all(|one| *one == all), "{found:?} {all:?}");
        all
    })
}

/// For how long programs change the tree; `scripts/together` says more.
fn span() -> Duration {
    let seconds = std::env::var("WIREFS_TOGETHER_SECONDS").ok();
    Duration::from_secs(seconds.map_or(20, |seconds| seconds.parse().unwrap()))
}

/// S-130: programs on three nodes change one tree at once, for 20 s; all roots are equal then, and what each was told is so.
#[test]
fn three_nodes_change_one_tree_at_once_and_have_the_same_at_the_end() {
    let company = Company::new("at-once", 3, &LinkProfile::rtt(Duration::from_millis(10)));
    (1..=3).for_each(|number| company.mount(number, &ROOM));
    company.wait_until_together(&[1, 2, 3]);
    let common = Common::default();
    let mut logs: Vec<Log> = (1..=3).map(Log::new).collect();
    std::thread::scope(|scope| {
        for (index, log) in logs.iter_mut().enumerate() {
            let (at, common) = (company.at(index + 1, ""), &common);
            scope.spawn(move || log.run(&at, index + 1, 1, common));
        }
        let _end = End(&common);
        std::thread::sleep(span());
    });
    company.wait_until_together(&[1, 2, 3]);
    let all = contents_of_all(&company, &[1, 2, 3]);
    logs.iter().for_each(|log| log.check(&all));
    let changes: Vec<u64> = logs.iter().map(|log| log.changes).collect();
    let (least, most) = (changes.iter().min().unwrap(), changes.iter().max().unwrap());
    assert!(least * 2 > *most, "each in its turn: {changes:?}");
    eprintln!("{} s: {changes:?} changes of three nodes, all roots equal", span().as_secs());
}
