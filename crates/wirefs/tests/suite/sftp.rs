//! Hosts that run no wirefs, mounted over SFTP; a script replaces ssh and runs OpenSSH's sftp-server.

use crate::home::TestHome;
use crate::over_ssh::fake_ssh;

/// Refuses programs and offers the subsystem sftp, in the remote home.
const SFTP_ONLY: &str = "#!/bin/sh\n\
    while [ \"$1\" != -- ]; do shift; done\n\
    cd export\n\
    echo \"$$\" >../process\n\
    [ \"$3\" = sftp ] && exec /usr/lib/openssh/sftp-server\n\
    echo 'This service allows sftp connections only.'\n\
    exit 1\n";

/// Changes names, contents and attributes through the mount, and looks at the host.
fn check(home: &TestHome) {
    assert_eq!(home.read("mnt/dir/a"), "far away\n");
    home.write("mnt/dir/b", &"line\n".repeat(100_000));
    std::fs::create_dir(home.path("mnt/new")).unwrap();
    std::fs::rename(home.path("mnt/dir/b"), home.path("mnt/new/c")).unwrap();
    assert_eq!(home.read("mnt/new/c").len(), 500_000);
    std::os::unix::fs::symlink("c", home.path("mnt/new/link")).unwrap();
    std::fs::hard_link(home.path("mnt/new/c"), home.path("mnt/new/hard")).unwrap();
    std::fs::remove_file(home.path("mnt/new/c")).unwrap();
    home.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(home.read("export/new/hard").len(), 500_000);
    assert_eq!(std::fs::read_link(home.path("export/new/link")).unwrap().to_str(), Some("c"));
    let not_empty = std::fs::remove_dir(home.path("mnt/new")).unwrap_err();
    assert_eq!(not_empty.kind(), std::io::ErrorKind::DirectoryNotEmpty);
    let mut names: Vec<_> = std::fs::read_dir(home.path("mnt/new"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["hard", "link"]);
}

// S-133
#[test]
fn sftp_source_is_mounted_over_sftp() {
    let home = TestHome::new();
    home.write("export/dir/a", "far away\n");
    let option = fake_ssh(&home, SFTP_ONLY);
    let source = format!("sftp://me@host{}", home.text("export"));
    home.wirefs(&["mount", &source, "mnt", "-o", &option]).succeeds();
    assert_eq!(home.status()["mode"], "window=5000ms");
    check(&home);
    home.wirefs(&["umount", "mnt"]).succeeds();
}

// S-133
#[test]
fn host_without_programs_is_mounted_over_sftp_with_one_line() {
    let home = TestHome::new();
    home.write("export/dir/a", "far away\n");
    let option = fake_ssh(&home, SFTP_ONLY);
    let mounted = home.wirefs(&["mount", "me@host:", "mnt", "-o", &option]);
    assert!(mounted.stderr.contains("mounting over SFTP"), "{mounted:?}");
    mounted.succeeds();
    assert_eq!(home.status()["mode"], "window=5000ms");
    check(&home);
    home.wirefs(&["umount", "mnt"]).succeeds();
}

// S-134
#[test]
fn lost_sftp_connection_comes_back_by_itself() {
    let home = TestHome::new();
    home.write("export/dir/a", "far away\n");
    let option = fake_ssh(&home, SFTP_ONLY);
    home.wirefs(&["mount", "me@host:", "mnt", "-o", &option]).succeeds();
    assert_eq!(home.read("mnt/dir/a"), "far away\n");
    home.wirefs(&["reconnect", "mnt"]).fails_with(&["over SFTP", "unmount it and mount it again"]);
    let ssh = home.read("process").trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(ssh, rustix::process::Signal::KILL).unwrap();
    check(&home);
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn missing_directory_is_named() {
    let home = TestHome::new();
    home.write("export/dir/a", "far away\n");
    let option = fake_ssh(&home, SFTP_ONLY);
    home.wirefs(&["mount", "me@host:absent", "mnt", "-o", &option]).fails_with(&["absent"]);
}
