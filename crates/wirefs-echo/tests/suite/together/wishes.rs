//! Wishes for the pen that come and go at random, while nodes die, stand still, do not hear each other, leave and come back.

use std::time::Duration;

use wirefs_echo::together::{Input, NodeId};

use super::seeds;
use super::world::{Node, World, ms};

/// Of a node that is not there: up to where it used ids, and how many changes it had.
type Former = (NodeId, u128, u32);

fn some(world: &mut World) -> NodeId {
    NodeId(1 + world.roll(world.all.len() as u64) as u16)
}

/// Somebody has changes or gives up; of some the changes come to nothing. No more at once than can be made soon.
fn whim(world: &mut World, at_once: usize) {
    let id = some(world);
    match (world.nodes.get(&id).map(|node| node.wishes.len()), world.roll(12)) {
        (_, 0) => drop(world.fails.insert(id)),
        (_, 1 | 2) => drop(world.fails.remove(&id)),
        (Some(_), 3) => world.give_up(id),
        (Some(count), _) if count < at_once => world.wish(id),
        _ => {}
    }
    let longest = [5, 50, 500][world.roll(3) as usize];
    let wait = world.roll(longest);
    world.run(ms(wait));
}

fn is_in_order(world: &World, node: &Node) -> bool {
    node.machine.is_member() && node.paused_until <= world.now && !node.leaves
}

fn end(world: &mut World, id: NodeId) -> Former {
    let node = world.nodes.remove(&id).unwrap();
    (id, node.counter, node.wished)
}

fn start_anew(world: &mut World, (id, counter, wished): Former) {
    world.start(id, false);
    let anew = world.nodes.get_mut(&id).unwrap();
    // Ids are left out, as the tree does.
    (anew.counter, anew.wished) = (counter + 1_000, wished);
}

fn end_who_left(world: &mut World, gone: &mut Vec<Former>) {
    for id in world.all.clone() {
        if world.nodes.get(&id).is_some_and(|node| node.has_left) {
            gone.push(end(world, id));
        }
    }
}

/// Disturbs one more node, as long as more than half of all are in order then.
fn disturb(world: &mut World, gone: &mut Vec<Former>) {
    for former in std::mem::take(gone) {
        if world.roll(4) == 0 {
            start_anew(world, former);
        } else {
            gone.push(former);
        }
    }
    end_who_left(world, gone);
    if world.roll(2) == 0 {
        world.cut.clear();
    }
    let in_order = world.nodes.iter().filter(|(_, node)| is_in_order(world, node));
    let in_order: Vec<NodeId> = in_order.map(|(id, _)| *id).collect();
    if (in_order.len() - 1) * 2 <= world.all.len() {
        return;
    }
    let id = in_order[world.roll(in_order.len() as u64) as usize];
    // Of three that are two, since one is gone, both would go on.
    let kinds = if world.all.len() > 3 { 4 } else { 3 };
    let (now, what, wait) = (world.now, world.roll(kinds), world.roll(4_000));
    let node = world.nodes.get_mut(&id).unwrap();
    match what {
        0 => gone.push(end(world, id)),
        1 => node.paused_until = now + ms(100 + wait),
        3 => {
            let (other, is_one_way) = (some(world), world.roll(2) == 0);
            world.cut = [(id, other), (other, id)].into_iter().skip(usize::from(is_one_way)).collect();
        }
        _ => {
            node.leaves = true;
            node.machine.handle(now, Input::Leave);
            world.obey(id);
        }
    }
}

/// Has all come back.
fn calm_down(world: &mut World, mut gone: Vec<Former>, told: &str) {
    let limit = world.now + ms(40_000);
    world.cut.clear();
    loop {
        gone.drain(..).for_each(|former| start_anew(world, former));
        world.run(ms(100));
        end_who_left(world, &mut gone);
        if gone.is_empty() && world.nodes.values().all(|node| is_in_order(world, node)) {
            return;
        }
        assert!(world.now < limit, "{told}: not together again");
    }
}

#[test]
fn wishes_that_come_and_go_are_met_in_time_and_the_pen_comes_to_rest() {
    for seed in seeds(45) {
        let (told, count) = (format!("seed {seed}"), 3 + (seed % 3) as u16);
        let (loss, retries) = [(0.0, 0), (0.05, 5), (0.2, 10)][(seed / 3 % 3) as usize];
        let mut world = World::new(seed, count, loss);
        for id in world.all.clone() {
            world.start(id, id == NodeId(1));
        }
        world.run(ms(10_000));
        let mut way = ms(40);
        if world.roll(2) == 0 {
            world.far = Some((some(&mut world), ms(100)));
            way += ms(100);
        }
        let (mut gone, limit) = (Vec::new(), world.now + ms(20_000));
        while world.now < limit {
            whim(&mut world, 3);
            if world.roll(20) == 0 {
                disturb(&mut world, &mut gone);
            }
        }
        calm_down(&mut world, gone, &told);
        // The pen comes, the root goes and its receipt comes, for each node, and what was lost is sent again.
        let bound = (way * 3 + ms(120) * retries) * u32::from(count + 1);
        world.run(bound * 4);
        world.check(&format!("{told}: after all that"));
        world.nodes.values_mut().for_each(|node| node.answered_at.clear());
        let limit = world.now + ms(20_000);
        while world.now < limit {
            whim(&mut world, 1);
        }
        world.run(bound);
        world.check(&format!("{told}: calm"));
        let waits = world.nodes.values().flat_map(|node| node.answered_at.iter().copied());
        let longest: Duration = waits.max().unwrap();
        assert!(longest <= bound, "{told}: {longest:?} of {bound:?}");
        let turns = world.turns;
        world.run(ms(5_000));
        assert_eq!(world.turns, turns, "{told}: the pen rests where nobody wants it");
    }
}
