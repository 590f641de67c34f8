//! What was changed below `/net` when the process that is the node was killed.

use crate::journal::journals;
use crate::nodes::{ANY_PORT, NodeProcess};
use crate::world::{World, wait_for};
use rustix::process::Signal;
use std::fs;
use std::io;

/// A node that mounts, and one that shares.
struct Pair {
    here: World,
    there: World,
}

impl Pair {
    fn new() -> Pair {
        Pair { here: World::new(), there: World::new() }
    }

    fn there(&self) -> NodeProcess<'_> {
        NodeProcess::start(&self.there, "two", &ANY_PORT)
    }

    fn here(&self, port: u64) -> NodeProcess<'_> {
        let peer = format!("127.0.0.1:{port}");
        NodeProcess::start(
            &self.here,
            "one",
            &[&ANY_PORT[..], &["--mode", "lease", "--peer", &peer]].concat(),
        )
    }

    /// Changes that the other, which is stopped, does not have when this one is killed. Their directory.
    fn left(&self, there: &NodeProcess<'_>) -> String {
        let mut here = self.here(there.port());
        for attempt in 0.. {
            let name = format!("new{attempt}");
            wait_for("the other node", || fs::read(self.here.path("mnt/two/file")).is_ok());
            there.kill(Signal::STOP);
            // Unless it counts as dead by then, or this one is not alone yet.
            if self.change(&name).is_ok() {
                here.die();
                assert!(!self.there.path(&format!("export/{name}")).exists());
                return name;
            }
            there.kill(Signal::CONT);
        }
        unreachable!("without an end");
    }

    fn change(&self, name: &str) -> io::Result<()> {
        let dir = self.here.path(&format!("mnt/two/{name}"));
        fs::create_dir(&dir)?;
        fs::write(dir.join("draft"), "closed before the end")?;
        fs::rename(dir.join("draft"), dir.join("file"))
    }

    fn await_all(&self, name: &str) {
        let file = self.there.path(&format!("export/{name}/file"));
        wait_for("what was left", || {
            fs::read_to_string(&file).is_ok_and(|text| text == "closed before the end")
        });
    }

    /// Journals of mounts that died.
    fn journals_left(&self) -> usize {
        journals(&self.here).iter().filter(|journal| journal["state"] == "left").count()
    }
}

// S-124
#[test]
fn what_was_changed_on_a_node_is_there_once_the_killed_daemon_is_up_again_and_nobody_asks_for_it() {
    let pair = Pair::new();
    let mut there = pair.there();
    let port = there.port();
    let name = pair.left(&there);
    // With all that had come to its machine, and that it had not read.
    there.die();
    let listed = pair.here.wirefs(&["recover", "--list"]).succeeds();
    assert!(listed.contains(&format!("{}: ", pair.here.text("mnt/two"))), "{listed}");
    let again = format!("127.0.0.1:{port}");
    let _there = NodeProcess::start(&pair.there, "two", &["--listen", &again]);
    let here = pair.here(port);
    pair.await_all(&name);
    wait_for("the journal's end", || pair.journals_left() == 0);
    assert_eq!(pair.here.read(&format!("mnt/two/{name}/file")), "closed before the end");
    drop(here);
    assert!(journals(&pair.here).is_empty(), "of what ended in order nothing is left");
}

// S-124
#[test]
fn what_was_left_for_a_node_that_is_not_there_stays_until_it_is() {
    let pair = Pair::new();
    let there = pair.there();
    let port = there.port();
    let name = pair.left(&there);
    let place = pair.here.text("mnt/two");
    let without = pair.here.wirefs(&["recover"]);
    assert!(without.code == Some(1) && without.stdout.contains("wirefs node up"), "{without:?}");
    let here = pair.here(port);
    let meanwhile = pair.here.wirefs(&["recover", &place]);
    assert!(meanwhile.code == Some(1) && meanwhile.stdout.contains("is not there"), "{meanwhile:?}");
    assert_eq!(pair.journals_left(), 1);
    there.kill(Signal::CONT);
    pair.await_all(&name);
    wait_for("the journal's end", || pair.journals_left() == 0);
    let after = pair.here.wirefs(&["recover", &place]).succeeds();
    assert!(after.contains("nothing was left"), "{after}");
    drop(here);
}

// S-124
#[test]
fn what_was_left_comes_to_a_node_by_its_address_too() {
    let pair = Pair::new();
    let there = pair.there();
    let url = format!("tls://127.0.0.1:{}", there.port());
    let name = pair.left(&there);
    there.kill(Signal::CONT);
    let said = pair.here.wirefs(&["recover", &url]).succeeds();
    assert!(said.contains("were brought to the server"), "{said}");
    pair.await_all(&name);
    assert!(journals(&pair.here).is_empty());
}

// S-127
#[test]
fn what_a_node_does_not_take_is_kept_and_told() {
    let pair = Pair::new();
    let there = pair.there();
    let port = there.port();
    let name = pair.left(&there);
    fs::write(pair.there.path(&format!("export/{name}")), "somebody else's").unwrap();
    there.kill(Signal::CONT);
    let _here = pair.here(port);
    let kept = format!("{} {name}: create directory", pair.here.text("mnt/two"));
    wait_for("what was not taken", || pair.here.wirefs(&["quarantine", "list"]).succeeds().contains(&kept));
    assert_eq!(pair.there.read(&format!("export/{name}")), "somebody else's");
}

// S-127
#[test]
fn a_node_keeps_no_journal_where_none_is_wished() {
    let pair = Pair::new();
    let there = pair.there();
    let peer = format!("127.0.0.1:{}", there.port());
    let more = [&ANY_PORT[..], &["--mode", "lease", "--no-journal", "--peer", &peer]].concat();
    let _here = NodeProcess::start(&pair.here, "one", &more);
    wait_for("the other node", || fs::read(pair.here.path("mnt/two/file")).is_ok());
    fs::write(pair.here.path("mnt/two/text"), "text").unwrap();
    assert!(journals(&pair.here).is_empty());
}
