//! Reading one small file.

use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "read-one",
    about: |_| "open, read and close one file of 1 KiB".to_owned(),
    programs: &[],
    prepare: |place| tree::make_files(&place.tree, 1, 1_024),
    steps: &[
        WorkloadStep { name: "cold", cache: CacheState::Cold, run, bulk: None },
        WorkloadStep { name: "warm", cache: CacheState::Warm, run, bulk: None },
    ],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    disk::verify("bytes", 1_024, disk::read(&place.at("file000"))?)
}
