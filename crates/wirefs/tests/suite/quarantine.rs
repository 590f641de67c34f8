//! Changes that the server rejects after they were answered are quarantined, shown, exported and dropped.

use crate::home::{Server, TestHome, wait_for};
use crate::journal::{exclusive, journals, umount};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;

/// Returns the quarantined changes.
fn kept(home: &TestHome) -> Vec<Value> {
    let list = home.wirefs(&["quarantine", "list", "--json"]).succeeds();
    serde_json::from_str::<Value>(&list).unwrap().as_array().unwrap().clone()
}

/// Creates a directory with a file on the mount, while a server program creates a conflicting name.
fn refused(home: &TestHome, server: &Server) -> Vec<Value> {
    exclusive(home);
    // Server programs may conflict in the export's root, which has just changed; in this directory they do not.
    fs::create_dir(home.path("mnt/own")).unwrap();
    server.kill(Signal::STOP);
    fs::create_dir(home.path("mnt/own/new")).unwrap();
    fs::write(home.path("mnt/own/new/file"), "believed to be safe").unwrap();
    fs::write(home.path("export/own/new"), "somebody else's").unwrap();
    server.kill(Signal::CONT);
    wait_for("three changes to be refused", || kept(home).len() == 3);
    kept(home)
}

/// Returns the write.
fn written(changes: &[Value]) -> &Value {
    changes.iter().find(|change| change["bytes"] == 19).expect("a write")
}

// S-92
#[test]
fn rejected_changes_of_a_live_mount_are_quarantined_with_their_data() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    let changes = refused(&home, &server);
    assert!(changes[0]["what"].as_str().unwrap().starts_with("create directory"), "{}", changes[0]);
    assert_eq!((&changes[0]["path"], &changes[0]["source"]), (&"own/new".into(), &home.url().into()));
    assert_eq!(written(&changes)["path"], "own/new/file");
    assert_eq!(home.read("export/own/new"), "somebody else's");
    assert_eq!(home.status()["journal"]["refused"], 3);
    let status = home.wirefs(&["status", "mnt"]).succeeds();
    assert!(status.contains("3 changes were NOT carried out"), "{status}");
    // Quarantined changes outlive their journal and the mount.
    home.wirefs(&["sync", "mnt"]).succeeds();
    umount(&home);
    assert_eq!(kept(&home), changes);
}

// S-92
#[test]
fn quarantined_changes_are_shown_exported_and_dropped() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    let changes = refused(&home, &server);
    let id = written(&changes)["change"].as_str().unwrap().to_owned();
    let list = home.wirefs(&["quarantine", "list"]).succeeds();
    assert!(list.contains(&id) && list.contains("write 19 bytes at 0"), "{list}");
    let shown = home.wirefs(&["quarantine", "show", &id]).succeeds();
    assert!(shown.contains("own/new/file") && shown.contains("the server rejected it"), "{shown}");
    home.wirefs(&["quarantine", "take", &id, "rescued"]).succeeds();
    assert_eq!(home.read("rescued"), "believed to be safe");
    home.write("mine", "not to be lost");
    home.wirefs(&["quarantine", "take", &id, "mine"]).fails_with(&["cannot write to mine"]);
    assert_eq!(home.read("mine"), "not to be lost");
    let made = changes[0]["change"].as_str().unwrap();
    home.wirefs(&["quarantine", "take", made, "nothing"]).fails_with(&["has no data"]);
    home.wirefs(&["quarantine", "drop", &id]).succeeds();
    assert_eq!(kept(&home).len(), 2);
    home.wirefs(&["quarantine", "show", &id]).fails_with(&["wirefs quarantine list"]);
    home.wirefs(&["quarantine", "drop", "--all"]).succeeds();
    assert_eq!(kept(&home), [Value::Null; 0]);
    // The journal has forgotten rejected changes, and needs none of them.
    home.wirefs(&["sync", "mnt"]).succeeds();
    let status = home.status();
    assert_eq!(status["journal"]["aside"], serde_json::json!({}));
    assert_eq!(status["journal"]["failed"], Value::Null);
    umount(&home);
    assert_eq!(journals(&home), [Value::Null; 0]);
}

// S-92
#[test]
fn rejected_writes_to_a_file_are_listed_and_exported_together() {
    const PIECE: usize = 1 << 20;
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    fs::create_dir(home.path("mnt/own")).unwrap();
    server.kill(Signal::STOP);
    fs::create_dir(home.path("mnt/own/new")).unwrap();
    let file = fs::File::create(home.path("mnt/own/new/file")).unwrap();
    let data: Vec<u8> = (0..4 * PIECE).map(|at| (at / 1000) as u8).collect();
    for (index, piece) in data.chunks(PIECE).enumerate() {
        file.write_all_at(piece, (index * PIECE) as u64).unwrap();
    }
    drop(file);
    fs::write(home.path("export/own/new"), "somebody else's").unwrap();
    server.kill(Signal::CONT);
    let writes = || kept(&home).iter().filter(|change| change["path"] == "own/new/file").count();
    home.wirefs(&["sync", "mnt"]);
    wait_for("the writes to be refused", || writes() > 3);
    let list = home.wirefs(&["quarantine", "list"]).succeeds();
    let lines: Vec<&str> =
        list.lines().filter(|line| line.contains(" own/new/file: ") && line.contains("writes")).collect();
    let [line] = lines[..] else { panic!("one line: {list}") };
    assert!(line.contains(&format!("bytes 0 to {}", data.len())), "{line}");
    home.wirefs(&["quarantine", "take", "own/new/file", "rescued"]).succeeds();
    assert!(fs::read(home.path("rescued")).unwrap() == data);
    home.wirefs(&["quarantine", "take", "own/new/file", "rescued"]).fails_with(&["cannot write to rescued"]);
    home.wirefs(&["quarantine", "drop", "--all"]).succeeds();
    umount(&home);
}
