//! `git status` in a repository.

use std::process::Command;

use super::{Place, Start, Step, Workload, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "git-status",
    about: |scale| format!("git status over {} files in {} directories", scale.files, scale.directories),
    programs: &[("git", "git")],
    prepare,
    steps: &[
        Step { name: "cold", start: Start::Cold, run: status, bulk: None },
        Step { name: "warm", start: Start::Warm, run: status, bulk: None },
        Step { name: "warm, again", start: Start::Warm, run: status, bulk: None },
    ],
};

/// Only times and sizes count as changes, as git advises for trees that several systems see: a peer that shows other
/// inode numbers than the server would otherwise be measured reading every file.
const SETTINGS: [&str; 8] = [
    "-c",
    "core.checkStat=minimal",
    "-c",
    "core.trustctime=false",
    "-c",
    "user.name=lab",
    "-c",
    "user.email=lab@localhost",
];

fn git(place: &Place) -> Command {
    let mut git = Command::new("git");
    // The person's own settings must not change what is measured.
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    git.arg("-C").arg(&place.tree).args(SETTINGS);
    git
}

fn prepare(place: &Place) -> Result<(), LabError> {
    tree::make_sources(&place.tree, &place.scale)?;
    disk::run(git(place).args(["init", "--quiet"]))?;
    disk::run(git(place).args(["add", "--all"]))?;
    disk::run(git(place).args(["commit", "--quiet", "--message", "all"]))?;
    Ok(())
}

fn status(place: &Place) -> Result<(), LabError> {
    let changes = disk::run(git(place).args(["status", "--porcelain"]))?;
    disk::verify("changes", 0, disk::lines(&changes))
}
