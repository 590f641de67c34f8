//! The network between the nodes, and what drives their machines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use wirefs_echo::together::message::{Header, View};
use wirefs_echo::together::{Input, Made, NodeId, Output, Pulse, Together, wire};
use wirefs_echo::{BlockId, Time};

pub(super) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

const PULSE: Pulse = Pulse { beat: ms(50), retry: ms(120), dead: ms(1500) };

/// One change: who made it, and which of its changes it is.
pub(super) type Op = (u16, u32);

#[derive(Clone, Debug, PartialEq)]
enum Block {
    /// A tree: what was done to it, in order, and a block of contents.
    Root(Vec<Op>, BlockId),
    Contents(Op),
}

#[derive(Clone, Debug)]
enum Event {
    Tick,
    /// Of a node in this life, said to one in that life.
    Heard(NodeId, [u32; 2], wirefs_echo::together::message::Message),
    Arrived(BlockId, Block),
    /// The driver has made the change.
    Made,
    /// A program has a change.
    Wish,
}

pub(super) struct Node {
    pub(super) machine: Together,
    blocks: BTreeMap<BlockId, Block>,
    freed: BTreeSet<BlockId>,
    pub(super) counter: u128,
    pub(super) wishes: VecDeque<Op>,
    pub(super) wished: u32,
    making: Option<Option<BlockId>>,
    /// The others are to take its root.
    is_settling: bool,
    checks: Option<(BlockId, Option<Vec<BlockId>>)>,
    /// Nothing is done before.
    pub(super) paused_until: Time,
    pub(super) leaves: bool,
    pub(super) has_left: bool,
    life: u32,
    /// Which life of the others it knows.
    lives: BTreeMap<NodeId, u32>,
    pub(super) answered_at: Vec<Duration>,
}

pub(super) struct World {
    pub(super) now: Time,
    seed: u64,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) all: Vec<NodeId>,
    events: BTreeMap<(Time, u64), (NodeId, Event)>,
    count: u64,
    lives: u32,
    loss: f64,
    pub(super) answered: Vec<Op>,
    wished_at: BTreeMap<Op, Time>,
    /// Whom it takes so much longer to reach, and to hear of.
    pub(super) far: Option<(NodeId, Duration)>,
    /// From whom no message gets to whom.
    pub(super) cut: BTreeSet<(NodeId, NodeId)>,
    /// Whose changes come to nothing.
    pub(super) fails: BTreeSet<NodeId>,
    /// Who held the pen last in each view, and at which turn.
    held: BTreeMap<View, (u64, NodeId)>,
    /// How often it went over to another one.
    pub(super) turns: u64,
}

fn root_of(number: u128) -> BlockId {
    BlockId::from(number)
}

impl World {
    pub(super) fn new(seed: u64, count: u16, loss: f64) -> World {
        let all: Vec<NodeId> = (1..=count).map(NodeId).collect();
        World {
            now: Time::default(),
            seed,
            nodes: BTreeMap::new(),
            all,
            events: BTreeMap::new(),
            count: 0,
            lives: 0,
            loss,
            answered: Vec::new(),
            wished_at: BTreeMap::new(),
            far: None,
            cut: BTreeSet::new(),
            fails: BTreeSet::new(),
            held: BTreeMap::new(),
            turns: 0,
        }
    }

    pub(super) fn roll(&mut self, below: u64) -> u64 {
        // Splitmix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn chance(&mut self, part: f64) -> bool {
        (self.roll(1_000_000) as f64) < part * 1e6
    }

    pub(super) fn start(&mut self, id: NodeId, is_first: bool) {
        self.lives += 1;
        let mut blocks = BTreeMap::new();
        let machine = if is_first {
            let (root, contents) = (root_of(2 << 16), root_of(1 << 16));
            blocks.insert(root, Block::Root(Vec::new(), contents));
            blocks.insert(contents, Block::Contents((0, 0)));
            Together::found(id, &self.all, PULSE, Some(root))
        } else {
            Together::join(id, &self.all, PULSE)
        };
        let node = Node {
            machine,
            blocks,
            freed: BTreeSet::new(),
            counter: 2,
            wishes: VecDeque::new(),
            wished: 0,
            making: None,
            is_settling: false,
            checks: None,
            paused_until: Time::default(),
            leaves: false,
            has_left: false,
            life: self.lives,
            lives: BTreeMap::new(),
            answered_at: Vec::new(),
        };
        self.nodes.insert(id, node);
        self.later(ms(1), id, Event::Tick);
    }

