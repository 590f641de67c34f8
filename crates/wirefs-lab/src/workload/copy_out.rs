//! `cp -r` of a source tree to the client's own disk.

use std::process::Command;

use super::{BareTransfer, CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "copy-out",
    about: |scale| format!("cp -r of {} files in {} directories", scale.files, scale.directories),
    programs: &[("cp", "coreutils")],
    prepare: |place| tree::make_sources(&place.tree, &place.scale),
    steps: &[WorkloadStep { name: "", cache: CacheState::Cold, run, bulk: Some(BareTransfer::Tree) }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    disk::run(Command::new("cp").arg("-r").arg(&place.tree).arg(place.local.join("copy")))?;
    Ok(())
}
