//! The injected faults.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wirefs_lab::Direction;
use wirefs_lab::random::Random;

use super::{Course, OPTIONS, work};
use crate::machine::Kept;
use crate::site::{Site, wait_for};

/// A kind of fault.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    Kill,
    Power,
    Cut,
}

/// Those of one run.
pub(super) struct Faults<'a> {
    site: &'a Site,
    server: &'a Kept<'a>,
    mount: &'a Path,
    course: &'a Course,
    is_long: bool,
    dice: &'a mut Random,
}

/// The process that serves the mount.
fn process(site: &Site, mount: &Path) -> Pid {
    let status = site.wirefs(&["status", "--json", mount.to_str().unwrap()]).succeeds();
    let number = status.split("\"process\":").nth(1).unwrap();
    let digits: String = number.trim_start().chars().take_while(char::is_ascii_digit).collect();
    Pid::from_raw(digits.parse().unwrap()).unwrap()
}

impl<'a> Faults<'a> {
    pub(super) fn new(
        site: &'a Site,
        server: &'a Kept<'a>,
        mount: &'a Path,
        course: &'a Course,
        is_long: bool,
        dice: &'a mut Random,
    ) -> Faults<'a> {
        Faults { site, server, mount, course, is_long, dice }
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.dice.below(bound)
    }

    /// Lets one happen, waits until everything is there again, and tells what it was.
    pub(super) fn happens(&mut self, fault: Fault) -> &'static str {
        match fault {
            Fault::Kill => self.kill(),
            Fault::Power => self.power(),
            Fault::Cut => self.cut(),
        }
    }

    /// Up to so many milliseconds; most are short.
    fn pause(&mut self, millis: u64) {
        let micros = if self.dice.below(3) == 0 { millis * 1_000 } else { millis * 20 };
        thread::sleep(Duration::from_micros(self.dice.below(micros + 1)));
    }

    /// Kills one of them, or both.
    fn kill(&mut self) -> &'static str {
        let victim = self.dice.below(10);
        let served_by = process(self.site, self.mount);
        self.pause(200);
        if victim < 5 {
            self.server.kill();
            return "server killed";
        }
        if victim == 8 {
            self.course.killed.fetch_add(1, Ordering::SeqCst);
            self.server.kill();
        }
        self.kill_mount(served_by, victim == 8);
        // A dead mount's locks fall after 90 s, or with the server's process.
        if victim == 9 || self.course.locks.load(Ordering::SeqCst) {
            self.server.kill();
        }
        self.mount_again();
        if victim < 8 { "mount killed" } else { "both killed" }
    }

    /// `is_told`: the program may have heard of it already.
    fn kill_mount(&self, served_by: Pid, is_told: bool) {
        if !is_told {
            self.course.killed.fetch_add(1, Ordering::SeqCst);
        }
        kill_process(served_by, Signal::KILL).unwrap();
    }

    fn mount_again(&self) {
        let text = self.mount.to_str().unwrap();
        wait_for("the end of the mount", || {
            self.site.wirefs(&["umount", "-f", text]);
            !self.site.is_mounted(self.mount)
        });
        self.site.mount("mnt", &OPTIONS);
        self.course.mounted.fetch_add(1, Ordering::SeqCst);
    }

    /// The server's machine loses power, and is started again. The mount lives, or dies before or after that; or another power cut
    /// comes while what was lost is sent again.
    fn power(&mut self) -> &'static str {
        let served_by = process(self.site, self.mount);
        let how = self.dice.below(if self.is_long { 10 } else { 5 });
        self.pause(500);
        let synced = self.course.synced.load(Ordering::SeqCst);
        self.server.lose_power();
        if how == 5 || how == 6 {
            self.kill_mount(served_by, false);
        }
        self.boot(synced);
        if how >= 7 {
            self.pause(300);
        }
        if how == 7 {
            self.kill_mount(served_by, false);
        }
        if how >= 8 {
            self.server.lose_power();
            if how == 9 {
                self.kill_mount(served_by, false);
            }
            self.boot(synced);
        }
        match how {
            0..=4 => return "power",
            8 => return "power twice",
            _ => {}
        }
        self.mount_again();
        match how {
            7 => "power, then mount killed",
            9 => "power twice and mount killed",
            _ => "power and mount killed",
        }
    }

    /// The machine is started again; before the server is, all that was synced is on the disk.
    fn boot(&self, synced: u64) {
        self.server.boot();
        self.look(synced);
        self.server.serve();
    }

    fn look(&self, synced: u64) {
        if synced > 0 {
            let (name, text) = work::synced(synced);
            let found = fs::read_to_string(self.server.on_disk().join(work::SYNCED).join(&name));
            assert!(found.as_ref().is_ok_and(|found| *found == text), "{name} is synced: {found:?}");
        }
    }

    /// The line is silent for a while, both ways or one, or connections are reset, or both.
    fn cut(&mut self) -> &'static str {
        let (link, how) = (self.site.link(), self.dice.below(8));
        self.pause(200);
        match how {
            0..=3 => link.cut(),
            4 => link.cut_direction(Direction::AToB),
            5 => link.cut_direction(Direction::BToA),
            _ => {}
        }
        if how < 6 {
            let millis = match self.dice.below(10) {
                0 if self.is_long => 31_000 + self.dice.below(8_000),
                1 | 2 if self.is_long => 8_000 + self.dice.below(8_000),
                _ => 100 + self.dice.below(2_000),
            };
            thread::sleep(Duration::from_millis(millis));
        }
        if how == 3 || how > 5 {
            self.server.reset();
        }
        link.heal();
        match how {
            3 => "line cut and reset",
            6 | 7 => "reset",
            _ => "line cut",
        }
    }
}
