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
    NodeOutput, NodeRecord, NodeTrust, ProbeTiming, Signer,
};
use wirefs_op::Time;

/// The interval at which load and free space are measured.
const FIGURES_INTERVAL: Duration = Duration::from_secs(5);
/// The maximum wait for a packet, after which the end of the node is checked.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// The plan of a node.
pub struct NodePlan {
    /// The node's key.
    pub identity: Arc<Identity>,
    /// The node's name.
    pub name: NodeName,
    /// The address to listen at; unspecified for all addresses of the machine. The port is that of the export.
    pub listen: SocketAddr,
    /// The network cards to use; empty for all. Packets that arrive over other cards are dropped, unless a peer sent
    /// them.
    pub cards: Vec<String>,
    /// Addresses of nodes in other segments.
    pub peers: Vec<SocketAddr>,
    /// The registry of nodes, if any.
    pub registry: Option<EtcdPlace>,
    /// The keys of trusted nodes; `None`: all nodes are trusted.
    pub trusted: Option<BTreeSet<NodeKey>>,
    /// The export, and the path of the exported directory.
    pub export: Option<(NodeExport, PathBuf)>,
    /// The cards that are open for Ethernet packets, if any.
    pub ether: Option<NodeEther>,
}

/// One node of the table at one moment.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The node's own record.
    pub record: NodeRecord,
    /// Whether the node is up.
    pub state: Liveness,
    /// The time since `state` last changed.
    pub state_for: Duration,
    /// The node's name belongs to it alone.
    pub holds_name: bool,
    /// This node itself.
    pub is_own: bool,
    /// The sender address of the node's last packet.
    pub last_source: Option<SocketAddr>,
}

/// A running node.
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
    /// The names of the chosen cards.
    cards: Vec<String>,
    ether: Option<NodeEther>,
    registry: Option<Registry>,
}

impl NodeHost {
    /// Starts the node, which announces itself at once.
    ///
    /// # Errors
    /// The socket or a card cannot be used, or the key cannot sign.
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
        let for_node = Arc::clone(&shared);
        let mut threads =
            vec![std::thread::Builder::new().name("wirefs-node".into()).spawn(move || for_node.run())?];
        if shared.registry.is_some() {
            let for_registry = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("wirefs-registry".into());
            threads.push(thread.spawn(move || for_registry.follow_registry())?);
        }
        Ok(Arc::new(NodeHost { shared, threads: Mutex::new(threads) }))
    }

    /// Returns all known nodes, this one first.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let (node, now) = self.shared.lock();
        let info = |view: wirefs_node::NodeView<'_>| NodeInfo {
            record: view.record.clone(),
            state: view.state,
            state_for: now.since(view.since),
            holds_name: view.holds_name,
            is_own: view.is_own,
            last_source: view.last_source,
        };
        node.nodes().map(info).collect()
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> NodeCounters {
        self.shared.lock().0.counters()
    }

    /// Waits, at most `patience`, until the table has changed since the count `seen`. Returns the present count.
    pub fn await_change(&self, seen: u64, patience: Duration) -> u64 {
        let (count, signal) = &self.shared.changes;
        let count = count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = signal.wait_timeout_while(count, patience, |count| *count <= seen);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns the node that holds this node's name, if another one does.
    pub fn name_taken(&self) -> Option<NodeKey> {
        *self.shared.name_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Trusts the nodes with these keys only, from now on.
    pub fn set_trusted(&self, keys: BTreeSet<NodeKey>) {
        self.shared.handle(NodeInput::Trust(&NodeTrust::Only(keys)));
    }

    /// Announces that this node leaves, and ends its threads.
    pub fn leave(&self) {
        self.shared.handle(NodeInput::Leave);
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.changed();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ended = thread.join();
        }
    }

    /// Returns the state of the registry for people; `None` without a registry.
    pub fn registry(&self) -> Option<String> {
        self.shared.registry.as_ref().map(Registry::status)
    }

    /// Returns whether the node has left.
    pub fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::SeqCst)
    }

    /// Returns our open cards, and from each the hardware address of a node; `None` if no card reaches it.
    pub(super) fn ether_to(&self, key: &NodeKey) -> Option<(EtherCards, Vec<(usize, HardwareAddress)>)> {
        let ether = self.shared.ether.as_ref()?;
        let (node, _) = self.shared.lock();
        let view = node.find(key).filter(|view| view.state.is_up())?;
        let paths = ether.paths_to(view.record);
        (!paths.is_empty()).then(|| (ether.cards.clone(), paths))
    }

    /// Returns our cards with their networks; empty if the system does not tell.
    pub(super) fn networks(&self) -> Vec<CardNetwork> {
        card_networks(&self.shared.cards).unwrap_or_default()
    }

    /// Returns the addresses of a node, the best first; empty unless it is up.
    pub(super) fn sockets_of(&self, key: &NodeKey) -> Vec<SocketAddr> {
        let (node, _) = self.shared.lock();
        let Some(view) = node.find(key).filter(|view| view.state.is_up()) else { return Vec::new() };
        let source = view.last_source.map(|from| SocketAddr::new(from.ip(), view.record.port));
        let others = view.record.sockets().filter(|socket| Some(*socket) != source);
        source.into_iter().chain(others).collect()
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
        cards: plan.ether.map(|ether| ether.announced_cards()).unwrap_or_default(),
        peers: plan.peers,
        trust: plan.trusted.map_or(NodeTrust::Anyone, NodeTrust::Only),
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
            if figures_at.is_none_or(|at| at.elapsed() >= FIGURES_INTERVAL) {
                figures_at = Some(Instant::now());
                self.handle(figures::measure(self.share.as_deref()));
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
        let report = |others: &[SocketAddr]| {
            self.segment.set_registered(others);
            self.handle(NodeInput::Registered(others));
        };
        registry.run(own, report, || self.is_over.load(Ordering::SeqCst));
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
