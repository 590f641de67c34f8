//! Mounts over ssh; a script replaces ssh and runs the remote command locally.

use crate::home::TestHome;
use std::process::Command;

/// Skips ssh's options and the login, and runs the rest in the remote home.
const FAKE_SSH: &str = "#!/bin/sh\n\
    while [ \"$1\" != -- ]; do shift; done\n\
    echo \"$2\" >logins\n\
    shift 2\n\
    cd export\n\
    exec sh -c \"$*\"\n";

fn fake_ssh(home: &TestHome, script: &str) -> String {
    home.write("fake-ssh.sh", script);
    // Another process creates the program: see `copy_program`.
    let (from, to) = (home.path("fake-ssh.sh"), home.path("fake-ssh"));
    let made = Command::new("install").args(["-m", "755"]).args([from, to]).status().unwrap();
    assert!(made.success());
    format!("ssh_command={}", home.text("fake-ssh"))
}

#[test]
fn a_login_serves_its_directory_through_standard_input_and_output() {
    let home = TestHome::new();
    home.write("export/project/a", "far away\n");
    let option = fake_ssh(&home, FAKE_SSH);
    home.wirefs(&["mount", "me@host:project", "mnt", "-o", &option]).succeeds();
    assert_eq!(home.read("logins"), "me@host\n");
    assert_eq!(home.read("mnt/a"), "far away\n");
    home.write("mnt/b", "new\n");
    home.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(home.read("export/project/b"), "new\n");
    assert_eq!(home.status()["carrier"], "ssh");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn output_of_a_failed_login_is_shown() {
    let home = TestHome::new();
    let refused = fake_ssh(&home, "#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n");
    home.wirefs(&["mount", "host:", "mnt", "-o", &refused])
        .fails_with(&["ssh could not connect to host", "Permission denied (publickey)."]);
    let option = fake_ssh(&home, FAKE_SSH);
    home.wirefs(&["mount", "host:absent", "mnt", "-o", &option]).fails_with(&["absent does not exist"]);
    home.wirefs(&["mount", "host:", "mnt", "-o", "ssh_command=/no/such/ssh"])
        .fails_with(&["/no/such/ssh", "OpenSSH"]);
}

#[test]
fn failed_login_names_the_command_that_was_used() {
    let home = TestHome::new();
    let refused = fake_ssh(&home, "#!/bin/sh\nexit 255\n");
    let program = home.text("fake-ssh");
    home.wirefs(&["mount", "ssh://me@host:2222/srv", "mnt", "-o", &refused])
        .fails_with(&[&format!("`{program} -p 2222 me@host`")]);
    home.wirefs(&["mount", "me@host:", "mnt", "-o", &format!("{refused} -4,port=33")])
        .fails_with(&[&format!("`{program} -4 -p 33 me@host`")]);
}

#[test]
fn host_that_allows_sftp_only_is_named_as_such() {
    let home = TestHome::new();
    let sftp = fake_ssh(&home, "#!/bin/sh\necho 'This service allows sftp connections only.'\nexit 1\n");
    home.wirefs(&["mount", "sftp://me@host/srv", "mnt", "-o", &sftp]).fails_with(&[
        "me@host",
        "allows sftp connections only",
        "starts no programs",
    ]);
    let closed = fake_ssh(&home, "#!/bin/sh\necho 'This account is currently not available.'\nexit 1\n");
    home.wirefs(&["mount", "me@host:", "mnt", "-o", &closed])
        .fails_with(&["This account is currently not available."]);
}

#[test]
fn login_without_wirefs_gets_a_copy() {
    let home = TestHome::new();
    home.write("export/a", "far away\n");
    let without =
        FAKE_SSH.replace("cd export\n", "cd export\nHOME=$PWD/../far PATH=/usr/bin:/bin\nexport HOME PATH\n");
    let option = fake_ssh(&home, &without);
    std::fs::create_dir(home.path("far")).unwrap();
    let ran = home.wirefs(&["mount", "host:", "mnt", "-o", &option]);
    assert!(ran.stderr.contains("copied this one there"), "{ran:?}");
    ran.succeeds();
    assert!(home.path(concat!("far/.cache/wirefs/bin/wirefs-", env!("CARGO_PKG_VERSION"))).exists());
    assert_eq!(home.read("mnt/a"), "far away\n");
    home.wirefs(&["umount", "mnt"]).succeeds();
    let again = home.wirefs(&["mount", "host:", "mnt", "-o", &option]);
    assert_eq!(again.stderr, "");
    home.wirefs(&["umount", "mnt"]).succeeds();
}
