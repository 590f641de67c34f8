//! Reading one large file from its beginning to its end.

use super::{BareTransfer, CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "bulk-read",
    about: |scale| format!("reading {} MiB", scale.bulk_bytes >> 20),
    programs: &[],
    prepare: |place| tree::make_large(&place.at("large"), place.scale.bulk_bytes),
    steps: &[WorkloadStep { name: "", cache: CacheState::Cold, run, bulk: Some(BareTransfer::Down) }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    disk::verify("bytes", place.scale.bulk_bytes, disk::read(&place.at("large"))?)
}
