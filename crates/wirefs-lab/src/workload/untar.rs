//! Unpacking an archive into the tree.

use std::fs;
use std::process::Command;

use super::disk::ErrorContext as _;
use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "untar",
    about: |scale| format!("tar x of {} files in {} directories", scale.files, scale.directories),
    programs: &[("tar", "tar")],
    prepare,
    steps: &[WorkloadStep { name: "", cache: CacheState::Warm, run, bulk: None }],
};

fn prepare(place: &WorkPlace) -> Result<(), LabError> {
    let packed = place.local.join("packed");
    disk::make_directory(&packed)?;
    tree::make_sources(&packed, &place.scale)?;
    let archive = place.local.join("sources.tar");
    disk::run(Command::new("tar").arg("-cf").arg(archive).arg("-C").arg(&packed).arg("."))?;
    fs::remove_dir_all(&packed).context("remove", &packed)
}

fn run(place: &WorkPlace) -> Result<(), LabError> {
    let archive = place.local.join("sources.tar");
    disk::run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&place.tree))?;
    Ok(())
}
