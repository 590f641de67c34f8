//! Real programs: what they leave on a mount is what they leave in a local directory, byte for byte, mode for mode.
//!
//! ```text
//! script in local/  ──────────────────────────────────┐
//! script in mnt/ ── wire ── export                     ├── compared: output, tree
//!                          export, seen on the server ─┘
//! ```

mod scripts;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use wirefs_lab::{LinkProfile, Probability};

use crate::site::{Ran, Site};
use crate::snapshot::{Looks, Snapshot};

/// A program's use, as a shell script that works in its current directory.
struct Program {
    name: &'static str,
    script: &'static str,
    looks: Looks<'static>,
}

/// How much the script does: `$SCALE`, and whether it is the wire that makes it slow.
#[derive(Clone, Copy)]
enum Scale {
    Whole,
    Small,
}

impl Program {
    fn run(&self, site: &Site, at: &Path, scale: Scale) -> String {
        let mut command = site.command("sh");
        command.args(["-euc", &format!("{}\n{}", scripts::PRELUDE, self.script)]).current_dir(at);
        // What programs would write that depends on place, time or person.
        for (name, value) in scripts::ENVIRONMENT {
            command.env(name, value);
        }
        // `make test` must not be the parent of the make that is tried.
        for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"] {
            command.env_remove(name);
        }
        command.env(
            "SCALE",
            match scale {
                Scale::Whole => "4",
                Scale::Small => "1",
            },
        );
        Ran::of(&mut command).succeeds()
    }

    fn is_the_same_on(&self, site: &Site, scale: Scale, options: &[&str]) {
        let local = site.path("local");
        let mount = site.mount("mnt", options);
        let expected = self.run(site, &local, scale);
        let shown = self.run(site, &mount, scale);
        assert_eq!(shown, expected, "what {} says", self.name);
        let expected = Snapshot::of(&local, self.looks);
        Snapshot::of(&mount, self.looks)
            .assert_same(&expected, "the mount (first) is not as the local directory");
        site.unmount(&mount);
        Snapshot::of(site.export(), self.looks)
            .assert_same(&expected, "the export (first) is not as the local directory");
        // A check of nothing would pass as well.
        let count = Ran::of(Command::new("find").arg(&local)).succeeds().lines().count();
        assert!(count > 3, "{} left {count} files", self.name);
    }
}

/// With these each change waits for the server; else a mount that is alone, as these are, answers before the server has it.
const WAITING: &[&str] = &["--no-journal"];

/// A line as between countries, and a bad one.
fn far_and_bad() -> LinkProfile {
    LinkProfile::rtt(Duration::from_millis(20)).with(|lane| lane.loss = Probability::percent(1))
}

macro_rules! on_every_wire {
    ($($program:ident),*) => {
        $(
        mod $program {
            use super::{Scale, Site, scripts};

            #[test]
            fn is_the_same_over_a_unix_socket() {
                let site = Site::unix(stringify!($program));
                scripts::$program().is_the_same_on(&site, Scale::Whole, &[]);
            }

            #[test]
            fn is_the_same_over_tls() {
                let site = Site::tls(stringify!($program), wirefs_lab::LinkProfile::default());
                scripts::$program().is_the_same_on(&site, Scale::Whole, &[]);
            }

            #[test]
            fn is_the_same_where_changes_wait() {
                let site = Site::unix(concat!(stringify!($program), "-waits"));
                scripts::$program().is_the_same_on(&site, Scale::Whole, super::WAITING);
            }
        }
        )*

        /// Each on hosts and a line of its own, all at the same time: they mostly wait.
        fn all_are_the_same_far_away(options: &[&str]) {
            let programs = [$((stringify!($program), scripts::$program as fn() -> Program)),*];
            std::thread::scope(|scope| {
                for (name, program) in programs {
                    let run = move || {
                        program().is_the_same_on(&Site::tls(name, far_and_bad()), Scale::Small, options);
                    };
                    std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run).unwrap();
                }
            });
        }
    };
}

#[test]
fn all_are_the_same_over_tls_with_20_ms_and_loss() {
    all_are_the_same_far_away(&[]);
}

#[test]
fn all_are_the_same_where_changes_wait_with_20_ms_and_loss() {
    all_are_the_same_far_away(WAITING);
}

on_every_wire!(git, make, tar, rsync, sqlite, save, sparse, eight_at_once);
