//! Machines on one segment: each finds the others, and has their files without mounting anything by hand.
//!
//! ```text
//! [linus1] ──┐
//! [linus2] ──┼── bridge          10.77.0.1, .2, .3
//! [linus3] ──┘
//! ```

mod cards;
mod ether;
mod killed;
mod names;
mod registry;
mod segment;
mod users;

use std::fs;
use std::io::{ErrorKind, Read as _, Seek as _};

use segment::{Segment, wait_for};

const HOST_DOWN: i32 = 112;

/// S-80: what each shares is at /net/NODE of all, its own at SELF; S-81: a name that nobody has is not there.
#[test]
fn each_node_has_the_files_of_all_and_nothing_was_mounted_by_hand() {
    let segment = Segment::of_three("files");
    for here in 1..=2 {
        for there in 1..=3 {
            assert_eq!(segment.read(here, &format!("linus{there}/file")), format!("of {there}\n"));
        }
        assert_eq!(segment.read(here, "SELF/file"), format!("of {here}\n"));
        let absent = fs::read(segment.net(here).join("linus9/file")).unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::NotFound);
        wait_for("three nodes and SELF", || segment.names(here).len() == 4);
    }
    let made = segment.net(1).join("linus2/made");
    wait_for("a file to be written", || fs::write(&made, "by 1").is_ok());
    // In mode lease a change is answered before the other node has it.
    let came = segment.share(2).join("made");
    wait_for("the file to come", || fs::read_to_string(&came).is_ok_and(|found| found == "by 1"));
    // No look before: a directory is made by the first use of all.
    let made = segment.net(3).join("linus2/directory");
    wait_for("a directory to be made", || match fs::create_dir(&made) {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::AlreadyExists,
    });
    wait_for("the directory to come", || segment.share(2).join("directory").is_dir());
}

/// S-82: who only looks at /net, and at how much room there is, has nobody dialled.
#[test]
fn a_listing_dials_nobody_and_the_first_use_does() {
    let segment = Segment::of_three("listing");
    let net = segment.net(1);
    // On a machine that has much to do a node may count as dead for a moment.
    for name in segment.names(1) {
        wait_for("an entry to be looked at", || fs::metadata(net.join(&name)).is_ok());
    }
    let status = |program: &str, option: &str, of: &std::path::Path| {
        let mut command = segment.host(1).command(program);
        command.arg(option).arg(of).stdout(std::process::Stdio::null()).status().unwrap()
    };
    wait_for("a long listing", || status("ls", "-l", &net).success());
    wait_for("the room of a node", || status("stat", "-f", &net.join("linus2")).success());
    assert_eq!(segment.connections(1), 0);
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    assert!(segment.connections(1) >= 1);
}

/// S-83: a node that is dead is told so at once, and delays nobody; S-84: one that comes back is there again, for open files
/// too.
#[test]
fn a_killed_node_is_down_and_works_again_when_it_is_back() {
    let segment = Segment::of_three("killed");
    let mut open = segment.open(1, "linus2/file");
    segment.kill(2);
    // While nobody knows yet, the others are as they were.
    assert_eq!(segment.read(1, "linus3/file"), "of 3\n");
    for here in [1, 3] {
        wait_for("the list to say that it is dead", || segment.state(here, "linus2") == "dead");
        wait_for("the call to say that the host is down", || {
            fs::metadata(segment.net(here).join("linus2/nothing"))
                .is_err_and(|error| error.raw_os_error() == Some(HOST_DOWN))
        });
        wait_for("it not to be listed", || !segment.names(here).contains(&"linus2".to_owned()));
    }
    let told = fs::read_dir(segment.net(1).join("linus2")).unwrap_err();
    assert_eq!(told.raw_os_error(), Some(HOST_DOWN), "of a listing too");
    assert_eq!(segment.read(1, "linus3/file"), "of 3\n");

    segment.start(2);
    wait_for("its file to be read again", || {
        fs::read_to_string(segment.net(1).join("linus2/file")).is_ok_and(|text| text == "of 2\n")
    });
    let mut text = String::new();
    wait_for("the open file to be read again", || {
        text.clear();
        open.rewind().is_ok() && open.read_to_string(&mut text).is_ok()
    });
    assert_eq!(text, "of 2\n");
    wait_for("the list to say that it lives", || segment.state(3, "linus2") == "alive");
}

/// S-85: one that leaves is gone at once for the others, and takes its own /net away.
#[test]
fn a_node_that_leaves_takes_its_net_away_and_the_others_know() {
    let segment = Segment::of_three("leaves");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    segment.node(2, &["down"]).succeeds();
    assert_eq!(fs::read_dir(segment.net(2)).unwrap().count(), 0, "nothing is mounted there");
    wait_for("the list to say that it left", || segment.state(1, "linus2") == "left");
    wait_for("the call to say that the host is down", || {
        fs::metadata(segment.net(1).join("linus2/file"))
            .is_err_and(|error| error.raw_os_error() == Some(HOST_DOWN))
    });
    segment.node(2, &["list"]).fails_with("has no node here");
}

/// A cable that is cut is a death, and both halves are whole again when it is mended.
#[test]
fn a_node_behind_a_cut_cable_is_down_until_it_is_mended() {
    let segment = Segment::of_three("cable");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    segment.set_cable(2, "down");
    wait_for("the list to say that it is dead", || segment.state(1, "linus2") == "dead");
    wait_for("it to say that the others are dead", || {
        segment.state(2, "linus1") == "dead" && segment.state(2, "linus3") == "dead"
    });
    assert_eq!(segment.read(2, "SELF/file"), "of 2\n");
    segment.set_cable(2, "up");
    wait_for("it to be there again", || {
        fs::read_to_string(segment.net(1).join("linus2/file")).is_ok_and(|text| text == "of 2\n")
    });
    wait_for("the others to be there again", || {
        fs::read_to_string(segment.net(2).join("linus3/file")).is_ok_and(|text| text == "of 3\n")
    });
}
