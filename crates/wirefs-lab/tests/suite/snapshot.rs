//! All that can be seen of a tree, so that two trees can be compared.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Room for the names, or for one value, of a file's extended attributes, in bytes.
const XATTR_BYTES_MAX: usize = 65_536;

/// What is at one name.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    mode: u32,
    nlink: u64,
    uid: u32,
    /// Bytes; each file system has its own idea of a directory's.
    size: u64,
    contents: Vec<u8>,
    target: Option<PathBuf>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    mtime: Option<(i64, i64)>,
}

/// A tree by its names.
#[derive(PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Seen>);

/// What is compared beside names, kinds, modes, links, sizes, contents, targets and attributes.
#[derive(Clone, Copy)]
pub(crate) struct Looks<'a> {
    /// Times of last change, where the program sets them.
    pub(crate) mtimes: bool,
    /// Names of files whose contents tell of inodes and times.
    pub(crate) except: &'a [&'a str],
}

impl Snapshot {
    pub(crate) fn of(root: &Path, looks: Looks<'_>) -> Snapshot {
        let mut seen = BTreeMap::new();
        look(root, Path::new(""), looks, &mut seen);
        Snapshot(seen)
    }

    /// Fails with the names that are not the same.
    #[track_caller]
    pub(crate) fn assert_same(&self, other: &Snapshot, what: &str) {
        let names: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let different: Vec<String> = names
            .into_iter()
            .filter(|name| self.0.get(*name) != other.0.get(*name))
            .map(|name| {
                format!("{}:\n  {}\n  {}", name.display(), tell(self.0.get(name)), tell(other.0.get(name)))
            })
            .collect();
        assert!(different.is_empty(), "{what}:\n{}", different.join("\n"));
    }
}

fn tell(seen: Option<&Seen>) -> String {
    seen.map_or("nothing".to_owned(), |seen| {
        let start: String = String::from_utf8_lossy(&seen.contents).chars().take(60).collect();
        let Seen { mode, nlink, uid, size, target, xattrs, mtime, .. } = seen;
        format!("mode {mode:o} nlink {nlink} uid {uid} size {size} target {target:?} {xattrs:?} {mtime:?} {start:?}")
    })
}

fn look(root: &Path, name: &Path, looks: Looks<'_>, seen: &mut BTreeMap<PathBuf, Seen>) {
    let path = root.join(name);
    let stat = fs::symlink_metadata(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let kind = stat.file_type();
    let is_excepted = looks.except.iter().any(|except| name.ends_with(except));
    let contents = if kind.is_file() && !is_excepted { fs::read(&path).unwrap() } else { Vec::new() };
    assert!(!kind.is_fifo() && !kind.is_socket(), "{}", path.display());
    seen.insert(
        name.to_owned(),
        Seen {
            mode: stat.mode(),
            nlink: stat.nlink(),
            uid: stat.uid(),
            size: if kind.is_file() && !is_excepted { stat.size() } else { 0 },
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
            look(root, &name.join(child), looks, seen);
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
