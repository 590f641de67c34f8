//! Writing one large file, then fsync.

use super::{BareTransfer, CacheState, WorkPlace, Workload, WorkloadStep, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "bulk-write",
    about: |scale| format!("writing {} MiB, then fsync", scale.bulk_bytes >> 20),
    programs: &[],
    prepare: |_| Ok(()),
    steps: &[WorkloadStep { name: "", cache: CacheState::Cold, run, bulk: Some(BareTransfer::Up) }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    tree::make_large(&place.at("large"), place.scale.bulk_bytes)
}
