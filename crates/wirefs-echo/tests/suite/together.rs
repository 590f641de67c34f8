//! Nodes that have a tree together, over a network that loses, doubles and reorders, while nodes die, pause, come and go.

mod wishes;
mod world;

use wirefs_echo::together::{Input, NodeId};

use world::{World, ms};

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

/// Has each node have changes all the time. How many each made within a minute: the least and the most.
fn made_by_all(world: &mut World) -> (usize, usize) {
    let end = world.now + ms(60_000);
    while world.now < end {
        for id in world.all.clone() {
            if world.nodes[&id].wishes.len() < 2 {
                world.wish(id);
            }
        }
        world.run(ms(5));
    }
    let made = world.nodes.values().map(|node| node.answered_at.len());
    (made.clone().min().unwrap(), made.max().unwrap())
}

#[test]
fn nodes_that_always_have_changes_make_about_as_many() {
    for (count, loss) in [(3, 0.0), (3, 0.05), (5, 0.0), (5, 0.05)] {
        for seed in seeds(4) {
            let mut world = together(seed, count, loss);
            let (least, most) = made_by_all(&mut world);
            assert!(least * 2 > most, "seed {seed}, {count} nodes, loss {loss}: {least} to {most}");
            world.run(ms(60_000));
            world.check(&format!("seed {seed}, {count} nodes"));
        }
    }
}

/// Near nodes that are done with the pen at once do not pass it between them while a far one asks. That one takes four ways of 120 ms for
/// a change: to ask, to be given the pen, and to have its root taken.
#[test]
fn far_node_has_its_turn_between_near_ones_whose_changes_come_to_nothing() {
    for seed in seeds(10) {
        let mut world = together(seed, 4, 0.02);
        let far = NodeId(1 + (seed % 4) as u16);
        world.far = Some((far, ms(100)));
        world.fails = world.all.iter().copied().filter(|id| *id != far).collect();
        let (least, _) = made_by_all(&mut world);
        assert!(least >= 94, "seed {seed}: {least} of about 120 that its distance permits");
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

/// Two stand still; when they are to be left out, one is dead without which the others are too few. They come back.
#[test]
fn who_was_to_be_left_out_and_is_back_makes_up_for_one_that_died_meanwhile() {
    for seed in seeds(20) {
        let mut world = together(seed, 5, 0.05);
        let until = world.now + ms(2_500);
        let [victim, others @ ..] = [0, 1, 2].map(|more| NodeId(1 + ((seed + more) % 5) as u16));
        others.iter().for_each(|id| world.nodes.get_mut(id).unwrap().paused_until = until);
        world.run(ms(300));
        world.nodes.remove(&victim);
        world.run(ms(2_500));
        concurrent(&mut world, 20);
        world.run(ms(30_000));
        world.check(&format!("seed {seed}: {victim:?} died"));
    }
}

/// The second node hears of the new life of the third one when that is with them already.
#[test]
fn new_life_that_is_a_member_before_all_have_heard_of_it_is_not_taken_for_dead() {
    for seed in seeds(20) {
        let (mut world, [_, two, three]) = two_and_one_to_come(seed, NodeId(1));
        world.cut = [(two, three), (three, two)].into();
        world.start(three, false);
        until(&mut world, |world| world.nodes[&two].machine.members().contains(&three));
        world.cut.clear();
        concurrent(&mut world, 30);
        world.run(ms(30_000));
        world.check(&format!("seed {seed}"));
    }
}

/// The third node dies as soon as it is with them, and the first one hears of its new life before that of the view.
#[test]
fn new_life_is_not_taken_for_the_one_that_was_a_member() {
    for seed in seeds(20) {
        let (mut world, [one, two, three]) = two_and_one_to_come(seed, NodeId(2));
        world.start(three, false);
        until(&mut world, |world| world.nodes[&two].machine.members().contains(&three));
        world.cut = [(two, one), (three, one)].into();
        // Before or after it has told the second one that it has the root.
        world.run(ms(seed % 2 * 100));
        world.start(three, false);
        world.run(ms(50));
        world.cut.remove(&(three, one));
        world.run(ms(150));
        assert!(!world.nodes[&one].machine.members().contains(&three), "seed {seed}");
        world.cut.clear();
        concurrent(&mut world, 30);
        world.run(ms(30_000));
        world.check(&format!("seed {seed}"));
    }
}

/// Two nodes that have left out a third one, and who of them has the pen.
fn two_and_one_to_come(seed: u64, holder: NodeId) -> (World, [NodeId; 3]) {
    let mut world = together(seed, 3, 0.02);
    let ids = [1, 2, 3].map(NodeId);
    world.nodes.remove(&ids[2]);
    concurrent(&mut world, 10);
    world.run(ms(10_000));
    while world.nodes[&holder].machine.holder() != holder {
        world.wish(holder);
        world.run(ms(2_000));
    }
    (world, ids)
}

fn until(world: &mut World, is_so: impl Fn(&World) -> bool) {
    let end = world.now + ms(10_000);
    while !is_so(world) {
        assert!(world.now < end, "waited in vain");
        world.run(ms(1));
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
