//! Through ssh; a script stands for it, that runs the far command here.

use crate::world::World;
use std::process::Command;

/// Passes over ssh's options and the login, and runs what remains in the far home.
const FAKE_SSH: &str = "#!/bin/sh\n\
    while [ \"$1\" != -- ]; do shift; done\n\
    echo \"$2\" >logins\n\
    shift 2\n\
    cd export\n\
    exec sh -c \"$*\"\n";

fn fake_ssh(world: &World, script: &str) -> String {
    world.write("fake-ssh.sh", script);
    // Another process makes the program: see `copy_program`.
    let (from, to) = (world.path("fake-ssh.sh"), world.path("fake-ssh"));
    let made = Command::new("install").args(["-m", "755"]).args([from, to]).status().unwrap();
    assert!(made.success());
    format!("ssh_command={}", world.text("fake-ssh"))
}

#[test]
fn a_login_serves_its_directory_through_standard_input_and_output() {
    let world = World::new();
    world.write("export/project/a", "far away\n");
    let option = fake_ssh(&world, FAKE_SSH);
    world.wirefs(&["mount", "me@host:project", "mnt", "-o", &option]).succeeds();
    assert_eq!(world.read("logins"), "me@host\n");
    assert_eq!(world.read("mnt/a"), "far away\n");
    world.write("mnt/b", "new\n");
    world.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(world.read("export/project/b"), "new\n");
    assert_eq!(world.status()["carrier"], "ssh");
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn what_the_login_says_when_it_fails_is_shown() {
    let world = World::new();
    let refused = fake_ssh(&world, "#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n");
    world
        .wirefs(&["mount", "host:", "mnt", "-o", &refused])
        .fails_with(&["ssh could not connect to host", "Permission denied (publickey)."]);
    let option = fake_ssh(&world, FAKE_SSH);
    world.wirefs(&["mount", "host:absent", "mnt", "-o", &option]).fails_with(&["absent does not exist"]);
    world
        .wirefs(&["mount", "host:", "mnt", "-o", "ssh_command=/no/such/ssh"])
        .fails_with(&["/no/such/ssh", "OpenSSH"]);
}

#[test]
fn a_login_without_wirefs_gets_a_copy() {
    let world = World::new();
    world.write("export/a", "far away\n");
    let without =
        FAKE_SSH.replace("cd export\n", "cd export\nHOME=$PWD/../far PATH=/usr/bin:/bin\nexport HOME PATH\n");
    let option = fake_ssh(&world, &without);
    std::fs::create_dir(world.path("far")).unwrap();
    let ran = world.wirefs(&["mount", "host:", "mnt", "-o", &option]);
    assert!(ran.stderr.contains("copied this one there"), "{ran:?}");
    ran.succeeds();
    assert!(world.path(concat!("far/.cache/wirefs/bin/wirefs-", env!("CARGO_PKG_VERSION"))).exists());
    assert_eq!(world.read("mnt/a"), "far away\n");
    world.wirefs(&["umount", "mnt"]).succeeds();
    let again = world.wirefs(&["mount", "host:", "mnt", "-o", &option]);
    assert_eq!(again.stderr, "");
    world.wirefs(&["umount", "mnt"]).succeeds();
}
