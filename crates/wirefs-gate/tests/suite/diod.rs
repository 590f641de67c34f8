//! The clients of diod, which nobody here wrote.

use crate::gate::{Gate, Place};
use std::os::unix::fs::symlink;
use std::process::Command;

/// Runs one of diod's clients and returns its output.
fn run(gate: &Gate, program: &str, arguments: &[&str]) -> Vec<u8> {
    let found = ["/usr/sbin", "/usr/bin"].map(|dir| format!("{dir}/{program}"));
    let program = found.iter().find(|path| std::path::Path::new(path).exists());
    let program = program.expect("the Debian package diod is installed (scripts/need test)");
    let output = Command::new(program).arg("-s").arg(&gate.socket).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    output.stdout
}

#[test]
fn diodls_lists_what_ls_lists() {
    let place = Place::new();
    std::fs::create_dir(place.tree("sub")).unwrap();
    std::fs::write(place.tree("sub/file"), "12345").unwrap();
    symlink("file", place.tree("sub/link")).unwrap();
    let gate = Gate::serve(&place, &[]);
    let listed = run(&gate, "diodls", &["-a", "/", "sub"]);
    let listed = String::from_utf8(listed).unwrap();
    let mut names: Vec<&str> = listed.split_whitespace().collect();
    names.sort_unstable();
    assert_eq!(names, ["file", "link"]);
    let long = String::from_utf8(run(&gate, "diodls", &["-a", "/sub", "-l", "."])).unwrap();
    let line = long.lines().find(|line| line.ends_with(" file")).unwrap();
    assert!(line.starts_with("-rw") && line.contains(" 5 "), "{line}");
}

#[test]
fn diodcat_reads_what_cat_reads() {
    let place = Place::new();
    let contents: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(place.tree("big"), &contents).unwrap();
    let gate = Gate::serve(&place, &[]);
    assert!(run(&gate, "diodcat", &["-a", "/", "big"]) == contents);
}
