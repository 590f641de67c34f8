//! Mounts that answer from what they know, as long as the server has promised to tell them first.

use crate::world::{Other, Server, World, wait_for};
use rustix::process::Signal;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Two mounts of one directory, at `mnt` and `other`, both with leases.
struct Pair<'a> {
    world: &'a World,
    // Before its server.
    _other: Other<'a>,
    _server: Server,
}

impl Pair<'_> {
    fn of(world: &World) -> Pair<'_> {
        let server = world.mounted_in_mode("lease");
        Pair { world, _other: Other::mount(world, "lease"), _server: server }
    }

    /// Neither was cut off for not having forgotten in time.
    fn assert_unbroken(&self) {
        for mountpoint in ["mnt", "other"] {
            let status = self.world.status_of(mountpoint);
            assert_eq!(
                (&status["connections_lost"], &status["connected"]),
                (&0.into(), &true.into()),
                "{status}"
            );
        }
    }
}

/// What a mount was asked by its kernel, and asked the server, but for signs of life.
fn asked(world: &World, mountpoint: &str) -> (u64, u64) {
    let status = world.status_of(mountpoint);
    let requests = status["requests"].as_object().unwrap();
    let sent = requests.iter().filter(|(kind, _)| *kind != "Ping" && *kind != "Recalled");
    (status["calls"].as_u64().unwrap(), sent.map(|(_, count)| count.as_u64().unwrap()).sum())
}

