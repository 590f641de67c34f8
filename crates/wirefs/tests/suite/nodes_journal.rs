//! Recovery of changes below `/net` after the node's process was killed.

use crate::home::{TestHome, wait_for};
use crate::journal::journals;
use crate::nodes::{ANY_PORT, NodeProcess};
use rustix::process::Signal;
use std::fs;
use std::io;

/// A node that mounts, and one with an export.
struct Pair {
    here: TestHome,
    there: TestHome,
}

impl Pair {
    fn new() -> Pair {
        Pair { here: TestHome::new(), there: TestHome::new() }
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

    /// Makes changes that the other, stopped node does not have when this one is killed. Returns their directory.
    fn leave_pending(&self, there: &NodeProcess<'_>) -> String {
        let mut here = self.here(there.port());
        for attempt in 0.. {
            let name = format!("new{attempt}");
            wait_for("the other node", || fs::read(self.here.path("mnt/two/file")).is_ok());
            there.kill(Signal::STOP);
            // Unless it counts as dead already, or this session is not exclusive yet.
            if self.change(&name).is_ok() {
                here.crash();
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

    /// Returns the number of journals of dead mounts.
    fn journals_left(&self) -> usize {
        journals(&self.here).iter().filter(|journal| journal["state"] == "left").count()
    }
}

// S-117
#[test]
fn pending_changes_of_a_killed_node_are_sent_after_its_restart() {
    let pair = Pair::new();
    let mut there = pair.there();
    let port = there.port();
    let name = pair.leave_pending(&there);
    // With all data that its machine received and it did not read.
    there.crash();
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

// S-117
#[test]
fn pending_changes_for_an_absent_node_are_kept_until_it_joins() {
    let pair = Pair::new();
    let there = pair.there();
    let port = there.port();
    let name = pair.leave_pending(&there);
    let place = pair.here.text("mnt/two");
    let without = pair.here.wirefs(&["recover"]);
    assert!(without.code == Some(1) && without.stdout.contains("wirefs node up"), "{without:?}");
    let here = pair.here(port);
    let meanwhile = pair.here.wirefs(&["recover", &place]);
    assert!(meanwhile.code == Some(1) && meanwhile.stdout.contains("is offline"), "{meanwhile:?}");
    assert_eq!(pair.journals_left(), 1);
    there.kill(Signal::CONT);
    pair.await_all(&name);
    wait_for("the journal's end", || pair.journals_left() == 0);
    let after = pair.here.wirefs(&["recover", &place]).succeeds();
    assert!(after.contains("no killed mount has unsent changes"), "{after}");
    drop(here);
}

// S-117
#[test]
fn pending_changes_can_be_sent_by_address() {
    let pair = Pair::new();
    let there = pair.there();
    let url = format!("tls://127.0.0.1:{}", there.port());
    let name = pair.leave_pending(&there);
    there.kill(Signal::CONT);
    let output = pair.here.wirefs(&["recover", &url]).succeeds();
    assert!(output.contains("have now been sent"), "{output}");
    pair.await_all(&name);
    assert!(journals(&pair.here).is_empty());
}

// S-118
#[test]
fn changes_rejected_by_a_node_are_quarantined_and_reported() {
    let pair = Pair::new();
    let there = pair.there();
    let port = there.port();
    let name = pair.leave_pending(&there);
    fs::write(pair.there.path(&format!("export/{name}")), "somebody else's").unwrap();
    there.kill(Signal::CONT);
    let _here = pair.here(port);
    let kept = format!("{} {name}: create directory", pair.here.text("mnt/two"));
    wait_for("what was not taken", || pair.here.wirefs(&["quarantine", "list"]).succeeds().contains(&kept));
    assert_eq!(pair.there.read(&format!("export/{name}")), "somebody else's");
}

// S-118
#[test]
fn node_has_no_journal_if_disabled() {
    let pair = Pair::new();
    let there = pair.there();
    let peer = format!("127.0.0.1:{}", there.port());
    let more = [&ANY_PORT[..], &["--mode", "lease", "--no-journal", "--peer", &peer]].concat();
    let _here = NodeProcess::start(&pair.here, "one", &more);
    wait_for("the other node", || fs::read(pair.here.path("mnt/two/file")).is_ok());
    fs::write(pair.here.path("mnt/two/text"), "text").unwrap();
    assert!(journals(&pair.here).is_empty());
}
