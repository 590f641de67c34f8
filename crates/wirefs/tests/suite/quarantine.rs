//! What the server refuses after programs were told that it is done is kept, shown, taken out and dropped.

use crate::journal::{alone, journals, umount};
use crate::world::{Server, World, wait_for};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;

/// What is kept.
fn kept(world: &World) -> Vec<Value> {
    let list = world.wirefs(&["quarantine", "list", "--json"]).succeeds();
    serde_json::from_str::<Value>(&list).unwrap().as_array().unwrap().clone()
}

/// A directory with a file that the mount has made, where somebody else has made something at the server before it came there.
fn refused(world: &World, server: &Server) -> Vec<Value> {
    alone(world);
    // Programs at the server may be rivals in the export's root, which has changed a moment ago; in this one they are not.
    fs::create_dir(world.path("mnt/own")).unwrap();
    server.kill(Signal::STOP);
    fs::create_dir(world.path("mnt/own/new")).unwrap();
    fs::write(world.path("mnt/own/new/file"), "believed to be safe").unwrap();
    fs::write(world.path("export/own/new"), "somebody else's").unwrap();
    server.kill(Signal::CONT);
    wait_for("three changes to be refused", || kept(world).len() == 3);
    kept(world)
}

/// The one that was to write.
fn written(changes: &[Value]) -> &Value {
    changes.iter().find(|change| change["bytes"] == 19).expect("a write")
}

// S-78
#[test]
fn what_is_refused_of_a_live_mount_is_kept_with_its_bytes_and_told() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    let changes = refused(&world, &server);
    assert!(changes[0]["what"].as_str().unwrap().starts_with("create directory"), "{}", changes[0]);
    assert_eq!((&changes[0]["path"], &changes[0]["source"]), (&"own/new".into(), &world.url().into()));
    assert_eq!(written(&changes)["path"], "own/new/file");
    assert_eq!(world.read("export/own/new"), "somebody else's");
    assert_eq!(world.status()["journal"]["refused"], 3);
    let status = world.wirefs(&["status", "mnt"]).succeeds();
    assert!(status.contains("3 changes were NOT carried out"), "{status}");
    // It outlives the journal that it was in, and the mount.
    world.wirefs(&["sync", "mnt"]).succeeds();
    umount(&world);
    assert_eq!(kept(&world), changes);
}

// S-78
#[test]
fn what_was_refused_is_shown_taken_out_and_dropped() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    let changes = refused(&world, &server);
    let id = written(&changes)["change"].as_str().unwrap().to_owned();
    let list = world.wirefs(&["quarantine", "list"]).succeeds();
    assert!(list.contains(&id) && list.contains("write 19 bytes at 0"), "{list}");
    let shown = world.wirefs(&["quarantine", "show", &id]).succeeds();
    assert!(shown.contains("own/new/file") && shown.contains("the server refused it"), "{shown}");
    world.wirefs(&["quarantine", "take", &id, "rescued"]).succeeds();
    assert_eq!(world.read("rescued"), "believed to be safe");
    world.write("mine", "not to be lost");
    world.wirefs(&["quarantine", "take", &id, "mine"]).fails_with(&["cannot write to mine"]);
    assert_eq!(world.read("mine"), "not to be lost");
    let made = changes[0]["change"].as_str().unwrap();
    world.wirefs(&["quarantine", "take", made, "nothing"]).fails_with(&["no bytes"]);
    world.wirefs(&["quarantine", "drop", &id]).succeeds();
    assert_eq!(kept(&world).len(), 2);
    world.wirefs(&["quarantine", "show", &id]).fails_with(&["wirefs quarantine list"]);
    world.wirefs(&["quarantine", "drop", "--all"]).succeeds();
    assert_eq!(kept(&world), [Value::Null; 0]);
    // The journal forgets what was refused, and does not miss it.
    world.wirefs(&["sync", "mnt"]).succeeds();
    let status = world.status();
    assert_eq!(status["journal"]["aside"], serde_json::json!({}));
    assert_eq!(status["journal"]["failed"], Value::Null);
    umount(&world);
    assert_eq!(journals(&world), [Value::Null; 0]);
}

// S-78
#[test]
fn refused_writes_to_a_file_are_one_line_and_are_taken_together() {
    const PIECE: usize = 1 << 20;
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    fs::create_dir(world.path("mnt/own")).unwrap();
    server.kill(Signal::STOP);
    fs::create_dir(world.path("mnt/own/new")).unwrap();
    let file = fs::File::create(world.path("mnt/own/new/file")).unwrap();
    let data: Vec<u8> = (0..4 * PIECE).map(|at| (at / 1000) as u8).collect();
    for (index, piece) in data.chunks(PIECE).enumerate() {
        file.write_all_at(piece, (index * PIECE) as u64).unwrap();
    }
    drop(file);
    fs::write(world.path("export/own/new"), "somebody else's").unwrap();
    server.kill(Signal::CONT);
    let writes = || kept(&world).iter().filter(|change| change["path"] == "own/new/file").count();
    world.wirefs(&["sync", "mnt"]);
    wait_for("the writes to be refused", || writes() > 3);
    let list = world.wirefs(&["quarantine", "list"]).succeeds();
    let lines: Vec<&str> =
        list.lines().filter(|line| line.contains(" own/new/file: ") && line.contains("writes")).collect();
    let [line] = lines[..] else { panic!("one line: {list}") };
    assert!(line.contains(&format!("bytes 0 to {}", data.len())), "{line}");
    world.wirefs(&["quarantine", "take", "own/new/file", "rescued"]).succeeds();
    assert!(fs::read(world.path("rescued")).unwrap() == data);
    world.wirefs(&["quarantine", "take", "own/new/file", "rescued"]).fails_with(&["cannot write to rescued"]);
    world.wirefs(&["quarantine", "drop", "--all"]).succeeds();
    umount(&world);
}
