//! `ls -l` of a directory.

use std::process::Command;
use std::time::Duration;

use super::{Place, Start, Step, Workload, disk, tree};
use crate::error::LabError;

/// Longer than the caches of common network file systems keep attributes.
const PAUSE: Duration = Duration::from_secs(35);

pub(super) static WORKLOAD: Workload = Workload {
    name: "ls",
    about: |scale| format!("ls -l of a directory of {} files", scale.listed),
    programs: &[("ls", "coreutils")],
    prepare: |place| {
        disk::make_directory(&place.at("d"))?;
        tree::make_files(&place.at("d"), place.scale.listed, 1_024)
    },
    steps: &[
        Step { name: "cold", start: Start::Cold, run: list, bulk: None },
        Step { name: "warm", start: Start::Warm, run: list, bulk: None },
        Step { name: "warm after 35 s", start: Start::After(PAUSE), run: list, bulk: None },
    ],
};

fn list(place: &Place) -> Result<(), LabError> {
    let listing = disk::run(Command::new("ls").arg("-l").arg(place.at("d")))?;
    // One line more than files: the total.
    disk::verify("lines of ls", place.scale.listed as u64 + 1, disk::lines(&listing))
}
