//! `ls -l` of a directory.

use std::process::Command;
use std::time::Duration;

use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

/// Longer than the attribute timeout of common network file systems.
const PAUSE: Duration = Duration::from_secs(35);

pub(super) static WORKLOAD: Workload = Workload {
    name: "ls",
    about: |scale| format!("ls -l of a directory of {} files", scale.listed),
    programs: &[("ls", "coreutils")],
    prepare: |place| {
        disk::make_directory(&place.at("d"))?;
        tree::make_files(&place.at("d"), place.scale.listed, 1_024)
    },
    steps: &[
        WorkloadStep { name: "cold", cache: CacheState::Cold, run: list, bulk: None },
        WorkloadStep { name: "warm", cache: CacheState::Warm, run: list, bulk: None },
        WorkloadStep {
            name: "warm after 35 s",
            cache: CacheState::WarmThenIdle(PAUSE),
            run: list,
            bulk: None,
        },
    ],
};

fn list(place: &WorkPlace) -> Result<(), LabError> {
    let listing = disk::run(Command::new("ls").arg("-l").arg(place.at("d")))?;
    // One extra line: the total.
    disk::verify("lines of ls", place.scale.listed as u64 + 1, disk::lines(&listing))
}