    fn later(&mut self, wait: Duration, to: NodeId, event: Event) {
        self.count += 1;
        self.events.insert((self.now + wait, self.count), (to, event));
    }

    /// Over the network: 5 to 40 ms, sometimes not at all, sometimes twice.
    fn carry(&mut self, from: NodeId, to: NodeId, event: Event) {
        let far = self.far.filter(|(far, _)| [from, to].contains(far)).map(|(_, more)| more);
        let copies = if self.chance(self.loss / 2.0) { 2 } else { 1 };
        for _ in 0..copies {
            if !self.chance(self.loss) {
                let wait = Duration::from_micros(5_000 + self.roll(35_000));
                self.later(wait + far.unwrap_or_default(), to, event.clone());
            }
        }
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((&(at, _), _)) = self.events.first_key_value() {
            if at > end {
                break;
            }
            let ((at, _), (id, event)) = self.events.pop_first().unwrap();
            self.now = at;
            self.happens(id, event);
        }
        self.now = end;
    }

    fn happens(&mut self, id: NodeId, event: Event) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if node.paused_until > now {
            // A machine that stood still finds what has come when it goes on.
            let wait = node.paused_until - now;
            return self.later(wait, id, event);
        }
        let input = match event {
            Event::Tick => {
                let wait = node.machine.deadline().since(now).clamp(ms(1), ms(50));
                self.later(wait, id, Event::Tick);
                Input::Tick
            }
            Event::Heard(from, ..) if self.cut.contains(&(from, id)) => return,
            Event::Heard(from, [life, to_life], message) => {
                let known = node.lives.get(&from).copied().unwrap_or_default();
                if to_life != node.life || life < known {
                    return;
                }
                if life > known {
                    node.lives.insert(from, life);
                    if known > 0 {
                        node.machine.handle(now, Input::Reborn(from));
                    }
                }
                Input::Heard { from, message }
            }
            Event::Wish => {
                node.wished += 1;
                let op = (id.0, node.wished);
                node.wishes.push_back(op);
                self.wished_at.insert(op, now);
                Input::Change
            }
            Event::Made => {
                // None: it was asked for in a former life.
                let Some(on) = node.making.take().flatten() else { return };
                if self.fails.contains(&id) {
                    node.machine.handle(now, Input::Made(None));
                    // Of a run that came too late the next one is asked for, though there is nothing to do.
                    if let Some(op) = node.wishes.pop_front() {
                        node.answered_at.push(now.since(self.wished_at[&op]));
                    }
                    if node.wishes.is_empty() {
                        return self.obey(id);
                    }
                    Input::Change
                } else {
                    Input::Made(make(node, id, on))
                }
            }
            Event::Arrived(block_id, block) => {
                if node.freed.contains(&block_id) {
                    return;
                }
                node.counter = node.counter.max(u128::from_be_bytes(block_id.0) >> 16);
                node.blocks.insert(block_id, block);
                let Some((root, made)) = node.checks.clone() else { return };
                let lacking = lacking(node, root, made.as_ref());
                if !lacking.is_empty() {
                    return;
                }
                Input::Checked { root, lacking }
            }
        };
        self.nodes.get_mut(&id).unwrap().machine.handle(now, input);
        self.obey(id);
    }

    pub(super) fn obey(&mut self, id: NodeId) {
        while let Some(output) = self.nodes.get_mut(&id).unwrap().machine.poll() {
            let now = self.now;
            let node = self.nodes.get_mut(&id).unwrap();
            match output {
                Output::Send { to, message } => {
                    // As its bytes say it.
                    let carried = wire::decode(&wire::encode(&message)).unwrap();
                    let of_life = node.life;
                    self.note_holder(id, &carried.header);
                    let node = &self.nodes[&id];
                    let to_life = node.lives.get(&to).copied();
                    // Whose life is not known is asked for it first.
                    let to_life = to_life.or(self.nodes.get(&to).map(|node| node.life)).unwrap_or_default();
                    self.carry(id, to, Event::Heard(id, [of_life, to_life], carried));
                }
                Output::Copy { to, ids } => {
                    let blocks: Vec<_> =
                        ids.iter().filter_map(|id| Some((*id, node.blocks.get(id)?.clone()))).collect();
                    for (block_id, block) in blocks {
                        self.carry(id, to, Event::Arrived(block_id, block));
                    }
                }
                Output::Run { on } => {
                    assert!(node.making.is_none(), "one at a time");
                    node.making = Some(on);
                    let wait = Duration::from_micros(200 + self.roll(3_000));
                    self.later(wait, id, Event::Made);
                }
                Output::Check { root, made } => {
                    node.checks = Some((root, made.clone()));
                    let lacking = lacking(node, root, made.as_ref());
                    node.machine.handle(now, Input::Checked { root, lacking });
                }
                Output::Adopt { root } => {
                    assert!(lacking(node, root, None).is_empty(), "{id:?} goes over to what it has not");
                }
                Output::Free { ids } => {
                    ids.iter().for_each(|id| drop(node.blocks.remove(id)));
                    node.freed.extend(ids);
                }
                Output::Settled { .. } => {
                    node.is_settling = false;
                    let op = node.wishes.pop_front().unwrap();
                    node.answered_at.push(now.since(self.wished_at[&op]));
                    self.answered.push(op);
                    let node = self.nodes.get_mut(&id).unwrap();
                    if !node.wishes.is_empty() {
                        node.machine.handle(now, Input::Change);
                    }
                }
                Output::Undone { root } => {
                    node.is_settling = false;
                    node.blocks.remove(&root);
                }
                Output::Left => node.has_left = true,
            }
        }
    }

    /// One holds the pen in each turn of a view, and none any more that was passed on.
    fn note_holder(&mut self, id: NodeId, header: &Header) {
        if !header.holds {
            return;
        }
        let (turn, holder) = self.held.entry(header.view).or_insert((header.turn, id));
        assert!(
            header.turn > *turn || (header.turn, id) == (*turn, *holder),
            "{id:?} holds what {holder:?} has"
        );
        self.turns += u64::from(header.turn > *turn);
        (*turn, *holder) = (header.turn, id);
    }

    /// Programs do not wait any longer, unless their change is under way.
    pub(super) fn give_up(&mut self, id: NodeId) {
        let node = self.nodes.get_mut(&id).unwrap();
        if node.making.is_none() && !node.is_settling {
            node.wishes.clear();
        }
    }

    pub(super) fn wish(&mut self, id: NodeId) {
        self.later(Duration::ZERO, id, Event::Wish);
    }

    /// All who are there have the same root, with each change that was answered, once.
    pub(super) fn check(&self, told: &str) {
        let roots: BTreeSet<_> = self.nodes.values().map(|node| node.machine.root()).collect();
        assert_eq!(roots.len(), 1, "{told}: {roots:?}");
        let living: BTreeSet<NodeId> = self.nodes.keys().copied().collect();
        let root = roots.first().copied().flatten().unwrap();
        for (id, node) in &self.nodes {
            assert_eq!(node.machine.members(), &living, "{told}: {id:?}");
            assert!(node.wishes.is_empty(), "{told}: {id:?} waits with {:?}", node.wishes);
            let Some(Block::Root(done, contents)) = node.blocks.get(&root) else { panic!("{told}") };
            assert!(node.blocks.contains_key(contents), "{told}: {id:?}");
            let once: BTreeSet<Op> = done.iter().copied().collect();
            assert_eq!(once.len(), done.len(), "{told}: done twice");
            let lost: Vec<&Op> = self.answered.iter().filter(|op| !once.contains(op)).collect();
            assert!(lost.is_empty(), "{told}: answered and lost {lost:?}");
        }
    }
}

/// What of a root is not there.
fn lacking(node: &Node, root: BlockId, made: Option<&Vec<BlockId>>) -> Vec<BlockId> {
    let mut ids: Vec<BlockId> = made.cloned().unwrap_or_default();
    ids.push(root);
    if let Some(Block::Root(_, contents)) = node.blocks.get(&root) {
        ids.push(*contents);
    }
    ids.retain(|id| !node.blocks.contains_key(id));
    ids.dedup();
    ids
}

/// Makes the first change that waits, on a root.
fn make(node: &mut Node, id: NodeId, on: BlockId) -> Option<Made> {
    let op = *node.wishes.front()?;
    let Some(Block::Root(done, before)) = node.blocks.get(&on).cloned() else { return None };
    let mut next = || {
        node.counter += 1;
        root_of(node.counter << 16 | u128::from(id.0))
    };
    let (contents, root) = (next(), next());
    node.is_settling = true;
    node.blocks.insert(contents, Block::Contents(op));
    node.blocks.insert(root, Block::Root([done, vec![op]].concat(), contents));
    Some(Made { root, made: vec![contents, root], freed: vec![on, before] })
}
