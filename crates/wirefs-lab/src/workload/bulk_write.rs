//! Writing one large file, then fsync.

use super::{Bulk, Place, Start, Step, Workload, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "bulk-write",
    about: |scale| format!("writing {} MiB, then fsync", scale.bulk_bytes >> 20),
    programs: &[],
    prepare: |_| Ok(()),
    steps: &[Step { name: "", start: Start::Cold, run, bulk: Some(Bulk::Up) }],
};

fn run(place: &Place) -> Result<(), LabError> {
    tree::make_large(&place.at("large"), place.scale.bulk_bytes)
}
