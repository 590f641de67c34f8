//! A file system in pings to this machine. Needs root, for raw sockets.

use std::os::unix::fs::PermissionsExt;

use rustix::process::{Signal, kill_process};

use crate::world::{Ran, World, is_alive, wait_for};

/// Mounts at `mnt`, with these words behind.
fn mount(world: &World, more: &[&str]) -> Ran {
    let mut words = vec!["echo", "mnt", "--host", "127.0.0.1"];
    words.extend(more);
    world.wirefs(&words)
}

fn report(world: &World) -> serde_json::Value {
    serde_json::from_str(&world.wirefs(&["echo", "status", "--json", "mnt"]).succeeds()).unwrap()
}

/// What a program would write that is longer than a block.
fn long_text() -> String {
    (0..5_000).map(|number| format!("line {number}\n")).collect()
}

#[test]
fn tree_in_pings_is_written_read_saved_and_loaded() {
    let world = World::new();
    mount(&world, &[]).succeeds();
    world.write("mnt/deep/long.txt", &long_text());
    world.write("mnt/short.txt", "short\n");
    assert_eq!(world.read("mnt/deep/long.txt"), long_text());
    let df = Ran::of(world.command("df").args(["--output=size,avail", "-B1", "mnt"])).succeeds();
    let sizes: Vec<u64> =
        df.lines().nth(1).unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(sizes[1] < sizes[0] && sizes[0] > 1_000_000, "{df}");

    let told = report(&world);
    assert_eq!(
        (&told["blocks_lost"], &told["ending"], &told["keep"]),
        (&0.into(), &"undecided".into(), &"index".into())
    );
    wait_for("contents to leave the memory", || report(&world)["memory"]["gathered"] == 0);
    assert!(told["blocks"].as_u64().unwrap() * told["block_bytes"].as_u64().unwrap() > 50_000, "{told}");
    let page = world.wirefs(&["echo", "status"]).succeeds();
    assert!(page.contains("127.0.0.1") && page.contains("answering") && page.contains("undecided"), "{page}");

    world.wirefs(&["umount", "mnt"]).fails_with(&["end of its data", "--save FILE", "--discard"]);
    assert!(world.is_mounted());
    world.wirefs(&["umount", "--save", "tree", "mnt"]).succeeds();
    assert!(!world.is_mounted());
    let mode = std::fs::metadata(world.path("tree")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    mount(&world, &["--load", "tree", "--copies", "2", "--discard"]).succeeds();
    assert_eq!(world.read("mnt/deep/long.txt"), long_text());
    assert_eq!(world.read("mnt/short.txt"), "short\n");
    assert_eq!(report(&world)["redundancy"], "copies 2");
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn store_that_keeps_only_the_root_saves_what_it_hears() {
    let world = World::new();
    mount(&world, &["--keep", "root", "--code", "2+1", "--save", "tree"]).succeeds();
    world.write("mnt/long.txt", &long_text());
    assert_eq!(report(&world)["blocks"], serde_json::Value::Null);
    world.wirefs(&["umount", "mnt"]).succeeds();
    mount(&world, &["--code", "2+1", "--load", "tree", "--discard"]).succeeds();
    assert_eq!(world.read("mnt/long.txt"), long_text());
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn it_saves_on_sigterm_and_behind_umount_what_nobody_decided_about() {
    let world = World::new();
    for (how, file) in [("term", "tree"), ("umount", "home/.local/state/wirefs")] {
        mount(&world, if how == "term" { &["--save", "tree"] } else { &[] }).succeeds();
        world.write("mnt/kept", how);
        let process = world.process();
        if how == "term" {
            kill_process(process, Signal::TERM).unwrap();
        } else {
            Ran::of(world.command("umount").arg("mnt")).succeeds();
        }
        wait_for("the process to end", || !is_alive(process));
        assert!(!world.is_mounted());
        let mut path = world.path(file);
        if path.is_dir() {
            let mut files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            path = files.find(|file| file.extension().is_some_and(|extension| extension == "tree")).unwrap();
        }
        mount(&world, &["--discard", "--load", path.to_str().unwrap()]).succeeds();
        assert_eq!(world.read("mnt/kept"), how);
        world.wirefs(&["umount", "mnt"]).succeeds();
    }
}

#[test]
fn full_store_refuses_more_and_keeps_what_it_has() {
    let world = World::new();
    mount(&world, &["--park", "300", "--rate", "10000", "--discard"]).succeeds();
    world.write("mnt/first", &long_text());
    let refused = Ran::of(world.command("sh").args(["-c", "head -c 1000000 /dev/zero > mnt/second"]));
    assert!(refused.code != Some(0) && refused.stderr.contains("No space left"), "{refused:?}");
    assert_eq!(world.read("mnt/first"), long_text());
    std::fs::remove_file(world.path("mnt/second")).unwrap();
    wait_for("room for something else", || std::fs::write(world.path("mnt/third"), "there is room").is_ok());
    assert_eq!(world.read("mnt/third"), "there is room");
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn full_mount_can_be_emptied_and_filled_again() {
    let world = World::new();
    for keep in ["index", "root"] {
        mount(&world, &["--park", "150", "--rate", "100000", "--discard", "--keep", keep]).succeeds();
        for _round in 0..2 {
            let fill = "mkdir d; n=0; while head -c 9000 /dev/zero > d/f$n; do n=$((n + 1)); done";
            let filled = Ran::of(world.command("sh").args(["-c", fill]).current_dir(world.path("mnt")));
            assert!(filled.stderr.contains("No space left"), "{filled:?}");
            let clear =
                "set -e; cat d/* > /dev/null; for n in d/*; do rm $n; done; rmdir d; test -z \"$(ls)\"";
            Ran::of(world.command("sh").args(["-c", clear]).current_dir(world.path("mnt"))).succeeds();
        }
        world.wirefs(&["umount", "mnt"]).succeeds();
    }
}

#[test]
fn host_is_added_and_another_drained_while_files_are_read() {
    let world = World::new();
    mount(&world, &["--discard"]).succeeds();
    world.write("mnt/long.txt", &long_text());
    world
        .wirefs(&["echo", "drain", "mnt", "--host", "127.0.0.1"])
        .fails_with(&["room for 0", "add a host first"]);
    world.wirefs(&["echo", "add", "mnt", "--host", "127.0.0.2"]).succeeds();
    wait_for("the new host to have room", || {
        world.wirefs(&["echo", "drain", "mnt", "--host", "127.0.0.1"]).code == Some(0)
    });
    wait_for("the old host to be empty", || report(&world)["hosts"].as_array().unwrap().len() == 1);
    assert_eq!(report(&world)["hosts"][0]["host"], "127.0.0.2");
    assert_eq!(world.read("mnt/long.txt"), long_text());
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn what_cannot_be_done_is_refused_with_the_next_step() {
    let world = World::new();
    world.write("damaged", "WFSECHO1 and nothing of use behind it");
    mount(&world, &["--load", "damaged"]).fails_with(&["damaged", "--save"]);
    mount(&world, &["--host", "127.0.0.1"]).fails_with(&["named twice"]);
    mount(&world, &["--payload", "900"]).fails_with(&["900 bytes", "name another host"]);
    world.wirefs(&["echo", "status", "mnt"]).fails_with(&["nothing is mounted", "wirefs status"]);
    let mut powerless = world.command("setpriv");
    powerless.args([
        "--bounding-set=-net_raw",
        "--inh-caps=-net_raw",
        "wirefs",
        "echo",
        "mnt",
        "--host",
        "127.0.0.1",
    ]);
    Ran::of(&mut powerless).fails_with(&["CAP_NET_RAW", "setcap cap_net_raw+ep"]);
    assert!(!world.is_mounted());
}
