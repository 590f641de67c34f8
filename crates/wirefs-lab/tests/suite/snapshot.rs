//! The visible state of a tree, for comparisons.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The buffer for the names, or for one value, of a file's extended attributes, in bytes.
const XATTR_BYTES_MAX: usize = 65_536;

/// The state of one file.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    mode: u32,
    nlink: u64,
    uid: u32,
    /// Bytes; 0 for directories, whose sizes differ between file systems.
    size: u64,
    contents: Vec<u8>,
    target: Option<PathBuf>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    mtime: Option<(i64, i64)>,
}

/// The state of a tree, by path.
#[derive(PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, FileState>);

/// The optional parts of a comparison. Names, types, modes, link counts, sizes, contents, targets and extended
/// attributes always count.
#[derive(Clone, Copy)]
pub(crate) struct Looks<'a> {
    /// Whether modification times count; only for programs that set them.
    pub(crate) mtimes: bool,
    /// Files whose contents depend on inode numbers and times.
    pub(crate) except: &'a [&'a str],
}

impl Snapshot {
    pub(crate) fn of(root: &Path, looks: Looks<'_>) -> Snapshot {
        let mut files = BTreeMap::new();
        collect(root, Path::new(""), looks, &mut files);
        Snapshot(files)
    }

    /// Panics with the paths that differ.
    #[track_caller]
    pub(crate) fn assert_same(&self, other: &Snapshot, context: &str) {
        let names: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let different: Vec<String> = names
            .into_iter()
            .filter(|name| self.0.get(*name) != other.0.get(*name))
            .map(|name| {
                format!(
                    "{}:\n  {}\n  {}",
                    name.display(),
                    describe(self.0.get(name)),
                    describe(other.0.get(name))
                )
            })
            .collect();
        assert!(different.is_empty(), "{context}:\n{}", different.join("\n"));
    }
}

fn describe(file: Option<&FileState>) -> String {
    file.map_or("nothing".to_owned(), |file| {
        let start: String = String::from_utf8_lossy(&file.contents).chars().take(60).collect();
        let FileState { mode, nlink, uid, size, target, xattrs, mtime, .. } = file;
        format!("mode {mode:o} nlink {nlink} uid {uid} size {size} target {target:?} {xattrs:?} {mtime:?} {start:?}")
    })
}

fn collect(root: &Path, name: &Path, looks: Looks<'_>, files: &mut BTreeMap<PathBuf, FileState>) {
    let path = root.join(name);
    let stat = fs::symlink_metadata(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let kind = stat.file_type();
    let is_exempt = looks.except.iter().any(|except| name.ends_with(except));
    let contents = if kind.is_file() && !is_exempt { fs::read(&path).unwrap() } else { Vec::new() };
    assert!(!kind.is_fifo() && !kind.is_socket(), "{}", path.display());
    files.insert(
        name.to_owned(),
        FileState {
            mode: stat.mode(),
            nlink: stat.nlink(),
            uid: stat.uid(),
            size: if kind.is_file() && !is_exempt { stat.size() } else { 0 },
            contents,
            target: kind.is_symlink().then(|| fs::read_link(&path).unwrap()),
            xattrs: xattrs(&path),
            mtime: looks.mtimes.then(|| (stat.mtime(), stat.mtime_nsec())),
        },
    );
    if kind.is_dir() {
        let mut names: Vec<OsString> =
            fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        for child in names {
            collect(root, &name.join(child), looks, files);
        }
    }
}

fn xattrs(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0_u8; XATTR_BYTES_MAX];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap();
    let names = names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let value = |name: &[u8]| {
        let mut value = vec![0_u8; XATTR_BYTES_MAX];
        let length = rustix::fs::lgetxattr(path, std::ffi::OsStr::from_bytes(name), &mut value[..]).unwrap();
        value.truncate(length);
        value
    };
    names.map(|name| (name.to_vec(), value(name))).collect()
}
