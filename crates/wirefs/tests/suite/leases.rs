//! Mounts with leases, which use cached data while the server promises to recall them first.

use crate::home::{SecondMount, Server, TestHome, wait_for};
use rustix::process::Signal;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Two mounts of one directory, at `mnt` and `other`, both with leases.
struct Pair<'a> {
    home: &'a TestHome,
    // Dropped before its server.
    _second: SecondMount<'a>,
    _server: Server,
}

impl Pair<'_> {
    fn of(home: &TestHome) -> Pair<'_> {
        let server = home.mounted_in_mode("lease");
        Pair { home, _second: SecondMount::mount(home, "lease"), _server: server }
    }

    /// No mount lost its connection for a late release.
    fn assert_unbroken(&self) {
        for mountpoint in ["mnt", "other"] {
            let status = self.home.status_of(mountpoint);
            assert_eq!(
                (&status["connections_lost"], &status["connected"]),
                (&0.into(), &true.into()),
                "{status}"
            );
        }
    }
}

/// Returns the kernel's calls of a mount, and its requests except keepalives.
fn requests(home: &TestHome, mountpoint: &str) -> (u64, u64) {
    let status = home.status_of(mountpoint);
    let requests = status["requests"].as_object().unwrap();
    let sent = requests.iter().filter(|(kind, _)| *kind != "Ping" && *kind != "Recalled");
    (status["calls"].as_u64().unwrap(), sent.map(|(_, count)| count.as_u64().unwrap()).sum())
}

