//! Changes in flight while a link is cut for so long that the connection is closed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use wirefs_lab::LinkProfile;

use crate::site::{Site, wait_for};

const PROGRAMS: usize = 6;

/// Changes that fail if they are applied twice; later checks depend on their results.
fn round(dir: &Path, number: usize) -> io::Result<()> {
    let at = |name: &str| dir.join(format!("{name}{number}"));
    fs::create_dir(at("dir"))?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(at("new"))?;
    file.write_all(b"one")?;
    drop(file);
    fs::hard_link(at("new"), at("link"))?;
    fs::rename(at("new"), at("dir").join("moved"))?;
    OpenOptions::new().append(true).open(at("link"))?.write_all(b"two")?;
    fs::remove_file(at("link"))?;
    if number.is_multiple_of(2) {
        fs::remove_file(at("dir").join("moved"))?;
        fs::remove_dir(at("dir"))?;
    }
    Ok(())
}

/// Stops the programs on drop, also after a panic.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn programs_do_not_notice_lost_and_restored_connections() {
    let site = Site::tls("cuts", LinkProfile::rtt(Duration::from_millis(10)));
    let mount = site.mount("mnt", &["--deadline", "120s"]);
    let (is_over, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let status = || site.wirefs(&["status", mount.to_str().unwrap(), "--json"]).succeeds();
    let is_connected = || status().contains("\"connected\": true") || status().contains("\"connected\":true");
    let program = |index: usize| -> usize {
        let dir = mount.join(format!("program{index}"));
        fs::create_dir(&dir).unwrap();
        let mut number = 0;
        while !is_over.load(Ordering::Relaxed) {
            round(&dir, number).unwrap_or_else(|error| panic!("round {number} of {index}: {error}"));
            number += 1;
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        number
    };
    let program = &program;
    let done: Vec<usize> = thread::scope(|scope| {
        let stop = StopOnDrop(&is_over);
        let programs: Vec<_> = (0..PROGRAMS).map(|index| scope.spawn(move || program(index))).collect();
        for cut in 1..=2 {
            let before = rounds.load(Ordering::Relaxed);
            wait_for("the programs to be at work", || rounds.load(Ordering::Relaxed) > before + 2 * PROGRAMS);
            site.link().cut();
            wait_for("the connection to be given up", || !is_connected());
            site.link().heal();
            wait_for("the connection to be made again", is_connected);
            assert!(programs.iter().all(|program| !program.is_finished()), "cut {cut}");
        }
        let before = rounds.load(Ordering::Relaxed);
        wait_for("the programs to go on", || rounds.load(Ordering::Relaxed) > before + 2 * PROGRAMS);
        drop(stop);
        programs.into_iter().map(|program| program.join().unwrap()).collect()
    });
    // The mount may answer changes before the server has them.
    site.wirefs(&["sync", mount.to_str().unwrap()]).succeeds();
    for (index, rounds) in done.into_iter().enumerate() {
        let dir = site.export().join(format!("program{index}"));
        let left = (1..rounds).step_by(2);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), left.clone().count());
        for number in left {
            let moved = dir.join(format!("dir{number}/moved"));
            assert_eq!(fs::read(moved).unwrap(), b"onetwo");
        }
    }
}
