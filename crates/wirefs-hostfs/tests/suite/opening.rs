//! Opening an export, and the messages of failures.

use crate::harness::{Scratch, need_root};
use std::os::unix::fs::PermissionsExt;
use wirefs_hostfs::{ExportError, HostOptions, HostTree};

fn refusal(path: &std::path::Path) -> ExportError {
    match HostTree::open(path, HostOptions::all_rights()) {
        Ok(_) => panic!("{} opened", path.display()),
        Err(error) => error,
    }
}

#[test]
fn failures_of_a_missing_directory_and_a_file_differ_in_the_next_step() {
    let scratch = Scratch::new();
    let missing = scratch.path().join("missing");
    let error = refusal(&missing);
    assert_eq!(error, ExportError::Missing(missing));
    assert!(error.to_string().contains("mkdir"), "{error}");
    let file = scratch.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_eq!(refusal(&file), ExportError::NotDirectory(file));
}

#[test]
fn a_directory_that_may_not_be_read_is_refused_at_once() {
    need_root();
    let scratch = Scratch::new();
    std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let path = scratch.path().to_path_buf();
    // On Linux, rights belong to a thread: this one opens without any.
    let error = std::thread::spawn(move || {
        let mut rights = rustix::thread::capabilities(None).unwrap();
        let over_files =
            rustix::thread::CapabilitySet::DAC_OVERRIDE | rustix::thread::CapabilitySet::DAC_READ_SEARCH;
        rights.effective = rights.effective.difference(over_files);
        rights.permitted = rights.permitted.difference(over_files);
        std::os::unix::fs::chown(&path, Some(12), Some(12)).unwrap();
        rustix::thread::set_capabilities(None, rights).unwrap();
        refusal(&path)
    });
    let error = error.join().unwrap();
    assert!(matches!(error, ExportError::Denied(_)), "{error}");
}
