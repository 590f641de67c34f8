//! Nodes that have a tree together, over a network that loses, doubles and reorders, while nodes die, pause, come and go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use wirefs_echo::together::{Input, Made, NodeId, Output, Pulse, Together, wire};
use wirefs_echo::{BlockId, Time};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

const PULSE: Pulse = Pulse { beat: ms(50), retry: ms(120), dead: ms(1500) };

/// One change: who made it, and which of its changes it is.
type Op = (u16, u32);

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

struct Node {
    machine: Together,
    blocks: BTreeMap<BlockId, Block>,
    freed: BTreeSet<BlockId>,
    counter: u128,
    wishes: VecDeque<Op>,
    wished: u32,
    making: Option<Option<BlockId>>,
    checks: Option<(BlockId, Option<Vec<BlockId>>)>,
    /// Nothing is done before.
    paused_until: Time,
    has_left: bool,
    life: u32,
    /// Which life of the others it knows.
    lives: BTreeMap<NodeId, u32>,
    answered_at: Vec<Duration>,
}

struct World {
    now: Time,
    seed: u64,
    nodes: BTreeMap<NodeId, Node>,
    all: Vec<NodeId>,
    events: BTreeMap<(Time, u64), (NodeId, Event)>,
    count: u64,
    lives: u32,
    loss: f64,
    answered: Vec<Op>,
    wished_at: BTreeMap<Op, Time>,
}

fn root_of(number: u128) -> BlockId {
    BlockId::from(number)
}

