//! A running node: the thread that keeps its table.

use super::ether::{CardNetwork, NodeEther, card_networks};
use super::figures;
use super::registry::{EtcdPlace, Registry};
use super::segment::{Segment, SegmentError};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wirefs_carrier::ether::{EtherCards, HardwareAddress};
use wirefs_carrier::tls::Identity;
use wirefs_node::limits::PACKET_BYTES_MAX;
use wirefs_node::{
    Destination, Liveness, Node, NodeConfig, NodeCounters, NodeExport, NodeInput, NodeKey, NodeName,
    NodeOutput, NodeRecord, PeerTrust, ProbeTiming, Signer,
};
use wirefs_op::Time;

/// How often load and free space are looked at.
const FIGURES_EACH: Duration = Duration::from_secs(5);
/// The longest wait for a packet, so that an end is noticed.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// How a node comes to be.
pub struct NodePlan {
    /// Its key.
    pub identity: Arc<Identity>,
    /// Its name.
    pub name: NodeName,
    /// Where it listens; all addresses of the machine where this is unspecified. The port is that of its export.
    pub listen: SocketAddr,
    /// The cards whose segments it is on; all of them where none is named. Packets that come by others are not heard, but
    /// those of peers.
    pub cards: Vec<String>,
    /// Nodes elsewhere.
    pub peers: Vec<SocketAddr>,
    /// Where nodes are registered; `None`: nowhere.
    pub registry: Option<EtcdPlace>,
    /// Whose word counts; `None`: anyone's.
    pub trusted: Option<BTreeSet<NodeKey>>,
    /// What it serves, and where that is.
    pub export: Option<(NodeExport, PathBuf)>,
    /// Its cards that are open for Ethernet packets; `None`: it has none.
    pub ether: Option<NodeEther>,
}

/// One node, as the table has it at one moment.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// What it says of itself.
    pub record: NodeRecord,
    /// How it is.
    pub state: Liveness,
    /// For how long.
    pub state_for: Duration,
    /// Its name leads to it, and to no other.
    pub holds_name: bool,
    /// It is this one.
    pub is_own: bool,
    /// Where its last packet came from.
    pub heard_from: Option<SocketAddr>,
}

/// A node that runs.
pub struct NodeHost {
    shared: Arc<Shared>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

struct Shared {
    started: Instant,
    node: Mutex<Node>,
    segment: Segment,
    /// Counts changes of the table.
    changes: (Mutex<u64>, Condvar),
    is_over: AtomicBool,
    name_taken: Mutex<Option<NodeKey>>,
    share: Option<PathBuf>,
    /// The cards that were named.
    cards: Vec<String>,
    ether: Option<NodeEther>,
    registry: Option<Registry>,
}

impl NodeHost {
    /// Starts the node: it announces itself at once.
    ///
    /// # Errors
    /// The socket or a card cannot be had, or the key does not sign.
    pub fn start(plan: NodePlan) -> Result<Arc<NodeHost>, SegmentError> {
        let segment = Segment::open(plan.listen, &plan.cards, &plan.peers)?;
        let share = plan.export.as_ref().map(|(_, path)| path.clone());
        let (ether, cards) = (plan.ether.clone(), plan.cards.clone());
        let key = NodeKey(*plan.identity.public_key().raw());
        let registry = plan.registry.clone().map(|place| Registry::new(place, key));
        let node = Node::new(config(plan, &segment)?).ok_or(SegmentError::Key)?;
        let shared = Arc::new(Shared {
            started: Instant::now(),
            node: Mutex::new(node),
            segment,
            changes: (Mutex::new(0), Condvar::new()),
            is_over: AtomicBool::new(false),
            name_taken: Mutex::new(None),
            share,
            cards,
            ether,
            registry,
        });
        let turning = Arc::clone(&shared);
        let mut threads =
            vec![std::thread::Builder::new().name("wirefs-node".into()).spawn(move || turning.run())?];
        if shared.registry.is_some() {
            let asking = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("wirefs-registry".into());
            threads.push(thread.spawn(move || asking.follow_registry())?);
        }
        Ok(Arc::new(NodeHost { shared, threads: Mutex::new(threads) }))
    }