fn names(home: &TestHome, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(home.path(directory)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

// S-4
#[test]
fn finished_change_is_visible_in_the_other_mount_at_once() {
    let home = TestHome::new();
    let pair = Pair::of(&home);
    for round in 0..20 {
        let (here, there) = if round % 2 == 0 { ("mnt", "other") } else { ("other", "mnt") };
        let (text, new) = (format!("round {round}"), format!("new{round}"));
        assert!(!home.path(there).join(&new).exists(), "it is known to be absent");
        home.write(&format!("{here}/a"), &text);
        home.write(&format!("{here}/{new}"), "");
        assert_eq!(home.read(&format!("{there}/a")), text);
        assert_eq!(fs::metadata(home.path(there).join("a")).unwrap().len(), text.len() as u64);
        assert!(home.path(there).join(&new).exists());
        let listed = names(&home, there);
        assert!(listed.contains(&new), "{listed:?}");
        fs::rename(home.path(here).join(&new), home.path(here).join("moved")).unwrap();
        assert!(!home.path(there).join(&new).exists());
        assert!(home.path(there).join("moved").exists());
        fs::remove_file(home.path(here).join("moved")).unwrap();
        assert!(!home.path(there).join("moved").exists());
        assert_eq!(names(&home, there), ["a"]);
    }
    pair.assert_unbroken();
}

// S-4
#[test]
fn changed_attributes_links_and_directories_are_visible_at_once() {
    let home = TestHome::new();
    let _pair = Pair::of(&home);
    for round in 0..10 {
        let (here, there) = if round % 2 == 0 { ("mnt", "other") } else { ("other", "mnt") };
        let (here, there) = (home.path(here), home.path(there));
        fs::create_dir(here.join("dir")).unwrap();
        symlink("first", here.join("dir/link")).unwrap();
        fs::write(here.join("dir/file"), "file").unwrap();
        assert_eq!(fs::read_link(there.join("dir/link")).unwrap().as_os_str(), "first");
        assert_eq!(fs::metadata(there.join("dir/file")).unwrap().nlink(), 1);
        symlink("second", here.join("link")).unwrap();
        fs::rename(here.join("link"), here.join("dir/link")).unwrap();
        fs::hard_link(here.join("dir/file"), here.join("dir/again")).unwrap();
        let readable = fs::Permissions::from_mode(0o444);
        fs::set_permissions(here.join("dir/file"), readable).unwrap();
        assert_eq!(fs::read_link(there.join("dir/link")).unwrap().as_os_str(), "second");
        let found = fs::metadata(there.join("dir/file")).unwrap();
        assert_eq!((found.nlink(), found.mode() & 0o777), (2, 0o444));
        fs::remove_dir_all(there.join("dir")).unwrap();
        assert!(!here.join("dir").exists());
    }
}

// S-4
#[test]
fn contents_are_invalidated_with_unchanged_attributes() {
    let home = TestHome::new();
    let _pair = Pair::of(&home);
    home.write("mnt/a", "round 0");
    let time = SystemTime::UNIX_EPOCH;
    let mut reader = File::open(home.path("other/a")).unwrap();
    for round in 1..6 {
        let text = format!("round {round}");
        let file = OpenOptions::new().write(true).open(home.path("mnt/a")).unwrap();
        file.write_all_at(text.as_bytes(), 0).unwrap();
        file.set_modified(time).unwrap();
        drop(file);
        assert_eq!(home.read("other/a"), text, "size and time are as they were");
        let mut open = [0; 7];
        reader.read_exact_at(&mut open, 0).unwrap();
        assert_eq!(open, text.as_bytes(), "an open file is the same file");
    }
    reader.flush().unwrap();
}

// S-6
#[test]
fn leased_objects_need_no_requests() {
    let home = TestHome::new();
    home.write("export/dir/file", "text");
    symlink("file", home.path("export/dir/link")).unwrap();
    let _server = home.mounted_in_mode("lease");
    let read_all = || {
        assert_eq!(fs::metadata(home.path("mnt/dir/file")).unwrap().len(), 4);
        assert_eq!(fs::read_link(home.path("mnt/dir/link")).unwrap().as_os_str(), "file");
        assert!(!home.path("mnt/dir/absent").exists());
    };
    let use_all = || {
        read_all();
        assert_eq!(names(&home, "mnt/dir"), ["file", "link"]);
        assert_eq!(home.read("mnt/dir/file"), "text");
    };
    use_all();
    use_all();
    let (_, before) = requests(&home, "mnt");
    for _ in 0..50 {
        use_all();
    }
    assert_eq!(requests(&home, "mnt").1, before, "the server was asked again");
    read_all();
    let (warm_up, _) = requests(&home, "mnt");
    for _ in 0..50 {
        read_all();
    }
    let (stats, _) = requests(&home, "mnt");
    assert_eq!(stats, warm_up, "the kernel asked again");
    for _ in 0..50 {
        assert_eq!(names(&home, "mnt/dir").len(), 2);
    }
    let (listed, _) = requests(&home, "mnt");
    assert!(listed <= stats + 100, "more than opening and closing: {} calls", listed - stats);
}

// S-5
#[test]
fn changes_by_server_programs_are_visible() {
    let home = TestHome::new();
    home.write("export/dir/file", "old");
    let _server = home.mounted_in_mode("lease");
    assert_eq!(home.read("mnt/dir/file"), "old");
    assert_eq!(names(&home, "mnt/dir"), ["file"]);
    assert!(!home.path("mnt/dir/new").exists());
    home.write("export/dir/file", "newer");
    home.write("export/dir/new", "here");
    wait_for("the new contents", || home.read("mnt/dir/file") == "newer");
    wait_for("the new name", || home.path("mnt/dir/new").exists());
    wait_for("the new listing", || names(&home, "mnt/dir") == ["file", "new"]);
    fs::remove_file(home.path("export/dir/file")).unwrap();
    wait_for("the removal", || !home.path("mnt/dir/file").exists());
}

/// Each must invalidate the name while it creates the name itself: the kernel holds the directory's lock for that.
#[test]
fn two_mounts_contend_for_one_name_without_deadlock() {
    let home = TestHome::new();
    let pair = Pair::of(&home);
    let rounds = |mountpoint: &str| {
        let lock = home.path(mountpoint).join("lock");
        let counter = home.path(mountpoint).join("counter");
        let mut rounds = 0;
        while rounds < 25 {
            match OpenOptions::new().write(true).create_new(true).open(&lock) {
                Ok(_) => {
                    let count = fs::read_to_string(&counter).unwrap_or_default().parse().unwrap_or(0);
                    fs::write(&counter, format!("{}", count + 1)).unwrap();
                    fs::remove_file(&lock).unwrap();
                    rounds += 1;
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| rounds("mnt"));
        scope.spawn(|| rounds("other"));
    });
    assert_eq!(home.read("export/counter"), "50", "who holds the lock sees what the last one did");
    pair.assert_unbroken();
}

#[test]
fn two_mounts_fill_and_empty_one_directory_concurrently() {
    let home = TestHome::new();
    let pair = Pair::of(&home);
    std::thread::scope(|scope| {
        for mountpoint in ["mnt", "other"] {
            let directory = home.path(mountpoint);
            scope.spawn(move || {
                for number in 0..100 {
                    let file = directory.join(format!("{mountpoint}{number}"));
                    fs::write(&file, mountpoint).unwrap();
                    assert!(fs::read_dir(&directory).unwrap().count() > 0);
                    if number % 2 == 0 {
                        fs::remove_file(&file).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(names(&home, "mnt").len(), 100);
    assert_eq!(names(&home, "mnt"), names(&home, "other"));
    assert_eq!(names(&home, "mnt"), names(&home, "export"));
    pair.assert_unbroken();
}

#[test]
fn two_mounts_append_to_one_file_while_each_reads_it() {
    let home = TestHome::new();
    home.write("export/log", "");
    let pair = Pair::of(&home);
    std::thread::scope(|scope| {
        for mountpoint in ["mnt", "other"] {
            let path = home.path(mountpoint).join("log");
            scope.spawn(move || {
                let mut log = OpenOptions::new().append(true).open(&path).unwrap();
                for number in 0..100 {
                    let line = format!("{mountpoint} {number}\n");
                    log.write_all(line.as_bytes()).unwrap();
                    assert!(fs::read_to_string(&path).unwrap().contains(&line));
                }
            });
        }
    });
    assert_eq!(home.read("mnt/log").lines().count(), 200);
    assert_eq!(home.read("mnt/log"), home.read("export/log"));
    pair.assert_unbroken();
}

// S-33
#[test]
fn shell_keeps_its_cwd_while_the_parent_changes() {
    let home = TestHome::new();
    home.write("export/above/here/file", "text");
    let _pair = Pair::of(&home);
    let here = home.path("mnt/above/here");
    let mut shell = Command::new("sh")
        // The kernel's answer; `pwd` would search parent directories.
        .args(["-c", "while read go; do readlink /proc/self/cwd; cat file; done"])
        .current_dir(&here)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut rounds = shell.stdin.take().unwrap();
    for round in 0..3 {
        // The kernel requests a lease again after the recall; then it is recalled again.
        assert!(here.is_dir());
        for number in 0..20 {
            home.write(&format!("other/above/file{round}_{number}"), "");
        }
        // A listing would add the dentry again.
        assert!(home.path(&format!("mnt/above/file{round}_19")).exists());
        rounds.write_all(b"go\n").unwrap();
    }
    drop(rounds);
    let output = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(output, format!("{}\ntext", here.display()).repeat(3));
}

// S-33
#[test]
fn shell_keeps_its_cwd_when_all_leases_are_recalled() {
    let home = TestHome::new();
    home.write("export/above/here/file", "text");
    let server = home.mounted_in_mode("lease");
    let here = home.path("mnt/above/here");
    let shell = Command::new("sh")
        .args(["-c", "read go; readlink /proc/self/cwd; cat file"])
        .current_dir(&here)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut shell = shell.unwrap();
    let before = home.status()["leases"]["recalls"].as_u64().unwrap();
    // A file system is mounted below the export: names below the mountpoint are unknown.
    let beside = home.path("export/beside");
    fs::create_dir(&beside).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&beside).status().unwrap();
    assert!(mounted.success());
    wait_for("all to be recalled", || home.status()["leases"]["recalls"].as_u64().unwrap() > before + 1);
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
    assert!(Command::new("umount").arg(&beside).status().unwrap().success());
    assert_eq!(output, format!("{}\ntext", here.display()));
    drop(server);
}

#[test]
fn status_shows_leases_and_recalls() {
    let home = TestHome::new();
    home.write("export/dir/file", "text");
    let _pair = Pair::of(&home);
    assert_eq!(names(&home, "mnt/dir"), ["file"]);
    let leases = home.status()["leases"].clone();
    assert_eq!(leases["valid"], true, "{leases}");
    assert!(leases["objects"].as_u64().unwrap() > 1, "{leases}");
    assert!(["directories", "filesystem"].contains(&leases["watch"].as_str().unwrap()), "{leases}");
    assert_eq!(leases["recalls"], 0);
    home.write("other/dir/file", "changed");
    assert_eq!(home.read("mnt/dir/file"), "changed");
    assert!(home.status()["leases"]["recalls"].as_u64().unwrap() > 0);
    let table = home.wirefs(&["status", "-v", "mnt"]).succeeds();
    assert!(table.contains("leases") && table.contains("recalled"), "{table}");
}

/// A server without the right to watch the whole file system.
fn serve_without_rights(home: &TestHome) -> Server {
    let mut command = home.command("setpriv");
    command.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "wirefs", "serve", "export"]);
    command.args(["--listen", &home.url()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    Server::start(command)
}

// S-5
#[test]
fn change_by_a_server_program_concurrent_with_a_mounts_change_is_visible() {
    let home = TestHome::new();
    let _server = serve_without_rights(&home);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    let rounds: Vec<String> = (0..40).map(|round| format!("round{round}")).collect();
    for round in &rounds {
        fs::create_dir(home.path("mnt").join(round)).unwrap();
        assert_eq!(names(&home, &format!("mnt/{round}")), [""; 0]);
        let job = home.path("export").join(round).join("job");
        std::thread::scope(|scope| {
            // Removes the file as soon as it exists, as a spooler does.
            scope.spawn(|| while fs::remove_file(&job).is_err() {});
            home.write(&format!("mnt/{round}/job"), "");
            for other in 0..4 {
                home.write(&format!("mnt/{round}/other{other}"), "");
            }
        });
    }
    for round in &rounds {
        wait_for("a removal to be seen", || !home.path("mnt").join(round).join("job").exists());
    }
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn own_changes_cause_no_recalls_with_directory_watches() {
    let home = TestHome::new();
    fs::create_dir(home.path("export/apart")).unwrap();
    let _server = serve_without_rights(&home);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    assert_eq!(names(&home, "mnt/apart"), [""; 0]);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let top = home.path("mnt");
            scope.spawn(move || {
                for round in 0..30 {
                    let dir = top.join(format!("{part}_{round}"));
                    fs::create_dir(&dir).unwrap();
                    fs::write(dir.join("file"), "text").unwrap();
                    fs::rename(dir.join("file"), dir.join("moved")).unwrap();
                    fs::set_permissions(dir.join("moved"), fs::Permissions::from_mode(0o600)).unwrap();
                    fs::remove_file(dir.join("moved")).unwrap();
                    fs::remove_dir(&dir).unwrap();
                }
            });
        }
    });
    File::open(home.path("mnt")).unwrap().sync_all().unwrap();
    // The kernel reports events in order: after this one all earlier ones are processed.
    home.write("export/apart/others", "");
    wait_for("a program's change to be noticed", || home.path("mnt/apart/others").exists());
    let leases = home.status()["leases"].clone();
    assert_eq!(leases["watch"], "directories");
    assert!((1..=4).contains(&leases["recalls"].as_u64().unwrap()), "{leases}");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn mount_without_leases_gets_no_recalls() {
    let home = TestHome::new();
    home.write("export/a", "text");
    let _server = home.mounted_in_mode("window");
    let _second = SecondMount::mount(&home, "lease");
    assert_eq!(home.read("mnt/a"), "text");
    assert_eq!(home.status()["leases"], serde_json::Value::Null);
    assert!(!home.wirefs(&["status", "mnt"]).succeeds().contains("leases"));
    home.write("mnt/a", "changed");
    assert_eq!(home.read("other/a"), "changed", "whoever changes it, the other hears of it");
}

#[test]
fn server_ended_after_its_mounts_needs_no_recovery_wait() {
    let home = TestHome::new();
    home.write("export/f", "known");
    let server = home.mounted();
    assert_eq!(home.read("mnt/f"), "known");
    home.wirefs(&["umount", "mnt"]).succeeds();
    server.kill(Signal::TERM);
    assert_eq!(server.end().code, Some(0));
    let next = home.serve(&["--listen", &home.url()]);
    next.kill(Signal::TERM);
    let output = next.end();
    assert!(!output.stderr.contains("has not ended cleanly"), "{output:?}");
}
