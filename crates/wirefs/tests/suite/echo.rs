//! A PingFS over pings to this machine. Needs root, for raw sockets.

use std::os::unix::fs::PermissionsExt;

use rustix::process::{Signal, kill_process};

use crate::home::{Finished, TestHome, is_alive, wait_for};

/// Mounts at `mnt`, with these further arguments.
fn mount(home: &TestHome, more: &[&str]) -> Finished {
    let mut words = vec!["echo", "mnt", "--host", "127.0.0.1"];
    words.extend(more);
    home.wirefs(&words)
}

fn report(home: &TestHome) -> serde_json::Value {
    serde_json::from_str(&home.wirefs(&["echo", "status", "--json", "mnt"]).succeeds()).unwrap()
}

/// Text longer than a block.
fn long_text() -> String {
    (0..5_000).map(|number| format!("line {number}\n")).collect()
}

#[test]
fn tree_in_pings_is_written_read_saved_and_loaded() {
    let home = TestHome::new();
    mount(&home, &[]).succeeds();
    home.write("mnt/deep/long.txt", &long_text());
    home.write("mnt/short.txt", "short\n");
    assert_eq!(home.read("mnt/deep/long.txt"), long_text());
    let df = Finished::of(home.command("df").args(["--output=size,avail", "-B1", "mnt"])).succeeds();
    let sizes: Vec<u64> =
        df.lines().nth(1).unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(sizes[1] < sizes[0] && sizes[0] > 1_000_000, "{df}");

    let output = report(&home);
    assert_eq!(
        (&output["blocks_lost"], &output["ending"], &output["keep"]),
        (&0.into(), &"undecided".into(), &"index".into())
    );
    wait_for("contents to leave the memory", || report(&home)["memory"]["gathered"] == 0);
    assert!(
        output["blocks"].as_u64().unwrap() * output["block_bytes"].as_u64().unwrap() > 50_000,
        "{output}"
    );
    let page = home.wirefs(&["echo", "status"]).succeeds();
    assert!(page.contains("127.0.0.1") && page.contains("answering") && page.contains("undecided"), "{page}");

    home.wirefs(&["umount", "mnt"]).fails_with(&["discard its data", "--save FILE", "--discard"]);
    assert!(home.is_mounted());
    home.wirefs(&["umount", "--save", "tree", "mnt"]).succeeds();
    assert!(!home.is_mounted());
    let mode = std::fs::metadata(home.path("tree")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    mount(&home, &["--load", "tree", "--copies", "2", "--discard"]).succeeds();
    assert_eq!(home.read("mnt/deep/long.txt"), long_text());
    assert_eq!(home.read("mnt/short.txt"), "short\n");
    assert_eq!(report(&home)["redundancy"], "copies 2");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn store_with_the_root_only_saves_its_tree() {
    let home = TestHome::new();
    mount(&home, &["--keep", "root", "--code", "2+1", "--save", "tree"]).succeeds();
    home.write("mnt/long.txt", &long_text());
    assert_eq!(report(&home)["blocks"], serde_json::Value::Null);
    home.wirefs(&["umount", "mnt"]).succeeds();
    mount(&home, &["--code", "2+1", "--load", "tree", "--discard"]).succeeds();
    assert_eq!(home.read("mnt/long.txt"), long_text());
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn undecided_data_is_saved_on_sigterm_and_after_umount() {
    let home = TestHome::new();
    for (how, file) in [("term", "tree"), ("umount", "home/.local/state/wirefs")] {
        mount(&home, if how == "term" { &["--save", "tree"] } else { &[] }).succeeds();
        home.write("mnt/kept", how);
        let process = home.process();
        if how == "term" {
            kill_process(process, Signal::TERM).unwrap();
        } else {
            Finished::of(home.command("umount").arg("mnt")).succeeds();
        }
        wait_for("the process to end", || !is_alive(process));
        assert!(!home.is_mounted());
        let mut path = home.path(file);
        if path.is_dir() {
            let mut files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            path = files.find(|file| file.extension().is_some_and(|extension| extension == "tree")).unwrap();
        }
        mount(&home, &["--discard", "--load", path.to_str().unwrap()]).succeeds();
        assert_eq!(home.read("mnt/kept"), how);
        home.wirefs(&["umount", "mnt"]).succeeds();
    }
}

#[test]
fn full_store_rejects_writes_and_keeps_its_data() {
    let home = TestHome::new();
    mount(&home, &["--park", "300", "--rate", "10000", "--discard"]).succeeds();
    home.write("mnt/first", &long_text());
    let refused = Finished::of(home.command("sh").args(["-c", "head -c 1000000 /dev/zero > mnt/second"]));
    assert!(refused.code != Some(0) && refused.stderr.contains("No space left"), "{refused:?}");
    assert_eq!(home.read("mnt/first"), long_text());
    std::fs::remove_file(home.path("mnt/second")).unwrap();
    wait_for("room for something else", || std::fs::write(home.path("mnt/third"), "there is room").is_ok());
    assert_eq!(home.read("mnt/third"), "there is room");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn full_mount_can_be_emptied_and_filled_again() {
    let home = TestHome::new();
    for keep in ["index", "root"] {
        mount(&home, &["--park", "150", "--rate", "100000", "--discard", "--keep", keep]).succeeds();
        for _round in 0..2 {
            let fill = "mkdir d; n=0; while head -c 9000 /dev/zero > d/f$n; do n=$((n + 1)); done";
            let filled = Finished::of(home.command("sh").args(["-c", fill]).current_dir(home.path("mnt")));
            assert!(filled.stderr.contains("No space left"), "{filled:?}");
            let clear =
                "set -e; cat d/* > /dev/null; for n in d/*; do rm $n; done; rmdir d; test -z \"$(ls)\"";
            Finished::of(home.command("sh").args(["-c", clear]).current_dir(home.path("mnt"))).succeeds();
        }
        home.wirefs(&["umount", "mnt"]).succeeds();
    }
}

#[test]
fn host_is_added_and_another_drained_while_files_are_read() {
    let home = TestHome::new();
    mount(&home, &["--discard"]).succeeds();
    home.write("mnt/long.txt", &long_text());
    home.wirefs(&["echo", "drain", "mnt", "--host", "127.0.0.1"])
        .fails_with(&["room for 0", "add a host first"]);
    home.wirefs(&["echo", "add", "mnt", "--host", "127.0.0.2"]).succeeds();
    wait_for("the new host to have room", || {
        home.wirefs(&["echo", "drain", "mnt", "--host", "127.0.0.1"]).code == Some(0)
    });
    wait_for("the old host to be empty", || report(&home)["hosts"].as_array().unwrap().len() == 1);
    assert_eq!(report(&home)["hosts"][0]["host"], "127.0.0.2");
    assert_eq!(home.read("mnt/long.txt"), long_text());
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn invalid_requests_are_refused_with_the_next_step() {
    let home = TestHome::new();
    home.write("damaged", "WFSECHO1 and nothing of use behind it");
    mount(&home, &["--load", "damaged"]).fails_with(&["damaged", "--save"]);
    mount(&home, &["--host", "127.0.0.1"]).fails_with(&["named twice"]);
    mount(&home, &["--payload", "900"]).fails_with(&["900 bytes", "name another host"]);
    home.wirefs(&["echo", "status", "mnt"]).fails_with(&["nothing is mounted", "wirefs status"]);
    let mut powerless = home.command("setpriv");
    powerless.args([
        "--bounding-set=-net_raw",
        "--inh-caps=-net_raw",
        "wirefs",
        "echo",
        "mnt",
        "--host",
        "127.0.0.1",
    ]);
    Finished::of(&mut powerless).fails_with(&["CAP_NET_RAW", "setcap cap_net_raw+ep"]);
    assert!(!home.is_mounted());
}
