//! The lower bound of a mount's costs: small files with known contents; the thread that reads a call answers it at once.
//! Only the kernel and this crate's codec take part. By default answers have no validity, so that the kernel makes every
//! possible call. With `believing`, names and attributes are valid for an hour, which leaves the fewest calls possible
//! without cached contents. At the unmount it prints the calls.
//!
//! `cargo run --release -p wirefs-fuse --example floor DIR [believing]`, as root; then `read_file DIR` of `wirefs-pingfs` reads there.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use wirefs_client::call::{Answer, Call, CallId, Caller, Entry, Handle, PageCache, ROOT, TreeNodeId};
use wirefs_fuse::{FileSystem, MountOptions, ReaderRole, Reply, Session, SessionOptions, mount};
use wirefs_op::{Errno, FileId, Kind, Stat, Timestamp};

/// The number of files that `read_file` expects.
const FILES: u64 = 16;
const FILE_BYTES: u64 = 100;
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Floor {
    believing: bool,
    asked: Mutex<BTreeMap<&'static str, u64>>,
}

fn content(number: u64) -> Bytes {
    (0..FILE_BYTES).map(|place| (number * 7 + place) as u8).collect()
}

fn stat(node: TreeNodeId) -> Stat {
    let is_root = node == ROOT;
    let time = Timestamp { secs: 1, nanos: 0 };
    Stat {
        id: FileId { fs: 0, ino: node.0 + 1, generation: 0 },
        kind: if is_root { Kind::Directory } else { Kind::File },
        version: 1,
        mode: if is_root { 0o755 } else { 0o644 },
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: if is_root { 0 } else { FILE_BYTES },
        blocks: 1,
        blksize: 4096,
        atime: time,
        mtime: time,
        ctime: time,
        without_xattrs: true,
        leased: false,
    }
}

/// The file's node; the root has node 1.
fn file(name: &[u8]) -> Option<TreeNodeId> {
    let number: u64 = std::str::from_utf8(name).ok()?.strip_prefix("small")?.parse().ok()?;
    (number < FILES).then_some(TreeNodeId(ROOT.0 + 1 + number))
}

fn answer(call: &Call<'_>, believing: bool) -> (&'static str, Answer) {
    let (ttl, pages) = match believing {
        true => (HOUR, PageCache::QuietBypass),
        false => (Duration::ZERO, PageCache::Bypass),
    };
    match call {
        Call::Lookup { name, .. } => {
            let entry = |node| Entry { node, stat: stat(node), entry_ttl: ttl, attr_ttl: ttl, is_held: true };
            ("lookup", file(name).map_or(Answer::Fail(Errno::NotFound), |node| Answer::Entry(entry(node))))
        }
        Call::Getattr { node, .. } => ("getattr", Answer::Attr(stat(*node), ttl)),
        Call::Open { .. } => ("open", Answer::Opened(Handle(1), pages)),
        Call::Read { node, offset, .. } => {
            let whole = content(node.0 - ROOT.0 - 1);
            let from = whole.len().min(usize::try_from(*offset).unwrap_or(usize::MAX));
            ("read", Answer::Data(whole.slice(from..)))
        }
        Call::Flush { .. } => ("flush", Answer::Done),
        Call::Release { .. } => ("release", Answer::Done),
        _ => ("other", Answer::Fail(Errno::NotSupported)),
    }
}

impl FileSystem for Floor {
    fn call(&self, _: Caller, call: Call<'_>, reply: Reply, _: &ReaderRole<'_>) {
        let (name, answer) = answer(&call, self.believing);
        reply.answer(answer);
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }

    fn interrupt(&self, _: CallId) -> bool {
        true
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("name a directory")?);
    let device = mount(&dir, &MountOptions::default())?;
    let believing = std::env::args().nth(2).is_some_and(|word| word == "believing");
    let floor = Arc::new(Floor { believing, ..Floor::default() });
    let session = Session::start(device, Arc::clone(&floor) as _, SessionOptions::default())?;
    session.join()?;
    let asked = floor.asked.lock().unwrap_or_else(PoisonError::into_inner);
    let counts: Vec<String> = asked.iter().map(|(name, count)| format!("{name} {count}")).collect();
    println!("asked: {}", counts.join(", "));
    Ok(())
}
