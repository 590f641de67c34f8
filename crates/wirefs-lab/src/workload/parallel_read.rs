//! Several processes reading many files at once.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::disk::ErrorContext as _;
use super::{BareTransfer, CacheState, WorkPlace, Workload, WorkloadStep, tree};
use crate::error::LabError;

const PROCESSES: usize = 8;
const FILE_BYTES: usize = 16 << 10;

pub(super) static WORKLOAD: Workload = Workload {
    name: "parallel-read",
    about: |scale| {
        format!("{PROCESSES} processes reading {} files of 16 KiB between them", scale.parallel_files)
    },
    programs: &[("cat", "coreutils")],
    prepare: |place| tree::make_files(&place.tree, place.scale.parallel_files, FILE_BYTES),
    steps: &[WorkloadStep { name: "", cache: CacheState::Cold, run, bulk: Some(BareTransfer::Tree) }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    let files: Vec<PathBuf> =
        (0..place.scale.parallel_files).map(|number| place.at(format!("file{number:03}"))).collect();
    let read = |share: &[PathBuf]| Command::new("cat").args(share).stdout(Stdio::null()).spawn();
    let started: std::io::Result<Vec<Child>> =
        files.chunks(files.len().div_ceil(PROCESSES).max(1)).map(read).collect();
    for mut child in started.context("run cat in", &place.tree)? {
        let status = child.wait().context("wait for cat in", &place.tree)?;
        if !status.success() {
            return Err(LabError::CommandFailed { command: "cat".to_owned(), stderr: status.to_string() });
        }
    }
    Ok(())
}
