//! `mkdir d; cd d; ls; cd ..`, as typed in a shell.

use std::process::Command;

use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "mkdir-cd",
    about: |_| "mkdir d; cd d; ls; cd ..".to_owned(),
    programs: &[("sh", "dash"), ("mkdir", "coreutils"), ("ls", "coreutils")],
    prepare: |_| Ok(()),
    steps: &[WorkloadStep { name: "", cache: CacheState::Warm, run, bulk: None }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    let script = "mkdir d && cd d && ls && cd ..";
    let listing = disk::run(Command::new("sh").args(["-c", script]).current_dir(&place.tree))?;
    disk::verify("lines of ls", 0, disk::lines(&listing))
}
