//! `grep -r` over a source tree.

use std::process::Command;

use super::{BareTransfer, CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "grep",
    about: |scale| format!("grep -r over {} files in {} directories", scale.files, scale.directories),
    programs: &[("grep", "grep")],
    prepare: |place| tree::make_sources(&place.tree, &place.scale),
    steps: &[
        WorkloadStep { name: "cold", cache: CacheState::Cold, run, bulk: Some(BareTransfer::Tree) },
        WorkloadStep { name: "warm", cache: CacheState::Warm, run, bulk: None },
        WorkloadStep { name: "warm, again", cache: CacheState::Warm, run, bulk: None },
    ],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    let found = disk::run(Command::new("grep").args(["-r", tree::NEEDLE]).arg(&place.tree))?;
    disk::verify("lines found", 1, disk::lines(&found))
}
