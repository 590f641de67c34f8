//! The listings in the replies to a Tfind, checked against the protocol.

use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::find_listing::{FindEntry, FindReader, FindRecord};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::find::FindMode;
use wirefs_op::{Errno, FileId, Kind, Reply, Stat, TreePath};

/// A directory and the received part of its listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) path: TreePath,
    pub(crate) stat: Stat,
    pub(crate) entries: Vec<FindEntry>,
    pub(crate) ended: bool,
}

/// A received stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceivedStream {
    /// In the order of arrival.
    pub(crate) listings: Vec<Listing>,
    places: BTreeMap<TreePath, usize>,
    pub(crate) messages: usize,
    /// Bytes of data in all.
    pub(crate) bytes: usize,
    pub(crate) has_more: bool,
}

impl ReceivedStream {
    pub(crate) fn of(replies: Vec<Reply>) -> Result<ReceivedStream, Errno> {
        let mut stream = ReceivedStream { messages: replies.len(), ..ReceivedStream::default() };
        for (number, reply) in replies.into_iter().enumerate() {
            let found = match reply {
                Reply::Find(found) => found,
                Reply::Error(error) => return Err(error.errno),
                reply => panic!("not an answer to Tfind: {reply:?}"),
            };
            assert_eq!(found.mode.has(FindMode::LAST), number + 1 == stream.messages);
            stream.has_more = found.mode.has(FindMode::MORE);
            assert!(found.data.0.len() <= DATA_BYTES_MAX);
            stream.bytes += found.data.0.len();
            let records = FindReader::new(found.data.0);
            for (at, record) in records.enumerate() {
                stream.add(at == 0, record.unwrap());
            }
        }
        stream.check();
        Ok(stream)
    }

    fn add(&mut self, is_first: bool, record: FindRecord) {
        match record {
            FindRecord::Directory(directory) if directory.begins => {
                let listing = Listing {
                    path: directory.path.clone(),
                    stat: directory.stat,
                    entries: Vec::new(),
                    ended: directory.ends,
                };
                let before = self.places.insert(directory.path, self.listings.len());
                assert!(before.is_none(), "{:?} begins twice", listing.path);
                self.listings.push(listing);
            }
            FindRecord::Directory(directory) => {
                let last = self.listings.last_mut().unwrap();
                assert!(is_first && !last.ended, "only at the start of a message something goes on");
                assert_eq!(last.path, directory.path);
                assert_eq!(last.stat.unleased(), directory.stat.unleased());
                last.ended = directory.ends;
            }
            FindRecord::Entry(entry) => self.listings.last_mut().unwrap().entries.push(entry),
        }
    }

    /// Checks that each directory follows the entry that names it, and that each name occurs once.
    fn check(&self) {
        let mut named: BTreeSet<(TreePath, FileId)> = BTreeSet::new();
        for (number, listing) in self.listings.iter().enumerate() {
            assert_eq!(listing.path.is_root(), number == 0);
            let is_named = named.contains(&(listing.path.clone(), listing.stat.id));
            assert!(number == 0 || is_named, "{:?} was not stream of before", listing.path);
            let names: BTreeSet<&[u8]> = listing.entries.iter().map(|entry| &entry.name[..]).collect();
            assert_eq!(names.len(), listing.entries.len(), "a name twice in {:?}", listing.path);
            for entry in listing.entries.iter().filter(|entry| entry.stat.kind == Kind::Directory) {
                named.extend(listing.path.join(&entry.name).map(|path| (path, entry.stat.id)));
            }
        }
    }

    pub(crate) fn listing(&self, path: &TreePath) -> Option<&Listing> {
        self.places.get(path).map(|at| &self.listings[*at])
    }

    pub(crate) fn entry(&self, dir: &str, name: &str) -> &FindEntry {
        let listing = self.listing(&crate::harness::path(dir)).unwrap();
        listing.entries.iter().find(|entry| entry.name == name.as_bytes()).unwrap()
    }

    /// Entries in all.
    pub(crate) fn entries(&self) -> usize {
        self.listings.iter().map(|listing| listing.entries.len()).sum()
    }
}
