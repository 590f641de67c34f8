use super::packing::Packing;
use super::read_ahead::ReadAhead;
use super::reading::{Directory, Reader, Remainder};
use super::{FIRST_AGE_MAX, PART_CHILDREN_BYTES_MAX, Stream, StreamState};
use crate::DetectionMode;
use crate::open_files::Access;
use crate::tree::{HostOptions, HostTree};
use std::path::PathBuf;
use std::time::Instant;
use wirefs_op::find_listing::{FindDirectory, FindReader, FindRecord};
use wirefs_op::limits::PATH_BYTES_MAX;
use wirefs_op::message::find::Tfind;
use wirefs_op::message::target::Target;
use wirefs_op::{Reply, Stat, TreePath};
use wirefs_server::{Replies, SessionKey, Stopped, Tree};

/// An exported directory that is removed afterwards.
struct ExportedDir(PathBuf, HostTree);

impl ExportedDir {
    fn new(name: &str) -> ExportedDir {
        let path = std::env::temp_dir().join(format!("wirefs-find-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let options = HostOptions { detection: DetectionMode::Exclusive, ..HostOptions::all_rights() };
        let tree = HostTree::open(&path, options).unwrap();
        tree.attach(SessionKey(1), &TreePath::root()).unwrap();
        ExportedDir(path, tree)
    }
}

impl Drop for ExportedDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Grants so slowly that a message becomes due, and only a limited number of times.
struct SlowReplies {
    replies: Vec<Reply>,
    grants_left: usize,
}

impl Replies for SlowReplies {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.replies.push(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        let until = Instant::now() + 2 * FIRST_AGE_MAX;
        while Instant::now() < until {
            std::thread::yield_now();
        }
        if self.grants_left > 0 {
            self.grants_left -= 1;
            stats.for_each(|stat| stat.leased = true);
        }
    }

    fn wait(&mut self) {}
}

#[test]
fn a_part_ends_when_its_paths_take_much_memory() {
    let queued = ExportedDir::new("paths");
    let count = 2 * PART_CHILDREN_BYTES_MAX / PATH_BYTES_MAX;
    (0..count).for_each(|number| std::fs::create_dir(queued.0.join(format!("{number}"))).unwrap());
    let session = queued.1.session(SessionKey(1)).unwrap();
    let target = Target::at(TreePath::root());
    let request = Tfind { target, depth: u16::MAX, entries: u32::MAX, bytes: u32::MAX, inline: 0 };
    let top = session.locate(&request.target).unwrap();
    // The reader does not open this path.
    let deep = std::iter::repeat_n(b"d".repeat(250), PATH_BYTES_MAX / 251 - 1).collect::<Vec<_>>();
    let path = TreePath::from_names(deep.iter().map(Vec::as_slice)).unwrap();
    let path_bytes = path.as_bytes().len();
    let directory = Directory { path, id: top.id, level: 0 };
    let dir = top.open(Access::READ).unwrap();
    let reading = Reader::new(&session, &request).begin(dir, &directory, &mut || false).unwrap();
    assert!(matches!(reading.rest, Remainder::More(_)));
    assert!(reading.part.bytes() > reading.part.children.len() * path_bytes, "they are counted");
    assert!(reading.part.bytes() < PART_CHILDREN_BYTES_MAX + 2 * PATH_BYTES_MAX);
}

/// The message with the entries is sent before the end of the listing is known.
#[test]
fn a_late_end_of_a_listing_is_in_the_next_message() {
    let queued = ExportedDir::new("late");
    std::fs::write(queued.0.join("file"), "").unwrap();
    let session = queued.1.session(SessionKey(1)).unwrap();
    let target = Target::at(TreePath::root());
    let request = Tfind { target, depth: 0, entries: 10, bytes: 1000, inline: 0 };
    let top = session.locate(&request.target).unwrap();
    let directory = Directory { path: TreePath::root(), id: top.id, level: 0 };
    let (ahead, mut slow) = (ReadAhead::new(10), SlowReplies { replies: Vec::new(), grants_left: 2 });
    let mut stream = Stream {
        session: &session,
        request: &request,
        read_ahead: &ahead,
        reader: Reader::new(&session, &request),
        packing: Packing::new(&request),
        replies: &mut slow,
    };
    let dir = top.open(Access::READ).unwrap();
    let reading = stream.reader.begin(dir, &directory, &mut || true).unwrap();
    assert!(matches!(reading.rest, Remainder::More(_)) && reading.part.entries.len() == 1);
    assert_eq!(stream.send_directory(directory, reading), Ok(StreamState::All));
    let last = stream.packing.take();
    let [Reply::Find(first)] = slow.replies.as_slice() else { panic!("{:?}", slow.replies) };
    let records = |data| FindReader::new(data).map(Result::unwrap).collect::<Vec<_>>();
    let flags = |record: &FindRecord| match record {
        FindRecord::Directory(FindDirectory { stat, begins, ends, .. }) => (*begins, *ends, stat.leased),
        FindRecord::Entry(_) => (false, false, false),
    };
    let (first, last) = (records(first.data.0.clone()), records(last));
    assert_eq!((first.len(), flags(&first[0])), (2, (true, false, true)));
    // The lease is granted anew.
    assert_eq!((last.len(), flags(&last[0])), (1, (false, true, false)));
}
