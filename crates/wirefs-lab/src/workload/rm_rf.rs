//! `rm -rf` of a source tree.

use std::process::Command;

use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "rm-rf",
    about: |scale| format!("rm -rf of {} files in {} directories", scale.files, scale.directories),
    programs: &[("rm", "coreutils")],
    prepare: |place| {
        disk::make_directory(&place.at("sources"))?;
        tree::make_sources(&place.at("sources"), &place.scale)
    },
    steps: &[WorkloadStep { name: "", cache: CacheState::Cold, run, bulk: None }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    disk::run(Command::new("rm").arg("-rf").arg(place.at("sources")))?;
    Ok(())
}
