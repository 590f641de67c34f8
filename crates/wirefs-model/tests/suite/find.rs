//! Tfind streams of the host directory and of the model, compared with each other and with plain listings.

use crate::scratch::Scratch;
use crate::seeds;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use wirefs_blockfs::{BlockFs, BlockFsOptions};
use wirefs_blocks::store::MemoryStore;
use wirefs_hostfs::{HostOptions, HostTree};
use wirefs_model::ModelTree;
use wirefs_op::find_listing::{FindReader, FindRecord};
use wirefs_op::listing::entries;
use wirefs_op::message::find::{FindMode, Tfind};
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::message::rename::Trename;
use wirefs_op::message::target::{Place, Target};
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Data;
use wirefs_op::{Cred, Errno, Kind, Reply, Request, SetStat, Stat, TreePath};
use wirefs_server::{Replies, SessionKey, Stopped, Tree};
use wirefs_virtual::Dice;

const SESSION: SessionKey = SessionKey(1);
const NAMES: [&str; 7] = ["a", "b", "ab", "abc", "longer name", "x.rs", "y.rs"];

#[derive(Default)]
struct ReplyList(Vec<Reply>);

impl Replies for ReplyList {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.push(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn wait(&mut self) {}
}

fn send_request(tree: &dyn Tree, request: Request) -> Result<Vec<Reply>, Errno> {
    let mut collected = ReplyList::default();
    tree.serve(SESSION, request, &mut collected);
    match collected.0.as_slice() {
        [Reply::Error(error)] => Err(error.errno),
        _ => Ok(collected.0),
    }
}

/// The properties on which two trees must agree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CommonStat {
    kind: Kind,
    mode: u32,
    owner: (u32, u32),
    /// None for directories: their sizes differ between file systems.
    links_and_size: Option<(u32, u64)>,
    contents: Option<Bytes>,
}

fn common_stat(stat: &Stat, contents: Option<Bytes>) -> CommonStat {
    let counts = (stat.kind != Kind::Directory).then_some((stat.nlink, stat.size));
    CommonStat {
        kind: stat.kind,
        mode: stat.mode,
        owner: (stat.uid, stat.gid),
        links_and_size: counts,
        contents,
    }
}

/// The listing of a directory, as far as received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ReceivedListing {
    is_complete: bool,
    entries: BTreeMap<Vec<u8>, CommonStat>,
    stats: BTreeMap<Vec<u8>, Stat>,
}

type Listings = BTreeMap<TreePath, ReceivedListing>;

struct ReceivedStream {
    listings: Listings,
    bytes: usize,
    has_more: bool,
}

impl ReceivedStream {
    fn entries(&self) -> usize {
        self.listings.values().map(|listing| listing.entries.len()).sum()
    }

    /// Returns the parts on which two trees must agree.
    fn common(&self) -> BTreeMap<&TreePath, (bool, &BTreeMap<Vec<u8>, CommonStat>)> {
        let listings = self.listings.iter();
        listings.map(|(path, listing)| (path, (listing.is_complete, &listing.entries))).collect()
    }
}

fn find(tree: &dyn Tree, request: Tfind) -> Result<ReceivedStream, Errno> {
    let mut received = ReceivedStream { listings: Listings::new(), bytes: 0, has_more: false };
    for reply in send_request(tree, Request::Find(request))? {
        let Reply::Find(found) = reply else { panic!("not a reply to Tfind: {reply:?}") };
        received.has_more = found.mode.has(FindMode::MORE);
        received.bytes += found.data.0.len();
        let mut path = TreePath::root();
        for record in FindReader::new(found.data.0).map(Result::unwrap) {
            match record {
                FindRecord::Directory(directory) => {
                    path = directory.path;
                    let is_new = !received.listings.contains_key(&path);
                    assert_eq!(is_new, directory.begins);
                    received.listings.entry(path.clone()).or_default().is_complete |= directory.ends;
                }
                FindRecord::Entry(entry) => {
                    let listing = received.listings.get_mut(&path).unwrap();
                    let stat = common_stat(&entry.stat, entry.contents);
                    assert_eq!(listing.entries.insert(entry.name.clone(), stat), None, "received twice");
                    listing.stats.insert(entry.name, entry.stat);
                }
            }
        }
    }
    Ok(received)
}

