//! Creating many small files.

use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "create",
    about: |scale| format!("{} creates of 1 KiB", scale.creates),
    programs: &[],
    prepare: |_| Ok(()),
    steps: &[WorkloadStep { name: "", cache: CacheState::Warm, run, bulk: None }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    (0..place.scale.creates)
        .try_for_each(|number| disk::create(&place.at(format!("new{number:04}")), &[b'n'; 1_024]))
}
