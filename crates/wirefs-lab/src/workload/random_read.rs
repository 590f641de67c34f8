//! Random reads in a large file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::disk::ErrorContext as _;
use super::{CacheState, WorkPlace, Workload, WorkloadStep, tree};
use crate::error::LabError;
use crate::random::Random;

const READ_BYTES: usize = 4 << 10;
const SEED: u64 = 0x4EAD;

pub(super) static WORKLOAD: Workload = Workload {
    name: "random-read",
    about: |scale| {
        format!("{} random reads of 4 KiB in a file of {} MiB", scale.random_reads, scale.random_bytes >> 20)
    },
    programs: &[],
    prepare: |place| tree::make_large(&place.at("large"), place.scale.random_bytes),
    steps: &[WorkloadStep { name: "", cache: CacheState::Cold, run, bulk: None }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    let path = place.at("large");
    let file = File::open(&path).context("open", &path)?;
    let mut random = Random::new(SEED);
    let blocks = place.scale.random_bytes / READ_BYTES as u64;
    let mut block = [0; READ_BYTES];
    (0..place.scale.random_reads).try_for_each(|_| {
        let offset = random.below(blocks) * READ_BYTES as u64;
        file.read_exact_at(&mut block, offset).context("read", &path)
    })
}