    /// All nodes that are known, this one first.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let (node, now) = self.shared.lock();
        let info = |view: wirefs_node::NodeView<'_>| NodeInfo {
            record: view.record.clone(),
            state: view.state,
            state_for: now.since(view.since),
            holds_name: view.holds_name,
            is_own: view.is_own,
            heard_from: view.last_source,
        };
        node.nodes().map(info).collect()
    }

    /// What was counted since the start.
    pub fn counters(&self) -> NodeCounters {
        self.shared.lock().0.counters()
    }

    /// Waits until the table changes past the change that was seen, at most `patience`; the last change by then.
    pub fn await_change(&self, seen: u64, patience: Duration) -> u64 {
        let (count, signal) = &self.shared.changes;
        let count = count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = signal.wait_timeout_while(count, patience, |count| *count <= seen);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Who has this node's name, if another keeps it.
    pub fn name_taken(&self) -> Option<NodeKey> {
        *self.shared.name_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that it goes, and ends.
    pub fn leave(&self) {
        self.shared.handle(NodeInput::Leave);
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.changed();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ended = thread.join();
        }
    }

    /// How the registry is, for people; `None`: there is none.
    pub fn registry(&self) -> Option<String> {
        self.shared.registry.as_ref().map(Registry::status)
    }

    /// Whether it has left.
    pub fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::SeqCst)
    }

    /// Our cards that are open, and from which of them to where a node can be reached now; `None`: from none.
    pub(super) fn ether_to(&self, key: &NodeKey) -> Option<(EtherCards, Vec<(usize, HardwareAddress)>)> {
        let ether = self.shared.ether.as_ref()?;
        let (node, _) = self.shared.lock();
        let view = node.find(key).filter(|view| view.state.is_up())?;
        let ways = ether.ways_to(view.record);
        (!ways.is_empty()).then(|| (ether.cards.clone(), ways))
    }

    /// Our cards and their networks, as they are now; none where the system does not tell.
    pub(super) fn networks(&self) -> Vec<CardNetwork> {
        card_networks(&self.shared.cards).unwrap_or_default()
    }

    /// Where a node can be reached now, the best first.
    pub(super) fn sockets_of(&self, key: &NodeKey) -> Vec<SocketAddr> {
        let (node, _) = self.shared.lock();
        let Some(view) = node.find(key).filter(|view| view.state.is_up()) else { return Vec::new() };
        let heard = view.last_source.map(|from| SocketAddr::new(from.ip(), view.record.port));
        let others = view.record.sockets().filter(|socket| Some(*socket) != heard);
        heard.into_iter().chain(others).collect()
    }
}

fn config(plan: NodePlan, segment: &Segment) -> Result<NodeConfig, SegmentError> {
    let identity = plan.identity;
    let key = NodeKey(*identity.public_key().raw());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let born = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let mut addresses: Vec<IpAddr> = segment.addresses();
    if addresses.is_empty() && !plan.listen.ip().is_unspecified() {
        addresses.push(plan.listen.ip());
    }
    Ok(NodeConfig {
        key,
        signer: Signer::new(move |message| identity.sign(message)),
        name: plan.name,
        born,
        port: segment.port()?,
        addresses,
        exports: plan.export.into_iter().map(|(export, _)| export).collect(),
        cards: plan.ether.map(|ether| ether.told()).unwrap_or_default(),
        peers: plan.peers,
        trust: plan.trusted.map_or(PeerTrust::Anyone, PeerTrust::Only),
        timing: ProbeTiming::default(),
        seed: born ^ u64::from_le_bytes(key.0.first_chunk().copied().unwrap_or_default()),
    })
}

impl Shared {
    fn lock(&self) -> (MutexGuard<'_, Node>, Time) {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken under the lock, so that the machine never sees time go back.
        let now = Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX));
        (node, now)
    }

    fn run(&self) {
        let mut buffer = [0; PACKET_BYTES_MAX + 1];
        let mut figures_at: Option<Instant> = None;
        self.handle(NodeInput::Tick);
        while !self.is_over.load(Ordering::SeqCst) {
            if figures_at.is_none_or(|at| at.elapsed() >= FIGURES_EACH) {
                figures_at = Some(Instant::now());
                self.handle(figures::look(self.share.as_deref()));
            }
            let wait = {
                let (node, now) = self.lock();
                node.deadline().map_or(WAIT_MAX, |at| at.since(now)).min(WAIT_MAX)
            };
            match self.segment.receive(&mut buffer, wait) {
                Some((from, bytes)) => {
                    let bytes = buffer.get(..bytes).unwrap_or_default();
                    self.handle(NodeInput::Packet { from, bytes });
                }
                None => self.handle(NodeInput::Tick),
            }
        }
    }

    fn follow_registry(&self) {
        let Some(registry) = &self.registry else { return };
        let own = || {
            let (node, _) = self.lock();
            let own = node.nodes().next().map(|own| own.record.sockets().collect());
            own.unwrap_or_default()
        };
        let tell = |others: &[SocketAddr]| {
            self.segment.hear(others);
            self.handle(NodeInput::Registered(others));
        };
        registry.run(own, tell, || self.is_over.load(Ordering::SeqCst));
    }

    fn handle(&self, input: NodeInput<'_>) {
        let mut sends = Vec::new();
        let mut has_changed = false;
        {
            let (mut node, now) = self.lock();
            node.handle(now, input);
            while let Some(output) = node.poll() {
                match output {
                    NodeOutput::Send { to, packet } => sends.push((to, packet)),
                    NodeOutput::Changed { .. } => has_changed = true,
                    NodeOutput::NameTaken { holder, .. } => {
                        *self.name_taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(holder);
                        has_changed = true;
                    }
                }
            }
        }
        for (to, packet) in sends {
            match to {
                Destination::Segment => self.segment.send_to_all(&packet),
                Destination::Address(address) => self.segment.send_to(address, &packet),
            }
        }
        if has_changed {
            self.changed();
        }
    }

    fn changed(&self) {
        let (count, signal) = &self.changes;
        *count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        signal.notify_all();
    }
}
