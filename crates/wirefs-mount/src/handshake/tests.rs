//! Negotiation with several kinds of servers, scripted over a carrier in memory.

use super::*;
use crate::{FsyncWaits, JournalPlan};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use wirefs_cache::Mode;
use wirefs_carrier::{Dial, memory};
use wirefs_op::message::attach::{Leases, Rattach, Watch};
use wirefs_op::message::recall::Rrecall;
use wirefs_op::message::version::{BootId, FEATURE_LEDGER, Rversion};
use wirefs_op::{FileId, Kind, Stat};

/// The features that each mount requests.
const ALWAYS: u64 = FEATURE_LEDGER | FEATURE_TIMES;

/// A dialer that is not used.
struct Nowhere;

impl Dial for Nowhere {
    fn dial(&self) -> Result<Carrier, DialError> {
        unreachable!("the carrier is there")
    }
}

fn plan(mode: &str) -> MountPlan {
    MountPlan {
        dial: Arc::new(Nowhere),
        path: Vec::new(),
        user: "tester".to_owned(),
        mode: Mode::parse(mode).expect("a mode"),
        deadline: None,
        cache_bytes_max: 0,
        threads: 1,
        connections_max: 1,
        uid: 0,
        confines_links: false,
        store: None,
        journal: None,
        tell: |_| {},
        gid: 0,
    }
}

fn root() -> Stat {
    Stat {
        version: 1,
        mode: 0o755,
        nlink: 2,
        blksize: 4096,
        without_xattrs: true,
        ..Stat::blank(FileId { fs: 0, ino: 2, generation: 1 }, Kind::Directory)
    }
}

const LEASES: Leases = Leases { term_ms: 15_000, kept: true, watch: Watch::Filesystem };

/// Performs the handshake with a server that knows `features`, always grants leases, and sends `early` recalls before
/// Rattach. Also returns the requested features.
fn shake(mode: &str, features: u64, early: usize) -> (Result<Attached, ConnectError>, u64) {
    let (near, mut far) = memory::pair().expect("two ends");
    let server = thread::spawn(move || {
        let mut receive = || Request::decode(far.source.receive().unwrap().unwrap()).unwrap();
        let (NOTAG, Request::Version(asked)) = receive() else { panic!("no Tversion") };
        let (tag, Request::Attach(_)) = receive() else { panic!("no Tattach") };
        let version = Rversion {
            msize: asked.msize,
            version: asked.version,
            features: features & asked.features,
            boot: BootId(1),
            resumed: true,
            number: 9,
        };
        let attach = Rattach {
            root: root(),
            uid: 0,
            gid: 0,
            acts_for_callers: true,
            read_only: false,
            leases: Some(LEASES),
        };
        let recalls = (1..).map(|serial| Reply::Recall(Rrecall { serial, items: Vec::new() }).encode(NOTAG));
        send(&mut far, [Reply::Version(version).encode(NOTAG)]).unwrap();
        send(&mut far, recalls.take(early)).unwrap();
        // A client that failed has closed.
        let _ = send(&mut far, [Reply::Attach(attach).encode(tag)]);
        asked.features
    });
    let attached = shake_hands(near, SessionId([7; 16]), &plan(mode));
    (attached, server.join().expect("the server's part"))
}

#[test]
fn leases_are_requested_if_the_mode_uses_them() {
    let (attached, asked) = shake("lease", FEATURE_LEASES, 0);
    assert_eq!(asked, FEATURE_LEASES | ALWAYS);
    assert_eq!(attached.expect("attached").attachment.leases, Some(LEASES));
    for mode in ["window", "strict"] {
        let (attached, asked) = shake(mode, FEATURE_LEASES, 0);
        let leases = attached.expect("attached").attachment.leases;
        assert_eq!((asked, leases), (ALWAYS, None), "{mode}");
    }
}

#[test]
fn server_without_the_feature_grants_no_leases() {
    let (attached, _) = shake("lease", 0, 0);
    assert_eq!(attached.expect("attached").attachment.leases, None);
}

#[test]
fn mount_with_a_journal_requests_exclusivity() {
    let wants = |mode: &str, keeps: Option<bool>| {
        let journal = keeps.map(|keeps| JournalPlan {
            dir: PathBuf::new(),
            quarantine: PathBuf::new(),
            address: Vec::new(),
            path: Vec::new(),
            source: Vec::new(),
            user: 0,
            tell: |_| {},
            keeps,
            fsync: FsyncWaits::Server,
        });
        features(&MountPlan { journal, ..plan(mode) }) & FEATURE_ALONE != 0
    };
    assert!(wants("lease", Some(true)));
    assert!(!wants("lease", Some(false)) && !wants("lease", None) && !wants("window", Some(true)));
}

#[test]
fn changes_are_numbered_if_the_server_agrees() {
    for (features, ledger) in [(FEATURE_LEDGER, Some(9)), (FEATURE_LEASES, None)] {
        let (attached, _) = shake("window", features, 0);
        assert_eq!(attached.expect("attached").attachment.ledger, ledger);
    }
}

#[test]
fn early_recalls_are_kept_for_the_core() {
    let (attached, _) = shake("lease", FEATURE_LEASES, 3);
    let early = attached.expect("attached").early;
    let serials = early.into_iter().map(|body| match Reply::decode(body) {
        Ok((NOTAG, Reply::Recall(recall))) => recall.serial,
        other => panic!("{other:?}"),
    });
    assert_eq!(serials.collect::<Vec<_>>(), [1, 2, 3]);
    let (attached, _) = shake("lease", FEATURE_LEASES, EARLY_MAX + 1);
    assert!(matches!(attached, Err(ConnectError::Protocol(_))), "they are bounded");
}
