//! Real programs: their results on a mount equal those in a local directory in every byte and mode.
//!
//! ```text
//! script in local/  ──────────────────────────────────┐
//! script in mnt/ ── network ── export                  ├── compared: output, tree
//!                          export on the server ───────┘
//! ```

mod scripts;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use wirefs_lab::{LinkProfile, Probability};

use crate::site::{ProgramResult, Site};
use crate::snapshot::{Looks, Snapshot};

/// The use of a program, as a shell script that works in its current directory.
struct ProgramTest {
    name: &'static str,
    script: &'static str,
    looks: Looks<'static>,
}

/// The amount of work of the script: `$SCALE`. Small over slow links.
#[derive(Clone, Copy)]
enum ScriptScale {
    Whole,
    Small,
}

impl ProgramTest {
    fn run(&self, site: &Site, at: &Path, scale: ScriptScale) -> String {
        let mut command = site.command("sh");
        command.args(["-euc", &format!("{}\n{}", scripts::PRELUDE, self.script)]).current_dir(at);
        // Removes dependencies on place, time and user.
        for (name, value) in scripts::ENVIRONMENT {
            command.env(name, value);
        }
        // The tested make must not see the variables of `make test`.
        for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"] {
            command.env_remove(name);
        }
        command.env(
            "SCALE",
            match scale {
                ScriptScale::Whole => "4",
                ScriptScale::Small => "1",
            },
        );
        ProgramResult::of(&mut command).succeeds()
    }

    fn compare_with_local(&self, site: &Site, scale: ScriptScale, options: &[&str]) {
        let local = site.path("local");
        let mount = site.mount("mnt", options);
        let expected = self.run(site, &local, scale);
        let actual = self.run(site, &mount, scale);
        assert_eq!(actual, expected, "output of {}", self.name);
        let expected = Snapshot::of(&local, self.looks);
        Snapshot::of(&mount, self.looks)
            .assert_same(&expected, "the mount (first) differs from the local directory");
        site.unmount(&mount);
        Snapshot::of(site.export(), self.looks)
            .assert_same(&expected, "the export (first) differs from the local directory");
        // A script without files would pass as well.
        let count = ProgramResult::of(Command::new("find").arg(&local)).succeeds().lines().count();
        assert!(count > 3, "{} left {count} files", self.name);
    }
}

/// Each change waits for the server. Without the option these mounts, as sole clients, answer before the server has it.
const NO_JOURNAL: &[&str] = &["--no-journal"];

/// A wide-area link with loss.
fn slow_and_lossy() -> LinkProfile {
    LinkProfile::rtt(Duration::from_millis(20)).with(|lane| lane.loss = Probability::percent(1))
}

macro_rules! on_every_network {
    ($($program:ident),*) => {
        $(
        mod $program {
            use super::{ScriptScale, Site, scripts};

            #[test]
            fn same_result_over_unix_socket() {
                let site = Site::unix(stringify!($program));
                scripts::$program().compare_with_local(&site, ScriptScale::Whole, &[]);
            }

            #[test]
            fn same_result_over_tls() {
                let site = Site::tls(stringify!($program), wirefs_lab::LinkProfile::default());
                scripts::$program().compare_with_local(&site, ScriptScale::Whole, &[]);
            }

            #[test]
            fn same_result_without_journal() {
                let site = Site::unix(concat!(stringify!($program), "-no-journal"));
                scripts::$program().compare_with_local(&site, ScriptScale::Whole, super::NO_JOURNAL);
            }
        }
        )*

        /// Runs all programs in parallel, each with its own hosts and link: they mostly wait.
        fn compare_all_over_slow_link(options: &[&str]) {
            let programs = [$((stringify!($program), scripts::$program as fn() -> ProgramTest)),*];
            std::thread::scope(|scope| {
                for (name, program) in programs {
                    let run = move || {
                        program().compare_with_local(&Site::tls(name, slow_and_lossy()), ScriptScale::Small, options);
                    };
                    std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run).unwrap();
                }
            });
        }
    };
}

#[test]
fn same_results_over_20_ms_with_loss() {
    compare_all_over_slow_link(&[]);
}

#[test]
fn same_results_over_20_ms_with_loss_without_journal() {
    compare_all_over_slow_link(NO_JOURNAL);
}

on_every_network!(git, make, tar, rsync, sqlite, save, sparse, eight_at_once);
