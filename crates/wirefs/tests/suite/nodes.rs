//! Nodes of one machine that know each other as peers, without a segment between them.

use crate::world::{Ran, Server, World, wait_for};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// A node that runs in the foreground, ended with the test.
pub(crate) struct NodeProcess<'a> {
    world: &'a World,
    process: Option<Server>,
}

impl NodeProcess<'_> {
    /// Starts a node on a port of the loopback and waits until it says that it has joined.
    pub(crate) fn start<'a>(world: &'a World, name: &str, more: &[&str]) -> NodeProcess<'a> {
        world.write("export/file", &format!("of {name}\n"));
        let mut command = world.command(crate::world::WIREFS);
        command.args(["node", "up", "-f", "--name", name, "--share", "export", "--at", "mnt"]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        NodeProcess { world, process: Some(Server::start(command)) }
    }

    /// Sends a signal to the process that is the node.
    pub(crate) fn kill(&self, signal: Signal) {
        self.process.as_ref().unwrap().kill(signal);
    }

    /// Kills it, and leaves what is left of it.
    pub(crate) fn die(&mut self) {
        self.kill(Signal::KILL);
        drop(self.process.take());
    }

    fn list(&self) -> Vec<serde_json::Value> {
        serde_json::from_str(&self.world.wirefs(&["node", "list", "--json"]).succeeds()).unwrap()
    }

    pub(crate) fn port(&self) -> u64 {
        self.list()[0]["port"].as_u64().unwrap()
    }
}

impl Drop for NodeProcess<'_> {
    fn drop(&mut self) {
        self.world.wirefs(&["node", "down"]);
        drop(self.process.take());
        // Of one that did not end in order.
        let mut umount = self.world.command("umount");
        let _gone = umount.args(["-lq", &self.world.text("mnt")]).stderr(Stdio::null()).status();
    }
}

pub(crate) const ANY_PORT: [&str; 2] = ["--listen", "127.0.0.1:0"];

#[test]
fn a_node_that_was_named_as_a_peer_is_found_and_both_are_listed() {
    let worlds = [World::new(), World::new()];
    let first = NodeProcess::start(&worlds[0], "one", &ANY_PORT);
    let peer = format!("127.0.0.1:{}", first.port());
    let second = NodeProcess::start(&worlds[1], "two", &[&ANY_PORT[..], &["--peer", &peer]].concat());
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
    let text = worlds[0].wirefs(&["node", "list"]).succeeds();
    assert!(text.starts_with("NODE") && text.lines().count() == 3, "{text}");
    wait_for("the other's file", || {
        std::fs::read_to_string(worlds[0].path("mnt/two/file")).is_ok_and(|text| text == "of two\n")
    });
    let text = worlds[0].wirefs(&["status", "mnt/two"]).succeeds();
    assert!(text.contains("two: alive, over tcp+tls"), "{text}");
    assert!(worlds[0].wirefs(&["status", "mnt"]).succeeds().contains("two: alive"));
    assert_eq!(worlds[0].status_of("mnt/two")["name"], "two");
    let text = worlds[0].wirefs(&["sync", "mnt/two"]).fails_with(&["served by this user's node"]);
    assert!(!text.contains("umount -f"), "{text}");
}

#[test]
fn a_node_says_what_is_wrong() {
    let world = World::new();
    world.wirefs(&["node", "list"]).fails_with(&["has no node here", "wirefs node up"]);
    world.wirefs(&["node", "down"]).fails_with(&["has no node here"]);
    let absent = ["node", "up", "--share", "absent", "--at", "mnt", "--listen", "127.0.0.1:0"];
    world.wirefs(&absent).fails_with(&["the directory to share"]);
    let card = ["node", "up", "--at", "mnt", "--name", "one", "--listen", "0.0.0.0:0", "--nic", "absent0"];
    world.wirefs(&card).fails_with(&["absent0", "ip -brief address"]);
    world.write("keys", "");
    std::fs::set_permissions(world.path("keys"), std::fs::Permissions::from_mode(0o666)).unwrap();
    let keys = ["node", "up", "--at", "mnt", "--listen", "127.0.0.1:0", "--authorized", "keys"];
    world.wirefs(&keys).fails_with(&["keys can be changed", "chmod"]);
    let _node = NodeProcess::start(&world, "one", &ANY_PORT);
    let again = ["node", "up", "--at", "other", "--listen", "127.0.0.1:0"];
    world.wirefs(&again).fails_with(&["has a node here already", "wirefs node down"]);
}

#[test]
fn a_node_whose_runtime_directory_has_a_long_name_is_listed_and_ended() {
    let world = World::new();
    let long = world.path(&"d".repeat(120));
    std::fs::create_dir(&long).unwrap();
    std::fs::set_permissions(&long, std::fs::Permissions::from_mode(0o700)).unwrap();
    let there = |words: &[&str]| -> Command {
        let mut command = world.command(crate::world::WIREFS);
        command.args(words).env("XDG_RUNTIME_DIR", &long);
        command
    };
    let mut up = there(&["node", "up", "-f", "--name", "one", "--at", "mnt", "--listen", "127.0.0.1:0"]);
    let node = Server::start({
        up.stdout(Stdio::piped()).stderr(Stdio::piped());
        up
    });
    let list = Ran::of(&mut there(&["node", "list"])).succeeds();
    assert!(list.contains("one"), "{list}");
    Ran::of(&mut there(&["node", "down"])).succeeds();
    node.end().succeeds();
}
