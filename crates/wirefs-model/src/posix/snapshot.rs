//! Comparison of the whole tree with the model.

use crate::fs::{InodeBody, ModelFs, ModelIno, ROOT};
use crate::operation::{NameCall, ObjectCall, OpenFlags, Operation};
use crate::posix::{DirectoryExecutor, Executor, ModelExecutor};
use std::collections::BTreeMap;

/// The maximum size for a comparison of all contents; of larger files only the model's pages are compared.
const WHOLE_BYTES_MAX: u64 = 128 * 1024;
const STEP_BYTES: usize = 4096;

/// A difference: the operation, the model's outcome, the actual outcome.
pub(super) type SnapshotDifference = (String, String, String);

/// Compares the whole tree with the model. Reads on both sides, so that the access times stay equal.
pub(super) fn compare(
    model: &mut ModelExecutor,
    executor: &mut DirectoryExecutor,
) -> Result<(), SnapshotDifference> {
    let mut numbers = BTreeMap::new();
    for (path, ino) in all_paths(&model.fs) {
        let operations = inspections(&model.fs, &path, ino);
        for operation in operations {
            if matches!(operation, Operation::Object(_, ObjectCall::ListXattrs)) && !executor.features.xattrs
            {
                continue;
            }
            let (expected, actual) = (model.perform(&operation), executor.perform(&operation));
            if !expected.allows(&actual, executor.features.counts_subdirectories) {
                return Err((format!("{operation:?}"), format!("{expected:?}"), format!("{actual:?}")));
            }
        }
        if let Ok(number) = executor.inode_number(&path) {
            let first = *numbers.entry(ino).or_insert(number);
            if first != number {
                return Err((format!("inode of {path}"), format!("{first}"), format!("{number}")));
            }
        }
        if let Ok(contents) = model.fs.contents(ino) {
            let offsets: Vec<u64> = contents.page_offsets().collect();
            compare_contents(model, executor, &path, ino, &offsets)?;
        }
    }
    let mut different: Vec<u64> = numbers.values().copied().collect();
    different.sort_unstable();
    different.dedup();
    if different.len() != numbers.len() {
        return Err((
            "inodes".into(),
            format!("{} objects", numbers.len()),
            format!("{} inodes", different.len()),
        ));
    }
    Ok(())
}

/// Returns the operations that read all properties of an object.
fn inspections(fs: &ModelFs, path: &str, ino: ModelIno) -> Vec<Operation> {
    let mut operations = vec![Operation::stat(path), Operation::Object(path.into(), ObjectCall::ListXattrs)];
    match fs.inode(ino).map(|inode| &inode.body) {
        Ok(InodeBody::Directory { .. }) => {
            operations.push(Operation::Name(NameCall::List { path: path.into() }))
        }
        Ok(InodeBody::Symlink(_)) => {
            operations.push(Operation::Name(NameCall::Readlink { path: path.into() }))
        }
        Ok(InodeBody::File(_) | InodeBody::Node(_)) | Err(_) => {}
    }
    for name in fs.xattr_names(ino).unwrap_or_default() {
        let name = String::from_utf8_lossy(name).into_owned();
        operations.push(Operation::Object(path.into(), ObjectCall::ReadXattr { name }));
    }
    operations
}

/// Returns every path with its inode, except the root.
fn all_paths(fs: &ModelFs) -> Vec<(String, ModelIno)> {
    let mut paths = Vec::new();
    let mut directories = vec![(String::new(), ROOT)];
    while let Some((prefix, dir)) = directories.pop() {
        for (name, entry) in fs.list(dir, 0).unwrap_or_default() {
            let path = format!("{prefix}{}", String::from_utf8_lossy(&name));
            if fs.inode(entry.ino).is_ok_and(|inode| inode.is_directory()) {
                directories.push((format!("{path}/"), entry.ino));
            }
            paths.push((path, entry.ino));
        }
    }
    paths
}

fn compare_contents(
    model: &mut ModelExecutor,
    executor: &DirectoryExecutor,
    path: &str,
    ino: ModelIno,
    pages: &[u64],
) -> Result<(), SnapshotDifference> {
    let failed = |what: String| (format!("contents of {path}"), "can be read".to_string(), what);
    let open_flags = OpenFlags { read: true, no_follow: true, ..OpenFlags::default() };
    let file = executor.open_at(path, open_flags).map_err(|error| failed(error.to_string()))?;
    let size = model.fs.contents(ino).map_or(0, crate::contents::FileContents::size);
    let offsets: Vec<u64> = if size <= WHOLE_BYTES_MAX {
        (0..=size).step_by(STEP_BYTES).collect()
    } else {
        let ends = [0, size.saturating_sub(STEP_BYTES as u64), size];
        pages.iter().copied().chain(ends).collect()
    };
    for offset in offsets {
        let mut bytes = vec![0; STEP_BYTES];
        let len = rustix::io::pread(&file, &mut bytes, offset).map_err(|error| failed(error.to_string()))?;
        bytes.truncate(len);
        let expected = model.fs.read(ino, offset, STEP_BYTES as u64).unwrap_or_default();
        if expected != bytes {
            let at = expected.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
            let around = |bytes: &[u8]| {
                format!("{} bytes, {:?}…", bytes.len(), bytes.iter().skip(at).take(8).collect::<Vec<_>>())
            };
            return Err((
                format!("contents of {path} from {}", offset + at as u64),
                around(&expected),
                around(&bytes),
            ));
        }
    }
    Ok(())
}
