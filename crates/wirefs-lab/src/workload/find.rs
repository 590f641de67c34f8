//! `find` over a source tree.

use std::process::Command;

use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "find",
    about: |scale| format!("find -size +1 over {} files in {} directories", scale.files, scale.directories),
    programs: &[("find", "findutils")],
    prepare: |place| tree::make_sources(&place.tree, &place.scale),
    steps: &[
        WorkloadStep { name: "cold", cache: CacheState::Cold, run, bulk: None },
        WorkloadStep { name: "warm", cache: CacheState::Warm, run, bulk: None },
        // The kernel requests the attributes of each listed directory once more; later steps are free of that.
        WorkloadStep { name: "warm, again", cache: CacheState::Warm, run, bulk: None },
    ],
};

/// `-size` needs the attributes of every file, not only its type.
fn run(place: &WorkPlace) -> Result<(), LabError> {
    let found = disk::run(Command::new("find").arg(&place.tree).args(["-type", "f", "-size", "+1"]))?;
    disk::verify("files found", place.scale.files as u64, disk::lines(&found))
}
