//! `find` over a source tree.

use std::process::Command;

use super::{Place, Start, Step, Workload, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "find",
    about: |scale| format!("find -size +1 over {} files in {} directories", scale.files, scale.directories),
    programs: &[("find", "findutils")],
    prepare: |place| tree::make_sources(&place.tree, &place.scale),
    steps: &[
        Step { name: "cold", start: Start::Cold, run, bulk: None },
        Step { name: "warm", start: Start::Warm, run, bulk: None },
        // The kernel asks once more for the attributes of each directory that it has listed; from here on for nothing.
        Step { name: "warm, again", start: Start::Warm, run, bulk: None },
    ],
};

/// Asks for the size, so that the attributes of every file are needed and not only its kind.
fn run(place: &Place) -> Result<(), LabError> {
    let found = disk::run(Command::new("find").arg(&place.tree).args(["-type", "f", "-size", "+1"]))?;
    disk::verify("files found", place.scale.files as u64, disk::lines(&found))
}
