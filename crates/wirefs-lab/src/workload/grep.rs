//! `grep -r` over a source tree.

use std::process::Command;

use super::{Bulk, Place, Start, Step, Workload, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "grep",
    about: |scale| format!("grep -r over {} files in {} directories", scale.files, scale.directories),
    programs: &[("grep", "grep")],
    prepare: |place| tree::make_sources(&place.tree, &place.scale),
    steps: &[
        Step { name: "cold", start: Start::Cold, run, bulk: Some(Bulk::Tree) },
        Step { name: "warm", start: Start::Warm, run, bulk: None },
        Step { name: "warm, again", start: Start::Warm, run, bulk: None },
    ],
};

fn run(place: &Place) -> Result<(), LabError> {
    let found = disk::run(Command::new("grep").args(["-r", tree::NEEDLE]).arg(&place.tree))?;
    disk::verify("lines found", 1, disk::lines(&found))
}
