//! Random token requests, while nodes die, pause, lose messages, leave and return.

use std::time::Duration;

use wirefs_echo::replication::{ReplicaId, ReplicaInput};

use super::cluster::{Cluster, SimNode, ms};
use super::seeds;

/// A node that is not running: its id, its last block counter, and its number of changes.
type StoppedNode = (ReplicaId, u128, u32);

fn random_node(cluster: &mut Cluster) -> ReplicaId {
    ReplicaId(1 + cluster.dice.below(cluster.all.len() as u64) as u16)
}

/// Makes a random change at a random node, or makes its programs give up, or makes its changes have no
/// effect. At most `at_once` changes are pending per node.
fn random_event(cluster: &mut Cluster, at_once: usize) {
    let id = random_node(cluster);
    match (cluster.nodes.get(&id).map(|node| node.pending.len()), cluster.dice.below(12)) {
        (_, 0) => drop(cluster.fails.insert(id)),
        (_, 1 | 2) => drop(cluster.fails.remove(&id)),
        (Some(_), 3) => cluster.give_up(id),
        (Some(count), _) if count < at_once => cluster.request_change(id),
        _ => {}
    }
    let longest = [5, 50, 500][cluster.dice.below(3) as usize];
    let wait = cluster.dice.below(longest);
    cluster.run(ms(wait));
}

fn is_in_order(cluster: &Cluster, node: &SimNode) -> bool {
    node.replica.is_member() && node.paused_until <= cluster.now && !node.is_leaving
}

fn stop(cluster: &mut Cluster, id: ReplicaId) -> StoppedNode {
    let node = cluster.nodes.remove(&id).unwrap();
    (id, node.counter, node.requested)
}

fn restart(cluster: &mut Cluster, (id, counter, requested): StoppedNode) {
    cluster.start(id, false);
    let restarted = cluster.nodes.get_mut(&id).unwrap();
    // Skips ids, as the tree does.
    (restarted.counter, restarted.requested) = (counter + 1_000, requested);
}

fn stop_left_nodes(cluster: &mut Cluster, stopped_nodes: &mut Vec<StoppedNode>) {
    for id in cluster.all.clone() {
        if cluster.nodes.get(&id).is_some_and(|node| node.has_left) {
            stopped_nodes.push(stop(cluster, id));
        }
    }
}

/// Disturbs one more node, as long as more than half of all remain undisturbed.
fn disturb(cluster: &mut Cluster, stopped_nodes: &mut Vec<StoppedNode>) {
    for stopped in std::mem::take(stopped_nodes) {
        if cluster.dice.below(4) == 0 {
            restart(cluster, stopped);
        } else {
            stopped_nodes.push(stopped);
        }
    }
    stop_left_nodes(cluster, stopped_nodes);
    if cluster.dice.below(2) == 0 {
        cluster.net.heal();
    }
    let in_order = cluster.nodes.iter().filter(|(_, node)| is_in_order(cluster, node));
    let in_order: Vec<ReplicaId> = in_order.map(|(id, _)| *id).collect();
    if (in_order.len() - 1) * 2 <= cluster.all.len() {
        return;
    }
    let id = in_order[cluster.dice.below(in_order.len() as u64) as usize];
    // Of three nodes with one stopped, both others would continue alone.
    let kinds = if cluster.all.len() > 3 { 4 } else { 3 };
    let (now, what, wait) = (cluster.now, cluster.dice.below(kinds), cluster.dice.below(4_000));
    let node = cluster.nodes.get_mut(&id).unwrap();
    match what {
        0 => stopped_nodes.push(stop(cluster, id)),
        1 => node.paused_until = now + ms(100 + wait),
        3 => {
            let (other, is_one_way) = (random_node(cluster), cluster.dice.below(2) == 0);
            cluster.net.heal();
            cluster.net.cut(other, id);
            if !is_one_way {
                cluster.net.cut(id, other);
            }
        }
        _ => {
            node.is_leaving = true;
            node.replica.handle(now, ReplicaInput::Leave);
            cluster.execute(id);
        }
    }
}

/// Restores all nodes.
fn restore_all(cluster: &mut Cluster, mut stopped_nodes: Vec<StoppedNode>, label: &str) {
    let limit = cluster.now + ms(40_000);
    cluster.net.heal();
    loop {
        stopped_nodes.drain(..).for_each(|stopped| restart(cluster, stopped));
        cluster.run(ms(100));
        stop_left_nodes(cluster, &mut stopped_nodes);
        if stopped_nodes.is_empty() && cluster.nodes.values().all(|node| is_in_order(cluster, node)) {
            return;
        }
        assert!(cluster.now < limit, "{label}: not all are members again");
    }
}

#[test]
fn token_requests_are_granted_in_time_and_the_token_comes_to_rest() {
    for seed in seeds(45) {
        let (label, count) = (format!("seed {seed}"), 3 + (seed % 3) as u16);
        let (loss, retries) = [(0.0, 0), (0.05, 5), (0.2, 10)][(seed / 3 % 3) as usize];
        let mut cluster = Cluster::new(seed, count, loss);
        for id in cluster.all.clone() {
            cluster.start(id, id == ReplicaId(1));
        }
        cluster.run(ms(10_000));
        let mut way = ms(40);
        if cluster.dice.below(2) == 0 {
            cluster.far = Some((random_node(&mut cluster), ms(100)));
            way += ms(100);
        }
        let (mut stopped_nodes, limit) = (Vec::new(), cluster.now + ms(20_000));
        while cluster.now < limit {
            random_event(&mut cluster, 3);
            if cluster.dice.below(20) == 0 {
                disturb(&mut cluster, &mut stopped_nodes);
            }
        }
        restore_all(&mut cluster, stopped_nodes, &label);
        // Each node needs the token, the root and the acceptance to be sent, and lost messages sent again.
        let bound = (way * 3 + ms(120) * retries) * u32::from(count + 1);
        cluster.run(bound * 4);
        cluster.check(&format!("{label}: after the disturbances"));
        cluster.nodes.values_mut().for_each(|node| node.answered_at.clear());
        let limit = cluster.now + ms(20_000);
        while cluster.now < limit {
            random_event(&mut cluster, 1);
        }
        cluster.run(bound);
        cluster.check(&format!("{label}: calm"));
        let waits = cluster.nodes.values().flat_map(|node| node.answered_at.iter().copied());
        let longest: Duration = waits.max().unwrap();
        assert!(longest <= bound, "{label}: {longest:?} of {bound:?}");
        let transfers = cluster.transfers;
        cluster.run(ms(5_000));
        assert_eq!(cluster.transfers, transfers, "{label}: the token rests without requests");
    }
}
