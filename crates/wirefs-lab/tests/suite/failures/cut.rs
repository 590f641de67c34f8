//! Changes that are under way when the line is cut for so long that the connection is given up.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use wirefs_lab::LinkProfile;

use crate::site::{Site, wait_for};

const PROGRAMS: usize = 6;

/// Changes that fail when they are done twice, and what they leave.
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

/// Ends the programs, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn programs_see_nothing_of_connections_that_are_lost_and_made_again() {
    let site = Site::tls("cuts", LinkProfile::rtt(Duration::from_millis(10)));
    let mount = site.mount("mnt", &["--deadline", "120s"]);
    let (over, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let status = || site.wirefs(&["status", mount.to_str().unwrap(), "--json"]).succeeds();
    let is_connected = || status().contains("\"connected\": true") || status().contains("\"connected\":true");
    let program = |index: usize| -> usize {
        let dir = mount.join(format!("program{index}"));
        fs::create_dir(&dir).unwrap();
        let mut number = 0;
        while !over.load(Ordering::Relaxed) {
            round(&dir, number).unwrap_or_else(|error| panic!("round {number} of {index}: {error}"));
            number += 1;
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        number
    };
    let program = &program;
    let done: Vec<usize> = thread::scope(|scope| {
        let over = Over(&over);
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
        drop(over);
        programs.into_iter().map(|program| program.join().unwrap()).collect()
    });
    // A mount that is ahead sends the last changes behind their answers.
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
