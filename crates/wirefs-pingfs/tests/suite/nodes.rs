//! Nodes that replicate a tree, each with its own line to a hub.
//!
//! ```text
//!  node1 ── hub, which answers pings ── node2
//! ```

use std::fs;
use std::mem::ManuallyDrop;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use wirefs_blocks::id::{BlockId, WriterId};
use wirefs_blocks::store::BlockStore;
use wirefs_blocks::transactions::RootFollower;
use wirefs_blocks::tree::{BlockTree, TreeOptions};
use wirefs_lab::{Host, Lab, LinkHandle, LinkProfile};
use wirefs_op::Timestamp;
use wirefs_op::message::version::BootId;
use wirefs_pingfs::options::RateOption;
use wirefs_pingfs::{NodeOptions, ReplicatedStore, nodes};

use crate::site::open;

/// Long enough that blocks are on the line and not parked: cutting it loses them.
const RTT: Duration = Duration::from_millis(60);
/// Longer than all waits in the tested operations.
const PATIENCE: Duration = Duration::from_secs(30);

/// A node without a tree yet.
fn join(host: &Host, link: &LinkHandle, node: u16, peer: Ipv4Addr) -> Arc<ReplicatedStore> {
    let join_cluster = || {
        let echo = open(&[(link.address_a(), 0).into()], |options| {
            options.rate = RateOption::Fixed(5_000);
            options.parked_packets = Some(0);
        });
        let key = nodes::key_of(b"a secret of both nodes").unwrap();
        ReplicatedStore::open(Arc::new(echo), &NodeOptions { node, peers: vec![peer], key }).unwrap()
    };
    Arc::new(host.run(join_cluster).unwrap())
}

fn tree(store: &Arc<ReplicatedStore>, node: u16) -> Arc<BlockTree> {
    let options = TreeOptions { ram_bytes: 0, node: WriterId(node), boot: BootId(9), uid: 0, gid: 0 };
    let clock = Box::new(|| Timestamp { secs: 1_700_000_000, nanos: 5 });
    Arc::new(BlockTree::open(Arc::clone(store) as Arc<dyn BlockStore>, options, clock).unwrap())
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A tree that has not read the root it must switch to, when its line loses all packets in flight.
struct Unprepared {
    tree: Arc<BlockTree>,
    link: LinkHandle,
    forgets: AtomicBool,
    cuts: AtomicBool,
}

impl RootFollower for Unprepared {
    fn prepare(&self, root: BlockId) -> bool {
        if self.forgets.swap(false, Ordering::SeqCst) {
            self.cuts.store(true, Ordering::SeqCst);
            return true;
        }
        self.tree.prepare(root)
    }

    fn switch_to(&self, root: BlockId) -> bool {
        if self.cuts.swap(false, Ordering::SeqCst) {
            self.link.cut();
            self.link.heal();
            // Recently received blocks stay buffered for a moment.
            std::thread::sleep(RTT * 5);
        }
        self.tree.switch_to(root)
    }
}

#[test]
fn lost_root_is_copied_from_the_other_nodes() {
    let lab = Lab::new("lostroot").unwrap();
    let [hub, one, two] = ["hub", "node1", "node2"].map(|name| lab.host(name).unwrap());
    let links = [&one, &two].map(|node| lab.link(&hub, node, LinkProfile::rtt(RTT)).unwrap());
    // The hub answers pings whose source address is on another of its lines.
    let allow = || {
        for device in fs::read_dir("/proc/sys/net/ipv4/conf").unwrap() {
            fs::write(device.unwrap().path().join("rp_filter"), "0").unwrap();
        }
    };
    hub.run(allow).unwrap();
    // A node with a deadlock could not be dropped either.
    let store_1 = ManuallyDrop::new(join(&one, &links[0], 1, links[1].address_b()));
    let first = tree(&store_1, 1);
    let store_2 = ManuallyDrop::new(join(&two, &links[1], 2, links[0].address_b()));
    let second = tree(&store_2, 2);
    BlockTree::follow(&first);
    let follower = Arc::new(Unprepared {
        tree: Arc::clone(&second),
        link: links[1].clone(),
        forgets: AtomicBool::new(false),
        cuts: AtomicBool::new(false),
    });
    let weak: Weak<Unprepared> = Arc::downgrade(&follower);
    store_2.transactions().unwrap().follow(weak);
    first.create_checkpoint(b"early").unwrap();
    until("both have the same", || second.checkpoints().len() == 1);

    follower.forgets.store(true, Ordering::SeqCst);
    first.create_checkpoint(b"late").unwrap();
    let (sender, replied) = channel();
    let store = Arc::clone(&*store_2);
    std::thread::spawn(move || sender.send(store.nodes().holder));
    assert!(replied.recv_timeout(PATIENCE).is_ok(), "the second node has a deadlock");
    until("the other shows it", || second.checkpoints().len() == 2);
    assert!(!follower.forgets.load(Ordering::SeqCst) && !follower.cuts.load(Ordering::SeqCst));
    second.create_checkpoint(b"own").unwrap();
    until("the first one has it", || first.checkpoints().len() == 3);
    drop([store_1, store_2].map(ManuallyDrop::into_inner));
}
