//! A simulated network of replicas with their drivers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use wirefs_echo::replication::message::{MessageHeader, ViewId};
use wirefs_echo::replication::{
    NewRoot, Replica, ReplicaId, ReplicaInput, ReplicaOutput, ReplicationTimers, wire,
};
use wirefs_echo::{EchoBlockId, Time};
use wirefs_virtual::{Dice, EventQueue, PARTS, PacketFaults, PacketNet};

pub(super) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

const TIMERS: ReplicationTimers =
    ReplicationTimers { heartbeat: ms(50), retry: ms(120), dead_after: ms(1500) };

/// One change: the node, and the number of the change on it.
pub(super) type ChangeId = (u16, u32);

#[derive(Clone, Debug, PartialEq)]
enum Block {
    /// A tree: its changes in order, and a block of contents.
    Root(Vec<ChangeId>, EchoBlockId),
    Contents(ChangeId),
}

#[derive(Clone, Debug)]
enum Event {
    Tick,
    /// A message between two instances.
    Received(ReplicaId, [u32; 2], wirefs_echo::replication::message::ReplicationMessage),
    Arrived(EchoBlockId, Block),
    /// The driver has applied the change.
    ChangeMade,
    /// A program has a change.
    Request,
}

pub(super) struct SimNode {
    pub(super) replica: Replica,
    blocks: BTreeMap<EchoBlockId, Block>,
    freed: BTreeSet<EchoBlockId>,
    pub(super) counter: u128,
    pub(super) pending: VecDeque<ChangeId>,
    pub(super) requested: u32,
    making: Option<Option<EchoBlockId>>,
    /// The other nodes are to accept its root.
    is_committing: bool,
    checks: Option<(EchoBlockId, Option<Vec<EchoBlockId>>)>,
    /// The node is paused until then.
    pub(super) paused_until: Time,
    pub(super) is_leaving: bool,
    pub(super) has_left: bool,
    instance: u32,
    /// The known instances of the other nodes.
    instances: BTreeMap<ReplicaId, u32>,
    pub(super) answered_at: Vec<Duration>,
}

pub(super) struct Cluster {
    pub(super) now: Time,
    pub(super) dice: Dice,
    pub(super) nodes: BTreeMap<ReplicaId, SimNode>,
    pub(super) all: Vec<ReplicaId>,
    events: EventQueue<(ReplicaId, Event)>,
    instances: u32,
    /// The network; a cut also loses messages in flight, but not blocks.
    pub(super) net: PacketNet<ReplicaId>,
    pub(super) answered: Vec<ChangeId>,
    requested_at: BTreeMap<ChangeId, Time>,
    /// A node with this additional one-way delay.
    pub(super) far: Option<(ReplicaId, Duration)>,
    /// Nodes whose changes have no effect.
    pub(super) fails: BTreeSet<ReplicaId>,
    /// The last holder of the token in each view, and its token epoch.
    holders: BTreeMap<ViewId, (u64, ReplicaId)>,
    /// Number of token transfers.
    pub(super) transfers: u64,
}

fn root_of(number: u128) -> EchoBlockId {
    EchoBlockId::from(number)
}

impl Cluster {
    pub(super) fn new(seed: u64, count: u16, loss: f64) -> Cluster {
        let all: Vec<ReplicaId> = (1..=count).map(ReplicaId).collect();
        let loss = (loss * PARTS as f64) as u64;
        let faults = PacketFaults {
            loss,
            duplication: loss / 2,
            delay_us: (5_000, 40_000),
            ..PacketFaults::default()
        };
        Cluster {
            now: Time::default(),
            dice: Dice::new(seed),
            nodes: BTreeMap::new(),
            all,
            events: EventQueue::default(),
            instances: 0,
            net: PacketNet::new(faults),
            answered: Vec::new(),
            requested_at: BTreeMap::new(),
            far: None,
            fails: BTreeSet::new(),
            holders: BTreeMap::new(),
            transfers: 0,
        }
    }

    pub(super) fn start(&mut self, id: ReplicaId, is_first: bool) {
        self.instances += 1;
        let mut blocks = BTreeMap::new();
        let replica = if is_first {
            let (root, contents) = (root_of(2 << 16), root_of(1 << 16));
            blocks.insert(root, Block::Root(Vec::new(), contents));
            blocks.insert(contents, Block::Contents((0, 0)));
            Replica::create(id, &self.all, TIMERS, Some(root))
        } else {
            Replica::join(id, &self.all, TIMERS)
        };
        let node = SimNode {
            replica,
            blocks,
            freed: BTreeSet::new(),
            counter: 2,
            pending: VecDeque::new(),
            requested: 0,
            making: None,
            is_committing: false,
            checks: None,
            paused_until: Time::default(),
            is_leaving: false,
            has_left: false,
            instance: self.instances,
            instances: BTreeMap::new(),
            answered_at: Vec::new(),
        };
        self.nodes.insert(id, node);
        self.later(ms(1), id, Event::Tick);
    }

