//! Saving a file like a careful editor: write a new file, fsync it, rename it over the old one.

use std::fs::{self, File};
use std::io::Write as _;

use super::disk::ErrorContext as _;
use super::{CacheState, WorkPlace, Workload, WorkloadStep, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "editor-save",
    about: |scale| format!("{} saves of 8 KiB (write, fsync, rename)", scale.saves),
    programs: &[],
    prepare: |place| tree::make_files(&place.tree, 1, 8 << 10),
    steps: &[WorkloadStep { name: "", cache: CacheState::Warm, run, bulk: None }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    let (path, new) = (place.at("file000"), place.at(".file000.new"));
    (0..place.scale.saves).try_for_each(|nth| {
        let save = || {
            let mut file = File::create(&new)?;
            file.write_all(&vec![b'a' + (nth % 26) as u8; 8 << 10])?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        save().context("save", &path)
    })
}