fn names(world: &World, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(world.path(directory)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

// S-36
#[test]
fn a_finished_change_shows_in_the_other_mount_at_the_next_look() {
    let world = World::new();
    let pair = Pair::of(&world);
    for round in 0..20 {
        let (here, there) = if round % 2 == 0 { ("mnt", "other") } else { ("other", "mnt") };
        let (text, new) = (format!("round {round}"), format!("new{round}"));
        assert!(!world.path(there).join(&new).exists(), "it is known to be absent");
        world.write(&format!("{here}/a"), &text);
        world.write(&format!("{here}/{new}"), "");
        assert_eq!(world.read(&format!("{there}/a")), text);
        assert_eq!(fs::metadata(world.path(there).join("a")).unwrap().len(), text.len() as u64);
        assert!(world.path(there).join(&new).exists());
        let listed = names(&world, there);
        assert!(listed.contains(&new), "{listed:?}");
        fs::rename(world.path(here).join(&new), world.path(here).join("moved")).unwrap();
        assert!(!world.path(there).join(&new).exists());
        assert!(world.path(there).join("moved").exists());
        fs::remove_file(world.path(here).join("moved")).unwrap();
        assert!(!world.path(there).join("moved").exists());
        assert_eq!(names(&world, there), ["a"]);
    }
    pair.assert_unbroken();
}

// S-36
#[test]
fn attributes_links_and_directories_show_at_the_next_look_too() {
    let world = World::new();
    let _pair = Pair::of(&world);
    for round in 0..10 {
        let (here, there) = if round % 2 == 0 { ("mnt", "other") } else { ("other", "mnt") };
        let (here, there) = (world.path(here), world.path(there));
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

// S-36
#[test]
fn contents_are_not_kept_when_only_they_changed() {
    let world = World::new();
    let _pair = Pair::of(&world);
    world.write("mnt/a", "round 0");
    let time = SystemTime::UNIX_EPOCH;
    let mut reader = File::open(world.path("other/a")).unwrap();
    for round in 1..6 {
        let text = format!("round {round}");
        let file = OpenOptions::new().write(true).open(world.path("mnt/a")).unwrap();
        file.write_all_at(text.as_bytes(), 0).unwrap();
        file.set_modified(time).unwrap();
        drop(file);
        assert_eq!(world.read("other/a"), text, "size and time are as they were");
        let mut open = [0; 7];
        reader.read_exact_at(&mut open, 0).unwrap();
        assert_eq!(open, text.as_bytes(), "an open file is the same file");
    }
    reader.flush().unwrap();
}

// S-38
#[test]
fn what_is_leased_is_not_asked_for_again() {
    let world = World::new();
    world.write("export/dir/file", "text");
    symlink("file", world.path("export/dir/link")).unwrap();
    let _server = world.mounted_in_mode("lease");
    let look = || {
        assert_eq!(fs::metadata(world.path("mnt/dir/file")).unwrap().len(), 4);
        assert_eq!(fs::read_link(world.path("mnt/dir/link")).unwrap().as_os_str(), "file");
        assert!(!world.path("mnt/dir/absent").exists());
    };
    let use_all = || {
        look();
        assert_eq!(names(&world, "mnt/dir"), ["file", "link"]);
        assert_eq!(world.read("mnt/dir/file"), "text");
    };
    use_all();
    use_all();
    let (_, before) = asked(&world, "mnt");
    for _ in 0..50 {
        use_all();
    }
    assert_eq!(asked(&world, "mnt").1, before, "the server was asked again");
    look();
    let (warm, _) = asked(&world, "mnt");
    for _ in 0..50 {
        look();
    }
    let (looked, _) = asked(&world, "mnt");
    assert_eq!(looked, warm, "the kernel asked again");
    for _ in 0..50 {
        assert_eq!(names(&world, "mnt/dir").len(), 2);
    }
    let (listed, _) = asked(&world, "mnt");
    assert!(listed <= looked + 100, "more than opening and closing: {} calls", listed - looked);
}

// S-37
#[test]
fn what_a_program_at_the_server_does_shows_once_it_is_noticed() {
    let world = World::new();
    world.write("export/dir/file", "old");
    let _server = world.mounted_in_mode("lease");
    assert_eq!(world.read("mnt/dir/file"), "old");
    assert_eq!(names(&world, "mnt/dir"), ["file"]);
    assert!(!world.path("mnt/dir/new").exists());
    world.write("export/dir/file", "newer");
    world.write("export/dir/new", "here");
    wait_for("the new contents", || world.read("mnt/dir/file") == "newer");
    wait_for("the new name", || world.path("mnt/dir/new").exists());
    wait_for("the new listing", || names(&world, "mnt/dir") == ["file", "new"]);
    fs::remove_file(world.path("export/dir/file")).unwrap();
    wait_for("the removal", || !world.path("mnt/dir/file").exists());
}

/// Each must forget the name while it makes it itself: the kernel has the directory locked for that.
#[test]
fn two_mounts_contend_for_one_name_without_waiting_for_each_other_for_ever() {
    let world = World::new();
    let pair = Pair::of(&world);
    let turns = |mountpoint: &str| {
        let lock = world.path(mountpoint).join("lock");
        let counter = world.path(mountpoint).join("counter");
        let mut turns = 0;
        while turns < 25 {
            match OpenOptions::new().write(true).create_new(true).open(&lock) {
                Ok(_) => {
                    let count = fs::read_to_string(&counter).unwrap_or_default().parse().unwrap_or(0);
                    fs::write(&counter, format!("{}", count + 1)).unwrap();
                    fs::remove_file(&lock).unwrap();
                    turns += 1;
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| turns("mnt"));
        scope.spawn(|| turns("other"));
    });
    assert_eq!(world.read("export/counter"), "50", "who holds the lock sees what the last one did");
    pair.assert_unbroken();
}

#[test]
fn two_mounts_fill_and_empty_one_directory_at_the_same_time() {
    let world = World::new();
    let pair = Pair::of(&world);
    std::thread::scope(|scope| {
        for mountpoint in ["mnt", "other"] {
            let directory = world.path(mountpoint);
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
    assert_eq!(names(&world, "mnt").len(), 100);
    assert_eq!(names(&world, "mnt"), names(&world, "other"));
    assert_eq!(names(&world, "mnt"), names(&world, "export"));
    pair.assert_unbroken();
}

#[test]
fn two_mounts_append_to_one_file_while_each_reads_it() {
    let world = World::new();
    world.write("export/log", "");
    let pair = Pair::of(&world);
    std::thread::scope(|scope| {
        for mountpoint in ["mnt", "other"] {
            let path = world.path(mountpoint).join("log");
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
    assert_eq!(world.read("mnt/log").lines().count(), 200);
    assert_eq!(world.read("mnt/log"), world.read("export/log"));
    pair.assert_unbroken();
}

// S-129
#[test]
fn a_shell_keeps_its_directory_while_others_change_the_one_above() {
    let world = World::new();
    world.write("export/above/here/file", "text");
    let _pair = Pair::of(&world);
    let here = world.path("mnt/above/here");
    let mut shell = Command::new("sh")
        // What the kernel says; `pwd` finds its way without.
        .args(["-c", "while read go; do readlink /proc/self/cwd; cat file; done"])
        .current_dir(&here)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut rounds = shell.stdin.take().unwrap();
    for round in 0..3 {
        // The kernel asks for it, since it was taken back, and then it is taken back once more.
        assert!(here.is_dir());
        for number in 0..20 {
            world.write(&format!("other/above/file{round}_{number}"), "");
        }
        // A listing would give it its name again.
        assert!(world.path(&format!("mnt/above/file{round}_19")).exists());
        rounds.write_all(b"go\n").unwrap();
    }
    drop(rounds);
    let said = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(said, format!("{}\ntext", here.display()).repeat(3));
}

// S-129
#[test]
fn a_shell_keeps_its_directory_when_everything_is_taken_back() {
    let world = World::new();
    world.write("export/above/here/file", "text");
    let server = world.mounted_in_mode("lease");
    let here = world.path("mnt/above/here");
    let shell = Command::new("sh")
        .args(["-c", "read go; readlink /proc/self/cwd; cat file"])
        .current_dir(&here)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut shell = shell.unwrap();
    let before = world.status()["leases"]["recalls"].as_u64().unwrap();
    // A file system that comes below the export: nobody knows what was beneath.
    let beside = world.path("export/beside");
    fs::create_dir(&beside).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&beside).status().unwrap();
    assert!(mounted.success());
    wait_for("all to be taken back", || world.status()["leases"]["recalls"].as_u64().unwrap() > before + 1);
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let said = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
    assert!(Command::new("umount").arg(&beside).status().unwrap().success());
    assert_eq!(said, format!("{}\ntext", here.display()));
    drop(server);
}

#[test]
fn the_status_tells_what_is_leased_and_taken_back() {
    let world = World::new();
    world.write("export/dir/file", "text");
    let _pair = Pair::of(&world);
    assert_eq!(names(&world, "mnt/dir"), ["file"]);
    let leases = world.status()["leases"].clone();
    assert_eq!(leases["valid"], true, "{leases}");
    assert!(leases["objects"].as_u64().unwrap() > 1, "{leases}");
    assert!(["directories", "filesystem"].contains(&leases["watch"].as_str().unwrap()), "{leases}");
    assert_eq!(leases["recalls"], 0);
    world.write("other/dir/file", "changed");
    assert_eq!(world.read("mnt/dir/file"), "changed");
    assert!(world.status()["leases"]["recalls"].as_u64().unwrap() > 0);
    let table = world.wirefs(&["status", "mnt"]).succeeds();
    assert!(table.contains("leases") && table.contains("taken back"), "{table}");
}

/// A server that may not watch the whole file system.
fn serve_without_rights(world: &World) -> Server {
    let mut command = world.command("setpriv");
    command.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "wirefs", "serve", "export"]);
    command.args(["--listen", &world.url()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    Server::start(command)
}

// S-37
#[test]
fn what_a_program_at_the_server_does_in_the_moment_of_a_mounts_change_is_seen() {
    let world = World::new();
    let _server = serve_without_rights(&world);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    let rounds: Vec<String> = (0..40).map(|round| format!("round{round}")).collect();
    for round in &rounds {
        fs::create_dir(world.path("mnt").join(round)).unwrap();
        assert_eq!(names(&world, &format!("mnt/{round}")), [""; 0]);
        let job = world.path("export").join(round).join("job");
        std::thread::scope(|scope| {
            // Takes what comes, as a spooler does, the moment that it is there.
            scope.spawn(|| while fs::remove_file(&job).is_err() {});
            world.write(&format!("mnt/{round}/job"), "");
            for other in 0..4 {
                world.write(&format!("mnt/{round}/other{other}"), "");
            }
        });
    }
    for round in &rounds {
        wait_for("a removal to be seen", || !world.path("mnt").join(round).join("job").exists());
    }
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn own_changes_are_taken_for_nobody_elses_where_each_directory_is_watched() {
    let world = World::new();
    fs::create_dir(world.path("export/apart")).unwrap();
    let _server = serve_without_rights(&world);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    assert_eq!(names(&world, "mnt/apart"), [""; 0]);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let top = world.path("mnt");
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
    File::open(world.path("mnt")).unwrap().sync_all().unwrap();
    // What the kernel tells comes in order: once this is noticed, so is all that came before.
    world.write("export/apart/others", "");
    wait_for("a program's change to be noticed", || world.path("mnt/apart/others").exists());
    let leases = world.status()["leases"].clone();
    assert_eq!(leases["watch"], "directories");
    assert!((1..=4).contains(&leases["recalls"].as_u64().unwrap()), "{leases}");
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn a_mount_without_leases_is_told_of_nothing() {
    let world = World::new();
    world.write("export/a", "text");
    let _server = world.mounted_in_mode("window");
    let _other = Other::mount(&world, "lease");
    assert_eq!(world.read("mnt/a"), "text");
    assert_eq!(world.status()["leases"], serde_json::Value::Null);
    assert!(!world.wirefs(&["status", "mnt"]).succeeds().contains("leases"));
    world.write("mnt/a", "changed");
    assert_eq!(world.read("other/a"), "changed", "whoever changes it, the other hears of it");
}

#[test]
fn a_server_that_ends_after_its_mounts_leaves_nothing_to_wait_for() {
    let world = World::new();
    world.write("export/f", "known");
    let server = world.mounted();
    assert_eq!(world.read("mnt/f"), "known");
    world.wirefs(&["umount", "mnt"]).succeeds();
    server.kill(Signal::TERM);
    assert_eq!(server.end().code, Some(0));
    let next = world.serve(&["--listen", &world.url()]);
    next.kill(Signal::TERM);
    let said = next.end();
    assert!(!said.stderr.contains("has not ended cleanly"), "{said:?}");
}
