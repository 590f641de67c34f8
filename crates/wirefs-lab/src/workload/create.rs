//! Creating many small files.

use super::{Place, Start, Step, Workload, disk};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "create",
    about: |scale| format!("{} creates of 1 KiB", scale.creates),
    programs: &[],
    prepare: |_| Ok(()),
    steps: &[Step { name: "", start: Start::Warm, run, bulk: None }],
};

fn run(place: &Place) -> Result<(), LabError> {
    (0..place.scale.creates)
        .try_for_each(|number| disk::create(&place.at(format!("new{number:04}")), &[b'n'; 1_024]))
}
