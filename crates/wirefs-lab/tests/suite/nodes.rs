//! Machines on one network segment: each finds the others and accesses their files without manual mounts.
//!
//! ```text
//! [linus1] ──┐
//! [linus2] ──┼── bridge          10.77.0.1, .2, .3
//! [linus3] ──┘
//! ```

mod announced;
mod cards;
mod ether;
mod invitation;
mod killed;
mod names;
mod registry;
mod segment;
mod users;

use std::fs;
use std::io::{ErrorKind, Read as _, Seek as _};

use segment::{NodeSegment, wait_for};

const HOST_DOWN: i32 = 112;

/// S-109: the share of each node is at /net/NODE of all nodes, its own at SELF; S-110: an unknown name does not exist.
#[test]
fn each_node_accesses_the_files_of_all_without_manual_mounts() {
    let segment = NodeSegment::of_three("files");
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
    // In mode lease the mount answers a change before the other node has it.
    let target = segment.share(2).join("made");
    wait_for("the file to come", || fs::read_to_string(&target).is_ok_and(|found| found == "by 1"));
    // Without a previous access: creating a directory is the first use of the mount.
    let made = segment.net(3).join("linus2/directory");
    wait_for("a directory to be made", || match fs::create_dir(&made) {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::AlreadyExists,
    });
    wait_for("the directory to come", || segment.share(2).join("directory").is_dir());
}

/// S-111: listing /net, and statfs of a node, connect to no node.
#[test]
fn listing_opens_no_connection_and_first_access_does() {
    let segment = NodeSegment::of_three("listing");
    let net = segment.net(1);
    // On a busy machine a node may count as dead for a moment.
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

/// S-112: access to a dead node fails at once, and delays no other node; S-113: a restarted node is accessible again,
/// also through open files.
#[test]
fn killed_node_is_down_and_works_again_after_restart() {
    let segment = NodeSegment::of_three("killed");
    let mut open = segment.open(1, "linus2/file");
    segment.kill(2);
    // Before the death is detected, other nodes work as before.
    assert_eq!(segment.read(1, "linus3/file"), "of 3\n");
    for here in [1, 3] {
        wait_for("the list to say that it is dead", || segment.state(here, "linus2") == "dead");
        wait_for("the call to say that the host is down", || {
            fs::metadata(segment.net(here).join("linus2/nothing"))
                .is_err_and(|error| error.raw_os_error() == Some(HOST_DOWN))
        });
        wait_for("it not to be listed", || !segment.names(here).contains(&"linus2".to_owned()));
    }
    let error = fs::read_dir(segment.net(1).join("linus2")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(HOST_DOWN), "of a listing too");
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

/// S-115: a node that leaves is gone at once for the others, and its own /net is unmounted.
#[test]
fn leaving_node_unmounts_its_net_and_others_see_it_left() {
    let segment = NodeSegment::of_three("leaves");
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    segment.node(2, &["down"]).succeeds();
    assert_eq!(fs::read_dir(segment.net(2)).unwrap().count(), 0, "nothing is mounted there");
    wait_for("the list to say that it left", || segment.state(1, "linus2") == "left");
    wait_for("the call to say that the host is down", || {
        fs::metadata(segment.net(1).join("linus2/file"))
            .is_err_and(|error| error.raw_os_error() == Some(HOST_DOWN))
    });
    segment.node(2, &["list"]).fails_with("runs no node");
}

/// A cut cable looks like a dead node; both sides recover when it is restored.
#[test]
fn node_behind_a_cut_cable_is_down_until_it_is_restored() {
    let segment = NodeSegment::of_three("cable");
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
