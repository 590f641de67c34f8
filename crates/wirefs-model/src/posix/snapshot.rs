//! Everything that a world shows, compared with everything that the model has.

use crate::fs::{Body, Fs, Ino, ROOT};
use crate::operation::{How, OnName, OnObject, Operation};
use crate::posix::{DirectoryWorld, ModelWorld, World};
use std::collections::BTreeMap;

/// Files up to this size are compared whole, larger ones where the model has data.
const WHOLE_BYTES_MAX: u64 = 128 * 1024;
const STEP_BYTES: usize = 4096;

/// A difference: where, what the model has, what the world shows.
pub(super) type Difference = (String, String, String);

/// Compares the whole tree, as `world` shows it, with the model. Does not change the model's access times: what is
/// read here is noted there.
pub(super) fn compare(model: &mut ModelWorld, world: &mut DirectoryWorld) -> Result<(), Difference> {
    let mut numbers = BTreeMap::new();
    for (path, ino) in all_paths(&model.fs) {
        let operations = looks(&model.fs, &path, ino);
        for operation in operations {
            if matches!(operation, Operation::Object(_, OnObject::ListXattrs)) && !world.abilities.xattrs {
                continue;
            }
            let (expected, shown) = (model.perform(&operation), world.perform(&operation));
            if !expected.allows(&shown, world.abilities.counts_subdirectories) {
                return Err((format!("{operation:?}"), format!("{expected:?}"), format!("{shown:?}")));
            }
        }
        if let Ok(number) = world.inode_number(&path) {
            let first = *numbers.entry(ino).or_insert(number);
            if first != number {
                return Err((format!("inode of {path}"), format!("{first}"), format!("{number}")));
            }
        }
        if let Ok(contents) = model.fs.contents(ino) {
            let offsets: Vec<u64> = contents.page_offsets().collect();
            compare_contents(model, world, &path, ino, &offsets)?;
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

/// What to ask about an object to see all of it.
fn looks(fs: &Fs, path: &str, ino: Ino) -> Vec<Operation> {
    let mut looks = vec![Operation::stat(path), Operation::Object(path.into(), OnObject::ListXattrs)];
    match fs.inode(ino).map(|inode| &inode.body) {
        Ok(Body::Directory { .. }) => looks.push(Operation::Name(OnName::List { path: path.into() })),
        Ok(Body::Symlink(_)) => looks.push(Operation::Name(OnName::Readlink { path: path.into() })),
        Ok(Body::File(_) | Body::Node(_)) | Err(_) => {}
    }
    for name in fs.xattr_names(ino).unwrap_or_default() {
        let name = String::from_utf8_lossy(name).into_owned();
        looks.push(Operation::Object(path.into(), OnObject::ReadXattr { name }));
    }
    looks
}

/// Every path with what it is, the root left out.
fn all_paths(fs: &Fs) -> Vec<(String, Ino)> {
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
    model: &mut ModelWorld,
    world: &DirectoryWorld,
    path: &str,
    ino: Ino,
    pages: &[u64],
) -> Result<(), Difference> {
    let failed = |what: String| (format!("contents of {path}"), "can be read".to_string(), what);
    let how = How { read: true, no_follow: true, ..How::default() };
    let file = world.open_at(path, how).map_err(|error| failed(error.to_string()))?;
    let size = model.fs.contents(ino).map_or(0, crate::contents::Contents::size);
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