/// Returns the names and attributes of plain listings, down to a depth.
fn list(tree: &dyn Tree, target: &Target, depth: u16) -> BTreeMap<TreePath, BTreeMap<Vec<u8>, Stat>> {
    let mut listings = BTreeMap::new();
    let mut left = vec![(TreePath::root(), depth)];
    while let Some((path, depth)) = left.pop() {
        let at = TreePath::from_names(target.path.names().chain(path.names())).unwrap();
        let (mode, count) = (GetMode::DATA, u32::MAX);
        let get = Tget { target: Target::at(at), mode, nmsgs: 0, offset: 0, count };
        let mut stats = BTreeMap::new();
        for reply in send_request(tree, Request::Get(get)).unwrap() {
            let Reply::Get(got) = reply else { panic!("not an answer to Tget: {reply:?}") };
            stats.extend(entries(got.data.0).unwrap().into_iter().map(|entry| (entry.name, entry.stat)));
        }
        for (name, _) in stats.iter().filter(|(_, stat)| depth > 0 && stat.kind == Kind::Directory) {
            left.push((path.join(name).unwrap(), depth - 1));
        }
        listings.insert(path, stats);
    }
    listings
}

/// Returns the comparable attributes of two replies of one tree: reading a link updates its access time.
fn comparable(stats: &BTreeMap<Vec<u8>, Stat>) -> BTreeMap<Vec<u8>, Stat> {
    let of = |stat: &Stat| match stat.kind {
        Kind::Symlink => Stat { atime: stat.mtime, ..stat.unleased() },
        _ => stat.unleased(),
    };
    stats.iter().map(|(name, stat)| (name.clone(), of(stat))).collect()
}

fn directory_in(dice: &mut Dice, directories: &[TreePath]) -> TreePath {
    let dir = directories.get(dice.below(directories.len() as u64) as usize).unwrap();
    dir.join(dice.one_of(&NAMES).as_bytes()).unwrap()
}

/// Creates an object at a random path, or moves it there.
fn change(dice: &mut Dice, directories: &[TreePath]) -> Request {
    let path = directory_in(dice, directories);
    if dice.chance(1, 12) {
        let to = Place { path: directory_in(dice, directories), dir: None };
        return Request::Rename(Trename { from: Place { path, dir: None }, to, flags: 0 });
    }
    let (kind, data) = match dice.below(10) {
        0..=3 => (Kind::Directory, vec![]),
        4 => (Kind::Symlink, vec![b't'; 1 + dice.below(300) as usize]),
        5 => (Kind::Fifo, vec![]),
        _ => (Kind::File, vec![dice.word() as u8; dice.below(3) as usize * dice.below(3000) as usize]),
    };
    let cred = Cred { uid: 0, gid: 0, umask: 0 };
    let create = Create { kind, mode: 0o755, rdev: 0, cred };
    Request::Put(Tput {
        target: Target::at(path),
        mode: PutMode::CREATE.and(PutMode::EXCLUSIVE).and_if(kind == Kind::File, PutMode::DATA),
        create: Some(create),
        set: SetStat::default(),
        offset: 0,
        data: Data(Bytes::from(data)),
    })
}

/// Applies the same random changes to both trees; returns the common directories.
fn grow(dice: &mut Dice, trees: [&dyn Tree; 2]) -> Vec<TreePath> {
    let mut directories = vec![TreePath::root()];
    for _ in 0..dice.below(200) {
        let request = change(dice, &directories);
        let [one, other] = trees.map(|tree| send_request(tree, request.clone()).map(drop));
        assert_eq!(one, other, "{request:?}");
        let top = Target::at(TreePath::root());
        directories = list(trees[0], &top, u16::MAX).into_keys().collect();
    }
    directories
}

