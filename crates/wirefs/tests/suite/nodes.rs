//! Nodes on one machine that are configured as peers, without a common segment.

use crate::home::{Finished, Server, TestHome, wait_for};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// A node in the foreground, ended with the test.
pub(crate) struct NodeProcess<'a> {
    home: &'a TestHome,
    process: Option<Server>,
}

impl NodeProcess<'_> {
    /// Starts a node on a loopback port and waits until it reports that it has joined.
    pub(crate) fn start<'a>(home: &'a TestHome, name: &str, more: &[&str]) -> NodeProcess<'a> {
        home.write("export/file", &format!("of {name}\n"));
        let mut command = home.command(crate::home::WIREFS);
        command.args(["node", "up", "-f", "--name", name, "--share", "export", "--at", "mnt"]);
        command.arg("--open").args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        NodeProcess { home, process: Some(Server::start(command)) }
    }

    /// Sends a signal to the node's process.
    pub(crate) fn kill(&self, signal: Signal) {
        self.process.as_ref().unwrap().kill(signal);
    }

    /// Kills it, without a cleanup.
    pub(crate) fn crash(&mut self) {
        self.kill(Signal::KILL);
        drop(self.process.take());
    }

    fn list(&self) -> Vec<serde_json::Value> {
        serde_json::from_str(&self.home.wirefs(&["node", "list", "--json"]).succeeds()).unwrap()
    }

    pub(crate) fn port(&self) -> u64 {
        self.list()[0]["port"].as_u64().unwrap()
    }
}

impl Drop for NodeProcess<'_> {
    fn drop(&mut self) {
        self.home.wirefs(&["node", "down"]);
        drop(self.process.take());
        // Removes the mounts of a killed node.
        let mut umount = self.home.command("umount");
        let _gone = umount.args(["-lq", &self.home.text("mnt")]).stderr(Stdio::null()).status();
    }
}

pub(crate) const ANY_PORT: [&str; 2] = ["--listen", "127.0.0.1:0"];

#[test]
fn configured_peer_is_found_and_both_nodes_are_listed() {
    let homes = [TestHome::new(), TestHome::new()];
    let first = NodeProcess::start(&homes[0], "one", &ANY_PORT);
    let peer = format!("127.0.0.1:{}", first.port());
    let second = NodeProcess::start(&homes[1], "two", &[&ANY_PORT[..], &["--peer", &peer]].concat());
    for (node, other) in [(&first, "two"), (&second, "one")] {
        wait_for("the other, with its figures", || {
            let list = node.list();
            let other = list.iter().find(|node| node["name"] == other);
            other.is_some_and(|node| node["state"] == "alive" && node["all_bytes"].as_u64() > Some(0))
        });
    }
    let list = first.list();
    assert_eq!((&list[0]["name"], &list[0]["own"]), (&"one".into(), &true.into()));
    assert_eq!((&list[1]["exports"][0], &list[1]["addresses"][0]), (&"share".into(), &"127.0.0.1".into()));
    assert!(list[1]["key"].as_str().unwrap().starts_with("SHA256:"));
    let text = homes[0].wirefs(&["node", "list"]).succeeds();
    assert!(text.starts_with("NODE") && text.lines().count() == 3, "{text}");
    wait_for("the other's file", || {
        std::fs::read_to_string(homes[0].path("mnt/two/file")).is_ok_and(|text| text == "of two\n")
    });
    let text = homes[0].wirefs(&["status", "mnt/two"]).succeeds();
    assert!(text.contains("two: alive, over tcp+tls"), "{text}");
    assert!(homes[0].wirefs(&["status", "mnt"]).succeeds().contains("two: alive"));
    assert_eq!(homes[0].status_of("mnt/two")["name"], "two");
    let text = homes[0].wirefs(&["sync", "mnt/two"]).fails_with(&["served by this user's node"]);
    assert!(!text.contains("umount -f"), "{text}");
}

#[test]
fn node_without_authorized_keys_is_refused_unless_open() {
    let home = TestHome::new();
    let up = ["node", "up", "--share", "export", "--at", "mnt", "--listen", "127.0.0.1:0"];
    home.wirefs(&up).fails_with(&["authorized_keys does not exist", "wirefs identity", "--open"]);
    assert!(!home.is_mounted());
    let open = home.wirefs(&[&up[..], &["--open"]].concat());
    assert!(open.stderr.contains("everyone who can send to UDP port"), "{open:?}");
    open.succeeds();
    home.wirefs(&["node", "down"]).succeeds();
    home.write("home/.config/wirefs/authorized_keys", &home.wirefs(&["identity"]).succeeds());
    let listed = home.wirefs(&up);
    // The node of another test may have the card of this machine for the moment, which is said too.
    let is_about_card = |line: &&str| line.contains("another wirefs server listens on");
    assert_eq!(listed.stderr.lines().filter(|line| !is_about_card(line)).collect::<Vec<_>>(), [""; 0]);
    listed.succeeds();
    home.wirefs(&["node", "down"]).succeeds();
}

#[test]
fn node_reports_errors() {
    let home = TestHome::new();
    home.wirefs(&["node", "list"]).fails_with(&["runs no node", "wirefs node up"]);
    home.wirefs(&["node", "down"]).fails_with(&["runs no node"]);
    let absent = ["node", "up", "--open", "--share", "absent", "--at", "mnt", "--listen", "127.0.0.1:0"];
    home.wirefs(&absent).fails_with(&["the directory to share"]);
    let card =
        ["node", "up", "--at", "mnt", "--name", "one", "--open", "--listen", "0.0.0.0:0", "--nic", "absent0"];
    home.wirefs(&card).fails_with(&["absent0", "ip -brief address"]);
    home.write("keys", "");
    std::fs::set_permissions(home.path("keys"), std::fs::Permissions::from_mode(0o666)).unwrap();
    let keys = ["node", "up", "--at", "mnt", "--listen", "127.0.0.1:0", "--authorized", "keys"];
    home.wirefs(&keys).fails_with(&["keys can be changed", "chmod"]);
    let _node = NodeProcess::start(&home, "one", &ANY_PORT);
    let again = ["node", "up", "--open", "--at", "other", "--listen", "127.0.0.1:0"];
    home.wirefs(&again).fails_with(&["already runs a node", "wirefs node down"]);
}

#[test]
fn node_with_a_long_runtime_directory_is_listed_and_ended() {
    let home = TestHome::new();
    let long = home.path(&"d".repeat(120));
    std::fs::create_dir(&long).unwrap();
    std::fs::set_permissions(&long, std::fs::Permissions::from_mode(0o700)).unwrap();
    let there = |words: &[&str]| -> Command {
        let mut command = home.command(crate::home::WIREFS);
        command.args(words).env("XDG_RUNTIME_DIR", &long);
        command
    };
    let mut up =
        there(&["node", "up", "--open", "-f", "--name", "one", "--at", "mnt", "--listen", "127.0.0.1:0"]);
    let node = Server::start({
        up.stdout(Stdio::piped()).stderr(Stdio::piped());
        up
    });
    let list = Finished::of(&mut there(&["node", "list"])).succeeds();
    assert!(list.contains("one"), "{list}");
    Finished::of(&mut there(&["node", "down"])).succeeds();
    node.end().succeeds();
}