    fn later(&mut self, wait: Duration, to: ReplicaId, event: Event) {
        self.events.push(self.now + wait, (to, event));
    }

    /// Transmits an event: 5 to 40 ms, possibly lost or duplicated.
    fn transmit(&mut self, from: ReplicaId, to: ReplicaId, event: Event) {
        let far = self.far.filter(|(far, _)| [from, to].contains(far)).map(|(_, more)| more);
        for delay in self.net.delays(&mut self.dice, from, to) {
            self.later(delay + far.unwrap_or_default(), to, event.clone());
        }
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((at, (id, event))) = self.events.pop_until(end) {
            self.now = at;
            self.dispatch(id, event);
        }
        self.now = end;
    }

    fn dispatch(&mut self, id: ReplicaId, event: Event) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if node.paused_until > now {
            // A paused node gets the events when it continues.
            let wait = node.paused_until - now;
            return self.later(wait, id, event);
        }
        let input = match event {
            Event::Tick => {
                let wait = node.replica.deadline().since(now).clamp(ms(1), ms(50));
                self.later(wait, id, Event::Tick);
                ReplicaInput::Tick
            }
            Event::Received(from, ..) if self.net.is_cut(from, id) => return,
            Event::Received(from, [instance, to_instance], message) => {
                let known = node.instances.get(&from).copied().unwrap_or_default();
                if to_instance != node.instance || instance < known {
                    return;
                }
                if instance > known {
                    node.instances.insert(from, instance);
                    if known > 0 {
                        node.replica.handle(now, ReplicaInput::PeerRestarted(from));
                    }
                }
                ReplicaInput::Received { from, message }
            }
            Event::Request => {
                node.requested += 1;
                let op = (id.0, node.requested);
                node.pending.push_back(op);
                self.requested_at.insert(op, now);
                ReplicaInput::RequestWrite
            }
            Event::ChangeMade => {
                // `None`: a former instance requested it.
                let Some(on) = node.making.take().flatten() else { return };
                if self.fails.contains(&id) {
                    node.replica.handle(now, ReplicaInput::ChangeDone(None));
                    // A late run requests the next one, even without a pending change.
                    if let Some(op) = node.pending.pop_front() {
                        node.answered_at.push(now.since(self.requested_at[&op]));
                    }
                    if node.pending.is_empty() {
                        return self.execute(id);
                    }
                    ReplicaInput::RequestWrite
                } else {
                    ReplicaInput::ChangeDone(make(node, id, on))
                }
            }
            Event::Arrived(block_id, block) => {
                if node.freed.contains(&block_id) {
                    return;
                }
                node.counter = node.counter.max(u128::from_be_bytes(block_id.0) >> 16);
                node.blocks.insert(block_id, block);
                let Some((root, new_blocks)) = node.checks.clone() else { return };
                let missing = missing(node, root, new_blocks.as_ref());
                if !missing.is_empty() {
                    return;
                }
                ReplicaInput::Checked { root, missing }
            }
        };
        self.nodes.get_mut(&id).unwrap().replica.handle(now, input);
        self.execute(id);
    }

    pub(super) fn execute(&mut self, id: ReplicaId) {
        while let Some(output) = self.nodes.get_mut(&id).unwrap().replica.poll() {
            let now = self.now;
            let node = self.nodes.get_mut(&id).unwrap();
            match output {
                ReplicaOutput::Send { to, message } => {
                    // As encoded on the wire.
                    let carried = wire::decode(&wire::encode(&message)).unwrap();
                    let instance = node.instance;
                    self.note_holder(id, &carried.header);
                    let node = &self.nodes[&id];
                    let to_instance = node.instances.get(&to).copied();
                    // An unknown instance is looked up first.
                    let to_instance =
                        to_instance.or(self.nodes.get(&to).map(|node| node.instance)).unwrap_or_default();
                    self.transmit(id, to, Event::Received(id, [instance, to_instance], carried));
                }
                ReplicaOutput::CopyBlocks { to, ids } => {
                    let blocks: Vec<_> =
                        ids.iter().filter_map(|id| Some((*id, node.blocks.get(id)?.clone()))).collect();
                    for (block_id, block) in blocks {
                        self.transmit(id, to, Event::Arrived(block_id, block));
                    }
                }
                ReplicaOutput::RunChange { base } => {
                    assert!(node.making.is_none(), "one at a time");
                    node.making = Some(base);
                    let wait = Duration::from_micros(200 + self.dice.below(3_000));
                    self.later(wait, id, Event::ChangeMade);
                }
                ReplicaOutput::Check { root, new_blocks } => {
                    node.checks = Some((root, new_blocks.clone()));
                    let missing = missing(node, root, new_blocks.as_ref());
                    node.replica.handle(now, ReplicaInput::Checked { root, missing });
                }
                ReplicaOutput::Adopt { root } => {
                    assert!(missing(node, root, None).is_empty(), "{id:?} switches to a root that it lacks");
                }
                ReplicaOutput::Free { ids } => {
                    ids.iter().for_each(|id| drop(node.blocks.remove(id)));
                    node.freed.extend(ids);
                }
                ReplicaOutput::Committed { .. } => {
                    node.is_committing = false;
                    let op = node.pending.pop_front().unwrap();
                    node.answered_at.push(now.since(self.requested_at[&op]));
                    self.answered.push(op);
                    let node = self.nodes.get_mut(&id).unwrap();
                    if !node.pending.is_empty() {
                        node.replica.handle(now, ReplicaInput::RequestWrite);
                    }
                }
                ReplicaOutput::Aborted { root } => {
                    node.is_committing = false;
                    node.blocks.remove(&root);
                }
                ReplicaOutput::Left => node.has_left = true,
            }
        }
    }

    /// Checks that one node holds the token in each epoch of a view, and that no former holder does.
    fn note_holder(&mut self, id: ReplicaId, header: &MessageHeader) {
        if !header.holds_token {
            return;
        }
        let (epoch, holder) = self.holders.entry(header.view).or_insert((header.token_epoch, id));
        assert!(
            header.token_epoch > *epoch || (header.token_epoch, id) == (*epoch, *holder),
            "{id:?} holds what {holder:?} has"
        );
        self.transfers += u64::from(header.token_epoch > *epoch);
        (*epoch, *holder) = (header.token_epoch, id);
    }

    /// The programs stop waiting, unless their change is being applied.
    pub(super) fn give_up(&mut self, id: ReplicaId) {
        let node = self.nodes.get_mut(&id).unwrap();
        if node.making.is_none() && !node.is_committing {
            node.pending.clear();
        }
    }

    pub(super) fn request_change(&mut self, id: ReplicaId) {
        self.later(Duration::ZERO, id, Event::Request);
    }

    /// Checks that all nodes have the same root, with each answered change exactly once.
    pub(super) fn check(&self, label: &str) {
        let roots: BTreeSet<_> = self.nodes.values().map(|node| node.replica.root()).collect();
        assert_eq!(roots.len(), 1, "{label}: {roots:?}");
        let live: BTreeSet<ReplicaId> = self.nodes.keys().copied().collect();
        let root = roots.first().copied().flatten().unwrap();
        for (id, node) in &self.nodes {
            assert_eq!(node.replica.members(), &live, "{label}: {id:?}");
            assert!(node.pending.is_empty(), "{label}: {id:?} waits with {:?}", node.pending);
            let Some(Block::Root(done, contents)) = node.blocks.get(&root) else { panic!("{label}") };
            assert!(node.blocks.contains_key(contents), "{label}: {id:?}");
            let once: BTreeSet<ChangeId> = done.iter().copied().collect();
            assert_eq!(once.len(), done.len(), "{label}: applied twice");
            let lost: Vec<&ChangeId> = self.answered.iter().filter(|op| !once.contains(op)).collect();
            assert!(lost.is_empty(), "{label}: answered and lost {lost:?}");
        }
    }
}

/// Returns the missing blocks of a root.
fn missing(node: &SimNode, root: EchoBlockId, new_blocks: Option<&Vec<EchoBlockId>>) -> Vec<EchoBlockId> {
    let mut ids: Vec<EchoBlockId> = new_blocks.cloned().unwrap_or_default();
    ids.push(root);
    if let Some(Block::Root(_, contents)) = node.blocks.get(&root) {
        ids.push(*contents);
    }
    ids.retain(|id| !node.blocks.contains_key(id));
    ids.dedup();
    ids
}

/// Applies the first pending change to a root.
fn make(node: &mut SimNode, id: ReplicaId, on: EchoBlockId) -> Option<NewRoot> {
    let op = *node.pending.front()?;
    let Some(Block::Root(done, before)) = node.blocks.get(&on).cloned() else { return None };
    let mut next = || {
        node.counter += 1;
        root_of(node.counter << 16 | u128::from(id.0))
    };
    let (contents, root) = (next(), next());
    node.is_committing = true;
    node.blocks.insert(contents, Block::Contents(op));
    node.blocks.insert(root, Block::Root([done, vec![op]].concat(), contents));
    Some(NewRoot { root, new_blocks: vec![contents, root], freed: vec![on, before] })
}