/// Waits until nothing has changed for so long that a host directory inlines contents.
fn settle() {
    let until = SystemTime::now() + Duration::from_millis(40);
    while SystemTime::now() < until {
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn random_request(dice: &mut Dice, directories: &[TreePath]) -> Tfind {
    let at = dice.below(directories.len() as u64) as usize;
    let path = if dice.chance(1, 5) { directory_in(dice, directories) } else { directories[at].clone() };
    Tfind {
        target: Target::at(path),
        depth: dice.one_of(&[0, 1, 2, 3, u16::MAX, u16::MAX]),
        entries: if dice.chance(1, 3) { dice.below(60) as u32 } else { u32::MAX },
        bytes: if dice.chance(1, 4) { dice.below(9000) as u32 } else { u32::MAX },
        inline: dice.one_of(&[0, 1, 100, 3000, 100_000]),
    }
}

/// Checks that a limited stream is a part of the full one, and complete if no limit was reached.
fn check_limits(received: &ReceivedStream, request: &Tfind, full: &ReceivedStream, context: &str) {
    let total = full.entries();
    assert!(
        received.bytes <= request.bytes as usize && received.entries() <= request.entries as usize,
        "{context}"
    );
    for (path, listing) in &received.listings {
        let all = &full.listings[path];
        for (name, entry) in &listing.entries {
            let with = &all.entries[name];
            let without = CommonStat { contents: None, ..with.clone() };
            assert!(entry == with || request.bytes < u32::MAX && *entry == without, "{context}: {name:?}");
        }
        assert!(!listing.is_complete || listing.entries.len() == all.entries.len(), "{context}: {path:?}");
    }
    let is_all = received.listings.len() == full.listings.len()
        && received.listings.values().all(|listing| listing.is_complete);
    assert_eq!(received.has_more, !is_all, "{context}");
    if request.bytes == u32::MAX {
        assert_eq!(received.entries(), total.min(request.entries as usize), "{context}");
        assert_eq!(received.has_more, total > request.entries as usize, "{context}");
    }
}

fn compare(seed: u64, host: &dyn Tree, model: &dyn Tree) {
    for tree in [host, model] {
        tree.attach(SESSION, &TreePath::root()).unwrap();
    }
    let mut dice = Dice::new(seed);
    let directories = grow(&mut dice, [host, model]);
    settle();
    for step in 0..40 {
        let request = random_request(&mut dice, &directories);
        let unbounded = Tfind { entries: u32::MAX, bytes: u32::MAX, ..request.clone() };
        let context = format!("seed {seed}, step {step}, {request:?}");
        let full = [host, model].map(|tree| find(tree, unbounded.clone()));
        let [of_host, of_model] = match full {
            [Ok(of_host), Ok(of_model)] => [of_host, of_model],
            [Err(one), Err(other)] if one == other => continue,
            [one, other] => panic!("{context}: {:?}, {:?}", one.err(), other.err()),
        };
        assert_eq!(of_host.common(), of_model.common(), "{context}");
        for (tree, full) in [(host, &of_host), (model, &of_model)] {
            assert!(!full.has_more);
            let received =
                full.listings.iter().map(|(path, listing)| (path.clone(), comparable(&listing.stats)));
            let listed = list(tree, &request.target, request.depth).into_iter();
            let listed = listed.map(|(path, stats)| (path, comparable(&stats)));
            assert_eq!(received.collect::<BTreeMap<_, _>>(), listed.collect(), "{context}");
            check_limits(&find(tree, request.clone()).unwrap(), &request, full, &context);
        }
    }
}

#[test]
fn find_streams_of_host_directory_match_the_model() {
    for seed in seeds(12) {
        let parent = if seed % 2 == 0 { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
        let scratch = Scratch::within(&parent);
        let host = HostTree::open(scratch.path(), HostOptions::all_rights()).unwrap();
        compare(seed, &host, &ModelTree::new(BootId(1)));
    }
}

#[test]
fn find_streams_of_block_tree_match_the_model() {
    for seed in seeds(6) {
        let store = Arc::new(MemoryStore::new(if seed % 2 == 0 { 1400 } else { 16 * 1024 }, 1 << 20));
        let tree = BlockFs::open(store, BlockFsOptions::new(BootId(1))).unwrap();
        compare(seed, &tree, &ModelTree::new(BootId(1)));
    }
}
