//! A database with many commits.

use std::process::Command;

use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk};
use crate::error::LabError;
use crate::program;

pub(super) static WORKLOAD: Workload = Workload {
    name: "sqlite",
    about: |scale| format!("sqlite3, {} transactions of one row", scale.transactions),
    programs: &[("sqlite3", "sqlite3")],
    prepare: |_| Ok(()),
    steps: &[WorkloadStep { name: "", cache: CacheState::Warm, run, bulk: None }],
};

fn run(place: &WorkPlace) -> Result<(), LabError> {
    let mut script = ".bail on\ncreate table t (n integer, text text);\n".to_owned();
    for number in 0..place.scale.transactions {
        script.push_str(&format!("begin; insert into t values ({number}, 'row {number}'); commit;\n"));
    }
    script.push_str("select n from t;\n");
    let rows = program::run(Command::new("sqlite3").arg(place.at("db")), "sqlite3", &script)?;
    disk::verify("rows", place.scale.transactions as u64, disk::lines(&rows))
}
