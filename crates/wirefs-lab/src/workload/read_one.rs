//! Reading one small file.

use super::{Place, Start, Step, Workload, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "read-one",
    about: |_| "open, read and close one file of 1 KiB".to_owned(),
    programs: &[],
    prepare: |place| tree::make_files(&place.tree, 1, 1_024),
    steps: &[
        Step { name: "cold", start: Start::Cold, run, bulk: None },
        Step { name: "warm", start: Start::Warm, run, bulk: None },
    ],
};

fn run(place: &Place) -> Result<(), LabError> {
    disk::verify("bytes", 1_024, disk::read(&place.at("file000"))?)
}
