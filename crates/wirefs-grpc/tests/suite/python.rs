//! The Python client, generated from the published `.proto`, and the file system for fsspec: their own tests.

use crate::gate::GATE;
use std::path::Path;
use std::process::Command;

// S-195
#[test]
fn the_python_client_and_the_suites_of_fsspec_pass() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/python");
    // `scripts/python long` runs the edge cases of patterns too, which are two thirds of fsspec's suites.
    let output = Command::new(script)
        .args(["test", "-k", "not glob_edge_cases"])
        .env("WIREFS_GRPC", GATE)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let summary = said.lines().last().unwrap();
    assert!(summary.contains(" passed") && !summary.contains("skipped"), "{summary}");
}
