//! `git status` in a repository.

use std::process::Command;

use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "git-status",
    about: |scale| format!("git status over {} files in {} directories", scale.files, scale.directories),
    programs: &[("git", "git")],
    prepare,
    steps: &[
        WorkloadStep { name: "cold", cache: CacheState::Cold, run: status, bulk: None },
        WorkloadStep { name: "warm", cache: CacheState::Warm, run: status, bulk: None },
        WorkloadStep { name: "warm, again", cache: CacheState::Warm, run: status, bulk: None },
    ],
};

/// Only times and sizes count as changes, as git recommends for trees shared by several systems. Otherwise git would
/// read every file again on a peer that shows other inode numbers than the server.
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

fn git(place: &WorkPlace) -> Command {
    let mut git = Command::new("git");
    // The user's own settings must not affect the measurement.
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    git.arg("-C").arg(&place.tree).args(SETTINGS);
    git
}

fn prepare(place: &WorkPlace) -> Result<(), LabError> {
    tree::make_sources(&place.tree, &place.scale)?;
    disk::run(git(place).args(["init", "--quiet"]))?;
    disk::run(git(place).args(["add", "--all"]))?;
    disk::run(git(place).args(["commit", "--quiet", "--message", "all"]))?;
    Ok(())
}

fn status(place: &WorkPlace) -> Result<(), LabError> {
    let changes = disk::run(git(place).args(["status", "--porcelain"]))?;
    disk::verify("changes", 0, disk::lines(&changes))
}
