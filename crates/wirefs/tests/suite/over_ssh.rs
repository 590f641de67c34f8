//! Mounts over ssh; a script replaces ssh and runs the remote command locally.

use crate::home::TestHome;
use std::process::Command;

/// Skips ssh's options and the login, and runs the rest in the remote home.
pub(crate) const FAKE_SSH: &str = "#!/bin/sh\n\
    while [ \"$1\" != -- ]; do shift; done\n\
    echo \"$2\" >logins\n\
    shift 2\n\
    cd export\n\
    exec sh -c \"$*\"\n";

pub(crate) fn fake_ssh(home: &TestHome, script: &str) -> String {
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
    home.wirefs(&["mount", "ssh://me@host/srv", "mnt", "-o", &sftp]).fails_with(&[
        "me@host",
        "allows sftp connections only",
        "starts no programs",
    ]);
    let closed = fake_ssh(&home, "#!/bin/sh\necho 'This account is currently not available.'\nexit 1\n");
    home.wirefs(&["mount", "me@host:", "mnt", "-o", &closed])
        .fails_with(&["This account is currently not available."]);
}

/// Runs the remote command with a home of its own, and without an installed wirefs.
fn without_wirefs() -> String {
    FAKE_SSH.replace("cd export\n", "cd export\nHOME=$PWD/../far PATH=/usr/bin:/bin\nexport HOME PATH\n")
}

/// The names of the copies, and of anything else beside them.
fn copies(home: &TestHome) -> Vec<String> {
    let dir = std::fs::read_dir(home.path("far/.cache/wirefs/bin")).into_iter().flatten().flatten();
    dir.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn login_without_wirefs_gets_a_copy_over_one_connection() {
    let home = TestHome::new();
    home.write("export/a", "far away\n");
    let option = fake_ssh(&home, &without_wirefs().replace(">logins", ">>logins"));
    std::fs::create_dir(home.path("far")).unwrap();
    let ran = home.wirefs(&["mount", "host:", "mnt", "-o", &option]);
    assert!(ran.stderr.contains("wirefs is not installed on host; copying it there"), "{ran:?}");
    ran.succeeds();
    assert_eq!(home.read("logins"), "host\n");
    let hash = crate::home::Finished::of(home.command("sha256sum").arg(crate::home::WIREFS)).succeeds();
    assert_eq!(copies(&home), [format!("wirefs-{}", &hash[..16])]);
    assert_eq!(home.read("mnt/a"), "far away\n");
    home.wirefs(&["umount", "mnt"]).succeeds();
    let again = home.wirefs(&["mount", "host:", "mnt", "-o", &option]);
    assert!(!again.stderr.contains("copying"), "{again:?}");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn copy_is_made_only_for_a_directory_that_exists() {
    let home = TestHome::new();
    let option = fake_ssh(&home, &without_wirefs());
    std::fs::create_dir(home.path("far")).unwrap();
    home.wirefs(&["mount", "host:absent", "mnt", "-o", &option]).fails_with(&["absent does not exist"]);
    assert!(copies(&home).is_empty());
}

#[test]
fn old_copies_are_removed_and_a_damaged_one_is_refused() {
    let home = TestHome::new();
    home.write("far/.cache/wirefs/bin/wirefs-0000000000000000", "of a build of long ago");
    home.write("far/.cache/wirefs/bin/.wirefs-1", "the part of another copy");
    for old in ["wirefs-0000000000000000", ".wirefs-1"] {
        let path = home.path(&format!("far/.cache/wirefs/bin/{old}"));
        crate::home::Finished::of(home.command("touch").args(["-d", "2020-01-01"]).arg(path)).succeeds();
    }
    // The remote gzip changes a byte.
    home.write("far/bin/gzip", "#!/bin/sh\n/usr/bin/gzip -dc; echo x\n");
    crate::home::Finished::of(home.command("chmod").args(["755", "far/bin/gzip"])).succeeds();
    let damaging = without_wirefs().replace("PATH=/usr", "PATH=$PWD/../far/bin:/usr");
    let option = fake_ssh(&home, &damaging);
    home.wirefs(&["mount", "host:", "mnt", "-o", &option]).fails_with(&["arrived damaged"]);
    assert_eq!(copies(&home).len(), 2);
    let option = fake_ssh(&home, &without_wirefs());
    home.wirefs(&["mount", "host:", "mnt", "-o", &option]).succeeds();
    assert_eq!(copies(&home).len(), 1);
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn ended_command_leaves_no_copy_and_no_process() {
    let home = TestHome::new();
    std::fs::create_dir(home.path("far")).unwrap();
    // The line to the host stands still in the middle of the copy.
    let still = "echo $$ >../process\n\
        (head -c 300000; while kill -0 $$ 2>/dev/null; do sleep 0.02; done) | sh -c";
    let slow = without_wirefs().replace("exec sh -c", still);
    let option = fake_ssh(&home, &slow);
    // The tests may run with SIGINT ignored, as in the background of a script, and programs inherit that.
    let mut command = home.command("env");
    command.args(["--default-signal=INT", crate::home::WIREFS, "mount", "host:", "mnt", "-o", &option]);
    command.stderr(std::process::Stdio::null());
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap();
    let is_copying = || copies(&home).iter().any(|name| name.starts_with(".wirefs-"));
    crate::home::wait_for("the copy to begin", is_copying);
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    crate::home::wait_for("the end of the command", || child.try_wait().unwrap().is_some());
    assert!(!child.wait().unwrap().success());
    crate::home::wait_for("no copy to be left", || copies(&home).is_empty());
    let ssh = home.read("process").trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    crate::home::wait_for("ssh to end", || !crate::home::is_alive(ssh));
}