impl World {
    fn new(seed: u64, count: u16, loss: f64) -> World {
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
        }
    }

    fn roll(&mut self, below: u64) -> u64 {
        // Splitmix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn chance(&mut self, part: f64) -> bool {
        (self.roll(1_000_000) as f64) < part * 1e6
    }

    fn start(&mut self, id: NodeId, is_first: bool) {
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
            checks: None,
            paused_until: Time::default(),
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
    fn carry(&mut self, to: NodeId, event: Event) {
        let copies = if self.chance(self.loss / 2.0) { 2 } else { 1 };
        for _ in 0..copies {
            if !self.chance(self.loss) {
                let wait = Duration::from_micros(5_000 + self.roll(35_000));
                self.later(wait, to, event.clone());
            }
        }
    }

    fn run(&mut self, time: Duration) {
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
                let on = node.making.take().unwrap().unwrap();
                Input::Made(make(node, id, on))
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

    fn obey(&mut self, id: NodeId) {
        while let Some(output) = self.nodes.get_mut(&id).unwrap().machine.poll() {
            let now = self.now;
            let node = self.nodes.get_mut(&id).unwrap();
            match output {
                Output::Send { to, message } => {
                    // As its bytes say it.
                    let carried = wire::decode(&wire::encode(&message)).unwrap();
                    let of_life = node.life;
                    let to_life = node.lives.get(&to).copied();
                    // Whose life is not known is asked for it first.
                    let to_life = to_life.or(self.nodes.get(&to).map(|node| node.life)).unwrap_or_default();
                    self.carry(to, Event::Heard(id, [of_life, to_life], carried));
                }
                Output::Copy { to, ids } => {
                    let blocks: Vec<_> =
                        ids.iter().filter_map(|id| Some((*id, node.blocks.get(id)?.clone()))).collect();
                    blocks.into_iter().for_each(|(id, block)| self.carry(to, Event::Arrived(id, block)));
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
                    let op = node.wishes.pop_front().unwrap();
                    node.answered_at.push(now.since(self.wished_at[&op]));
                    self.answered.push(op);
                    let node = self.nodes.get_mut(&id).unwrap();
                    if !node.wishes.is_empty() {
                        node.machine.handle(now, Input::Change);
                    }
                }
                Output::Undone { root } => {
                    node.blocks.remove(&root);
                }
                Output::Left => node.has_left = true,
            }
        }
    }

    fn wish(&mut self, id: NodeId) {
        self.later(Duration::ZERO, id, Event::Wish);
    }

    /// All who are there have the same root, with each change that was answered, once.
    fn check(&self, told: &str) {
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
    node.blocks.insert(contents, Block::Contents(op));
    node.blocks.insert(root, Block::Root([done, vec![op]].concat(), contents));
    Some(Made { root, made: vec![contents, root], freed: vec![on, before] })
}

fn together(seed: u64, count: u16, loss: f64) -> World {
    let mut world = World::new(seed, count, loss);
    for id in world.all.clone() {
        world.start(id, id == NodeId(1));
    }
    world.run(ms(6_000));
    world.check(&format!("seed {seed}: at the beginning"));
    world
}

/// Each node has a change now and then.
fn concurrent(world: &mut World, steps: u64) {
    for _ in 0..steps {
        let ids: Vec<NodeId> = world.nodes.keys().copied().collect();
        let id = ids[world.roll(ids.len() as u64) as usize];
        world.wish(id);
        let wait = world.roll(60);
        world.run(ms(wait));
    }
}

/// More seeds with `TOGETHER_SEEDS`.
#[expect(clippy::disallowed_methods, reason = "how much is tested is said outside")]
fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..std::env::var("TOGETHER_SEEDS").ok().map_or(usual, |count| count.parse().unwrap())
}

#[test]
fn change_of_one_node_is_answered_within_two_round_trips_and_others_have_it_then() {
    for seed in seeds(10) {
        let mut world = together(seed, 3, 0.0);
        world.wish(NodeId(1));
        world.run(ms(500));
        world.check(&format!("seed {seed}"));
        assert!(
            world.nodes[&NodeId(1)].answered_at[0] <= ms(2 * 80),
            "{:?}",
            world.nodes[&NodeId(1)].answered_at
        );
    }
}

#[test]
fn concurrent_changes_of_two_and_three_nodes_end_in_one_root_with_all_of_them() {
    for seed in seeds(20) {
        for count in [2, 3] {
            let mut world = together(seed, count, 0.1);
            concurrent(&mut world, 200);
            world.run(ms(120_000));
            world.check(&format!("seed {seed}, {count} nodes"));
            assert_eq!(world.answered.len(), 200, "seed {seed}");
        }
    }
}

#[test]
fn ten_minutes_of_concurrent_changes_end_in_one_root() {
    let mut world = together(7, 3, 0.02);
    let end = world.now + ms(600_000);
    let mut count = 0;
    while world.now < end {
        let id = NodeId(1 + world.roll(3) as u16);
        world.wish(id);
        count += 1;
        let wait = world.roll(600);
        world.run(ms(wait));
    }
    world.run(ms(60_000));
    world.check("after ten minutes");
    assert_eq!(world.answered.len(), count);
}

#[test]
fn node_that_dies_at_any_time_leaves_the_others_with_all_that_was_answered() {
    for seed in seeds(60) {
        let count = 2 + (seed % 2) as u16;
        let mut world = together(seed, count, 0.05);
        concurrent(&mut world, 30);
        let victim = NodeId(1 + (seed / 2 % u64::from(count)) as u16);
        world.nodes.remove(&victim);
        concurrent(&mut world, 30);
        world.run(ms(60_000));
        world.check(&format!("seed {seed}: {victim:?} of {count} died"));
    }
}

#[test]
fn node_that_stood_still_comes_back_and_repeats_nothing() {
    for seed in seeds(60) {
        let mut world = together(seed, 3, 0.05);
        concurrent(&mut world, 20);
        let sleeper = NodeId(1 + (seed % 3) as u16);
        let until = world.now + ms(500 + world.roll(4_000));
        world.nodes.get_mut(&sleeper).unwrap().paused_until = until;
        concurrent(&mut world, 40);
        world.run(ms(90_000));
        world.check(&format!("seed {seed}: {sleeper:?} stood still"));
        assert_eq!(world.answered.len(), 60, "seed {seed}");
    }
}

#[test]
fn nodes_join_and_leave_while_others_change_the_tree() {
    for seed in seeds(30) {
        let mut world = World::new(seed, 3, 0.05);
        world.start(NodeId(1), true);
        concurrent(&mut world, 10);
        world.start(NodeId(2), false);
        concurrent(&mut world, 40);
        world.start(NodeId(3), false);
        world.run(ms(3_000));
        concurrent(&mut world, 40);
        world.run(ms(30_000));
        world.check(&format!("seed {seed}: all came"));
        // The first one, with whom it began, goes in order.
        let now = world.now;
        world.nodes.get_mut(&NodeId(1)).unwrap().machine.handle(now, Input::Leave);
        world.obey(NodeId(1));
        world.run(ms(30_000));
        assert!(world.nodes[&NodeId(1)].has_left, "seed {seed}");
        world.nodes.remove(&NodeId(1));
        concurrent(&mut world, 20);
        world.run(ms(30_000));
        world.check(&format!("seed {seed}: one left"));
        assert_eq!(world.answered.len(), 110, "seed {seed}");
    }
}

#[test]
fn node_that_dies_and_is_started_anew_at_once_gets_all_again() {
    for seed in seeds(60) {
        let count = 2 + (seed % 2) as u16;
        let mut world = together(seed, count, 0.05);
        concurrent(&mut world, 30);
        let victim = NodeId(1 + (seed / 2 % u64::from(count)) as u16);
        let (counter, wished) = (world.nodes[&victim].counter, world.nodes[&victim].wished);
        world.nodes.remove(&victim);
        let wait = world.roll(2_500);
        world.run(ms(wait));
        world.start(victim, false);
        // Ids are left out, as the tree does.
        let anew = world.nodes.get_mut(&victim).unwrap();
        (anew.counter, anew.wished) = (counter + 1_000, wished);
        concurrent(&mut world, 30);
        world.run(ms(60_000));
        world.check(&format!("seed {seed}: {victim:?} of {count} died and came back"));
    }
}
