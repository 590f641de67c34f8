//! Failures: killed servers, cut links, full disks and wrong keys. Programs get the right errno, users get a helpful
//! message, and no acknowledged data is lost.

mod current_directory;
mod cut;
mod disk;
mod frozen;
mod rejected;

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use wirefs_lab::LinkProfile;

use crate::site::{ChildGuard, Site, wait_for};

/// Returns bytes that differ at every offset.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u64 / 8).flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

fn errno(error: &std::io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}

#[test]
fn reader_of_a_killed_server_gets_data_or_an_error_but_no_wrong_bytes() {
    const BYTES: usize = 24 << 20;
    let site = Site::unix("killed");
    let expected = pattern(BYTES);
    fs::write(site.export().join("f"), &expected).unwrap();
    // A small cache, so that each read goes to the server.
    let mount = site.mount("mnt", &["--deadline", "3s", "--cache", "1M"]);
    let read = |path: &Path| -> Result<u64, std::io::Error> {
        let mut file = File::open(path)?;
        let (mut piece, mut at) = (vec![0; 100_000], 0_usize);
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(at as u64),
                count => {
                    assert_eq!(&piece[..count], &expected[at..at + count], "at {at}");
                    at += count;
                }
            }
        }
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| (0..6).map(|_| read(&mount.join("f"))).collect::<Vec<_>>()))
            .collect();
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(60));
            site.kill_server();
            site.start_server();
        }
        for result in readers.into_iter().flat_map(|reader| reader.join().unwrap()) {
            // An incomplete read must return an error.
            assert!(
                result.as_ref().is_err() || result.as_ref().is_ok_and(|&count| count == BYTES as u64),
                "{result:?}"
            );
        }
    });
    wait_for("the mount to work again", || read(&mount.join("f")).is_ok_and(|count| count == BYTES as u64));
    wait_for("changes to work again", || fs::write(mount.join("g"), "new").is_ok());
    // The mount may be the sole client again by then, and answer before its server has the change.
    let arrived = || fs::read_to_string(site.export().join("g")).is_ok_and(|text| text == "new");
    wait_for("it to be at the server", arrived);
}

#[test]
fn fsynced_data_survives_a_killed_server() {
    let site = Site::unix("acknowledged");
    let mount = site.mount("mnt", &["--deadline", "3s"]);
    let contents = pattern(3 << 20);
    let mut file = File::create(mount.join("f")).unwrap();
    for round in 0..4_usize {
        let synced = file.write_all(&contents).and_then(|()| file.sync_all());
        site.kill_server();
        assert!(synced.is_ok());
        let there = fs::read(site.export().join("f")).unwrap();
        assert!(
            there.chunks(contents.len()).all(|chunk| chunk == contents)
                && there.len() == (round + 1) * contents.len()
        );
        site.start_server();
    }
}

#[test]
fn copy_over_a_link_that_was_cut_is_complete() {
    let site = Site::tls(
        "cut-copy",
        LinkProfile::rtt(Duration::from_millis(4)).with(|lane| lane.rate_bits = Some(80_000_000)),
    );
    let mount = site.mount("mnt", &["--no-journal", "--deadline", "60s"]);
    let contents = pattern(12 << 20);
    fs::write(site.path("local/up"), &contents).unwrap();
    fs::write(site.export().join("down"), &contents).unwrap();
    let copy = |from: &Path, to: &Path| ChildGuard(Command::new("cp").arg(from).arg(to).spawn().unwrap());
    let mut copies = [
        copy(&site.path("local/up"), &mount.join("up")),
        copy(&mount.join("down"), &site.path("local/down")),
    ];
    let counters = site.link().counters();
    wait_for("both to be under way", || {
        let since = site.link().counters().since(&counters);
        since.a_to_b.delivered_bytes > 2_000_000 && since.b_to_a.delivered_bytes > 2_000_000
    });
    site.link().cut();
    thread::sleep(Duration::from_secs(3));
    for copy in &mut copies {
        assert!(copy.0.try_wait().unwrap().is_none(), "it was to be cut in the middle");
    }
    site.link().heal();
    for mut copy in copies {
        assert!(copy.0.wait().unwrap().success());
    }
    assert!(fs::read(site.export().join("up")).unwrap() == contents);
    assert!(fs::read(site.path("local/down")).unwrap() == contents);
}

