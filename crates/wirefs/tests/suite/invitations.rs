//! Invitations: two machines, here two homes, exchange keys by a code.

use crate::home::{Finished, Server, TestHome, WIREFS, wait_for};
use crate::nodes::ANY_PORT;
use std::io::Write as _;
use std::process::Stdio;
use wirefs_lab::port::ReservedPort;

const KEYS: &str = "home/.config/wirefs/authorized_keys";

/// Starts an invitation on any loopback port; returns it with `CODE@HOST:PORT`.
fn invite(home: &TestHome) -> (Server, String) {
    invite_at(home, 0)
}

/// The same, on this port.
fn invite_at(home: &TestHome, port: u16) -> (Server, String) {
    let mut command = home.command(WIREFS);
    let listen = format!("127.0.0.1:{port}");
    command.args(["node", "invite", "--name", "one", "--listen", &listen]);
    let notes = std::fs::File::create(home.path("notes")).unwrap();
    let server = Server::start({
        command.stdout(Stdio::piped()).stderr(notes);
        command
    });
    let notes = home.read("notes");
    let (_, port) = notes.split_once("@HOST:").unwrap();
    let port = port.split(',').next().unwrap();
    let place = format!("{}@127.0.0.1:{port}", server.line.trim());
    (server, place)
}

/// `node up --join` in the foreground would stay; this one ends because of the absent directory, after it has joined.
fn join(home: &TestHome, place: &str) -> Finished {
    let words = ["node", "up", "--name", "two", "--share", "absent", "--at", "mnt", "--join", place];
    home.wirefs(&[&words[..], &ANY_PORT].concat())
}

/// S-174: each machine has the other's key afterwards, and the nodes accept each other.
#[test]
fn invited_machine_joins_a_running_node_by_one_command() {
    let homes = [TestHome::new(), TestHome::new()];
    homes[0].write("export/file", "of one\n");
    let line = homes[0].wirefs(&["identity"]).succeeds();
    homes[0].write(KEYS, &line);
    let up = ["node", "up", "--name", "one", "--share", "export", "--at", "mnt"];
    homes[0].wirefs(&[&up[..], &ANY_PORT].concat()).succeeds();
    let list = |home: &TestHome| -> Vec<serde_json::Value> {
        serde_json::from_str(&home.wirefs(&["node", "list", "--json"]).succeeds()).unwrap()
    };
    let peer = format!("127.0.0.1:{}", list(&homes[0])[0]["port"]);

    let (invitation, place) = invite(&homes[0]);
    let up = ["node", "up", "--name", "two", "--at", "mnt", "--peer", &peer, "--join", &place];
    let joined = homes[1].wirefs(&[&up[..], &ANY_PORT].concat());
    assert!(joined.stderr.contains("one may join from now on"), "{joined:?}");
    joined.succeeds();
    assert!(invitation.end().succeeds().contains("two may join from now on"));
    assert!(homes[0].read(KEYS).ends_with("two\n") && homes[1].read(KEYS).ends_with("one\n"));
    wait_for("the running node to accept the new one", || {
        std::fs::read_to_string(homes[1].path("mnt/one/file")).is_ok_and(|text| text == "of one\n")
    });
    for home in &homes {
        home.wirefs(&["node", "down"]).succeeds();
    }
}

/// S-175: the code is good once.
#[test]
fn used_code_admits_no_second_machine() {
    let homes = [TestHome::new(), TestHome::new(), TestHome::new()];
    // No other program listens there after the invitation.
    let port = ReservedPort::unused().unwrap();
    let (invitation, place) = invite_at(&homes[0], port.number());
    join(&homes[1], &place).fails_with(&["the directory to share"]);
    invitation.end().succeeds();
    join(&homes[2], &place).fails_with(&["cannot reach an invitation"]);
    assert!(!homes[2].path(KEYS).exists());
    assert_eq!(homes[0].read(KEYS).lines().count(), 1);
}

/// S-175: three wrong codes end the invitation, and store nothing.
#[test]
fn wrong_codes_end_the_invitation() {
    let homes = [TestHome::new(), TestHome::new()];
    let (invitation, place) = invite(&homes[0]);
    let (code, host) = place.split_once('@').unwrap();
    let wrong = if code.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{wrong}@{host}", &code[..code.len() - 1]);
    for _ in 0..3 {
        join(&homes[1], &wrong).fails_with(&["the code is wrong"]);
    }
    assert_eq!(invitation.end().code, Some(1));
    assert!(homes[0].read("notes").contains("wrong codes were tried"), "{}", homes[0].read("notes"));
    assert!(homes.iter().all(|home| !home.path(KEYS).exists()));
}

/// `--join -` reads the code from standard input.
#[test]
fn code_is_read_from_standard_input() {
    let homes = [TestHome::new(), TestHome::new()];
    let (invitation, place) = invite(&homes[0]);
    let mut command = homes[1].command(WIREFS);
    command.args(["node", "up", "--name", "two", "--share", "absent", "--at", "mnt", "--join", "-"]);
    command.args(ANY_PORT).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{}\n", place.to_uppercase()).as_bytes()).unwrap();
    child.wait().unwrap();
    invitation.end().succeeds();
    assert!(homes[1].read(KEYS).ends_with("one\n"));
}

/// A key that the user has limited keeps its limits.
#[test]
fn invited_key_keeps_the_limits_that_it_has() {
    let homes = [TestHome::new(), TestHome::new()];
    let line = format!("read-only {}", homes[1].wirefs(&["identity"]).succeeds());
    homes[0].write(KEYS, &line);
    let (invitation, place) = invite(&homes[0]);
    join(&homes[1], &place).fails_with(&["the directory to share"]);
    invitation.end().succeeds();
    assert_eq!(homes[0].read(KEYS), line);
}

#[test]
fn invitation_reports_errors() {
    let home = TestHome::new();
    let up = ["node", "up", "--name", "one", "--at", "mnt", "--join"];
    let bad = home.wirefs(&[&up[..], &["k7-4fm"]].concat());
    assert!(bad.stderr.contains("codes look like k7-4fm-q2x"), "{bad:?}");
    let port = ReservedPort::unused().unwrap();
    let (invitation, place) = invite_at(&home, port.number());
    let (_, listen) = place.split_once('@').unwrap();
    home.wirefs(&["node", "invite", "--name", "one", "--listen", listen])
        .fails_with(&["cannot listen", listen]);
    drop(invitation);
    home.wirefs(&[&up[..], &[place.as_str()]].concat()).fails_with(&["cannot reach an invitation", listen]);
}