#[test]
fn calls_to_a_dead_server_fail_and_the_mount_can_be_forced_off() {
    let site = Site::tls("gone", LinkProfile::default());
    fs::write(site.export().join("f"), pattern(1 << 20)).unwrap();
    fs::write(site.export().join("unread"), pattern(1 << 20)).unwrap();
    let mount = site.mount("mnt", &["--no-journal", "--deadline", "3s"]);
    let open = OpenOptions::new().read(true).write(true).open(mount.join("f")).unwrap();
    site.link().cut();
    let mut piece = [0; 4_096];
    // In parallel, because each call waits for the deadline.
    let errors = thread::scope(|scope| {
        // The names came with the mount and stay valid for the lease term, so hard_link fails only at the server.
        let link = scope.spawn(|| fs::hard_link(mount.join("unread"), mount.join("link")).unwrap_err());
        let read = scope.spawn(|| fs::read(mount.join("unread")).unwrap_err());
        let make = scope.spawn(|| fs::create_dir(mount.join("d")).unwrap_err());
        let sync = scope.spawn(|| open.write_all_at(b"lost", 0).and_then(|()| open.sync_all()).unwrap_err());
        [link.join().unwrap(), read.join().unwrap(), make.join().unwrap(), sync.join().unwrap()]
    });
    for error in &errors {
        assert!(
            matches!(errno(error), Some(Errno::IO | Errno::TIMEDOUT | Errno::NOTCONN | Errno::HOSTDOWN)),
            "{errors:?}"
        );
    }
    drop(open);
    site.wirefs(&["umount", "-f", mount.to_str().unwrap()]).succeeds();
    assert!(!site.is_mounted(&mount));
    assert!(
        File::open(mount.join("f")).and_then(|mut file| file.read(&mut piece)).is_err(),
        "nothing is mounted"
    );
}

/// Starts programs that block on an unreachable server; the mount has no journal, with which some would not block.
fn blocked(mount: &Path) -> Vec<ChildGuard> {
    // Only calls that need the server: cached attributes stay valid for the lease term.
    let file = mount.join("f");
    let start = |words: &&[&str]| {
        let [program, options @ ..] = *words else { panic!("a program") };
        let mut command = Command::new(program);
        command.args(options).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        ChildGuard(command.spawn().unwrap())
    };
    let all: [&[&str]; 4] = [&["cat"], &["touch"], &["rm"], &["chmod", "600"]];
    let programs: Vec<ChildGuard> = all.iter().map(start).collect();
    for program in &programs {
        let proc_file = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", program.0.id())).unwrap();
        // The first waits for the reply; the others wait in the kernel for a lock that the first holds.
        let is_deep = || proc_file("stat").rsplit(')').next().is_some_and(|rest| rest.starts_with(" D"));
        wait_for("the program to wait for the mount", || {
            proc_file("wchan") == "request_wait_answer" || is_deep()
        });
    }
    programs
}

#[test]
fn programs_blocked_by_a_silent_server_can_be_killed() {
    let site = Site::tls("blocked", LinkProfile::default());
    fs::write(site.export().join("f"), pattern(1 << 20)).unwrap();
    let mount = site.mount("mnt", &["--no-journal", "--deadline", "3s"]);
    site.link().cut();
    let mut programs = blocked(&mount);
    for program in &programs {
        rustix::process::kill_process(program.pid(), rustix::process::Signal::KILL).unwrap();
    }
    for program in &mut programs {
        wait_for("the killed program to end", || program.0.try_wait().unwrap().is_some());
    }
}

#[test]
fn forced_unmount_releases_blocked_programs() {
    let site = Site::tls("hard", LinkProfile::default());
    fs::write(site.export().join("f"), pattern(1 << 20)).unwrap();
    let mount = site.mount("mnt", &["--no-journal", "--hard"]);
    site.link().cut();
    let mut programs = blocked(&mount);
    site.wirefs(&["umount", "-f", mount.to_str().unwrap()]).succeeds();
    assert!(!site.is_mounted(&mount));
    for program in &mut programs {
        wait_for("the program to end", || {
            program.0.try_wait().unwrap().is_some_and(|status| !status.success())
        });
    }
}

#[test]
fn killed_mount_does_not_affect_another() {
    let site = Site::tls("other", LinkProfile::default());
    let mounts = ["a", "b"].map(|name| site.mount(name, &["--deadline", "3s"]));
    fs::write(mounts[0].join("f"), "from a").unwrap();
    let status = site.wirefs(&["status", "--json", mounts[0].to_str().unwrap()]).succeeds();
    let number = status.split("\"process\":").nth(1).unwrap().trim_start();
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    let process = rustix::process::Pid::from_raw(digits.parse().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    for round in 0..50 {
        fs::write(mounts[1].join("g"), format!("round {round}")).unwrap();
        assert_eq!(fs::read_to_string(mounts[1].join("g")).unwrap(), format!("round {round}"));
    }
    assert_eq!(fs::read_to_string(mounts[1].join("f")).unwrap(), "from a");
}
