//! Replicas in a network that loses, duplicates and reorders, while nodes die, pause, join and leave.

mod cluster;
mod token_requests;

use wirefs_echo::replication::{ReplicaId, ReplicaInput};

use cluster::{Cluster, ms};

fn start_cluster(seed: u64, count: u16, loss: f64) -> Cluster {
    let mut cluster = Cluster::new(seed, count, loss);
    for id in cluster.all.clone() {
        cluster.start(id, id == ReplicaId(1));
    }
    cluster.run(ms(6_000));
    cluster.check(&format!("seed {seed}: at the start"));
    cluster
}

/// A random node makes a change once in a while.
fn concurrent(cluster: &mut Cluster, steps: u64) {
    for _ in 0..steps {
        let ids: Vec<ReplicaId> = cluster.nodes.keys().copied().collect();
        let id = ids[cluster.dice.below(ids.len() as u64) as usize];
        cluster.request_change(id);
        let wait = cluster.dice.below(60);
        cluster.run(ms(wait));
    }
}

/// `TOGETHER_SEEDS` sets the number of seeds.
#[expect(clippy::disallowed_methods, reason = "how much is tested is said outside")]
fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..std::env::var("TOGETHER_SEEDS").ok().map_or(usual, |count| count.parse().unwrap())
}

#[test]
fn change_is_answered_within_two_round_trips_and_replicated() {
    for seed in seeds(10) {
        let mut cluster = start_cluster(seed, 3, 0.0);
        cluster.request_change(ReplicaId(1));
        cluster.run(ms(500));
        cluster.check(&format!("seed {seed}"));
        assert!(
            cluster.nodes[&ReplicaId(1)].answered_at[0] <= ms(2 * 80),
            "{:?}",
            cluster.nodes[&ReplicaId(1)].answered_at
        );
    }
}

#[test]
fn concurrent_changes_end_in_one_root_with_all_of_them() {
    for seed in seeds(20) {
        for count in [2, 3] {
            let mut cluster = start_cluster(seed, count, 0.1);
            concurrent(&mut cluster, 200);
            cluster.run(ms(120_000));
            cluster.check(&format!("seed {seed}, {count} nodes"));
            assert_eq!(cluster.answered.len(), 200, "seed {seed}");
        }
    }
}

/// Keeps changes pending at all nodes for a minute. Returns the smallest and largest number of changes of one
/// node.
fn changes_per_node(cluster: &mut Cluster) -> (usize, usize) {
    let end = cluster.now + ms(60_000);
    while cluster.now < end {
        for id in cluster.all.clone() {
            if cluster.nodes[&id].pending.len() < 2 {
                cluster.request_change(id);
            }
        }
        cluster.run(ms(5));
    }
    let new_blocks = cluster.nodes.values().map(|node| node.answered_at.len());
    (new_blocks.clone().min().unwrap(), new_blocks.max().unwrap())
}

#[test]
fn busy_nodes_get_similar_shares() {
    for (count, loss) in [(3, 0.0), (3, 0.05), (5, 0.0), (5, 0.05)] {
        for seed in seeds(4) {
            let mut cluster = start_cluster(seed, count, loss);
            let (fewest, most) = changes_per_node(&mut cluster);
            assert!(fewest * 2 > most, "seed {seed}, {count} nodes, loss {loss}: {fewest} to {most}");
            cluster.run(ms(60_000));
            cluster.check(&format!("seed {seed}, {count} nodes"));
        }
    }
}

/// Near nodes that release the token at once must not pass it between them while a far one requests it. A
/// change of the far node takes four one-way delays of 120 ms: to request the token, to get it, and to have
/// its root accepted.
#[test]
fn far_node_gets_the_token_between_near_ones_without_effective_changes() {
    for seed in seeds(10) {
        let mut cluster = start_cluster(seed, 4, 0.02);
        let far = ReplicaId(1 + (seed % 4) as u16);
        cluster.far = Some((far, ms(100)));
        cluster.fails = cluster.all.iter().copied().filter(|id| *id != far).collect();
        let (fewest, _) = changes_per_node(&mut cluster);
        assert!(fewest >= 94, "seed {seed}: {fewest} of about 120 that its distance permits");
    }
}

#[test]
fn ten_minutes_of_concurrent_changes_end_in_one_root() {
    let mut cluster = start_cluster(7, 3, 0.02);
    let end = cluster.now + ms(600_000);
    let mut count = 0;
    while cluster.now < end {
        let id = ReplicaId(1 + cluster.dice.below(3) as u16);
        cluster.request_change(id);
        count += 1;
        let wait = cluster.dice.below(600);
        cluster.run(ms(wait));
    }
    cluster.run(ms(60_000));
    cluster.check("after ten minutes");
    assert_eq!(cluster.answered.len(), count);
}

#[test]
fn death_of_a_node_loses_no_answered_change() {
    for seed in seeds(60) {
        let count = 2 + (seed % 2) as u16;
        let mut cluster = start_cluster(seed, count, 0.05);
        concurrent(&mut cluster, 30);
        let victim = ReplicaId(1 + (seed / 2 % u64::from(count)) as u16);
        cluster.nodes.remove(&victim);
        concurrent(&mut cluster, 30);
        cluster.run(ms(60_000));
        cluster.check(&format!("seed {seed}: {victim:?} of {count} died"));
    }
}

#[test]
fn paused_node_returns_and_repeats_no_change() {
    for seed in seeds(60) {
        let mut cluster = start_cluster(seed, 3, 0.05);
        concurrent(&mut cluster, 20);
        let sleeper = ReplicaId(1 + (seed % 3) as u16);
        let until = cluster.now + ms(500 + cluster.dice.below(4_000));
        cluster.nodes.get_mut(&sleeper).unwrap().paused_until = until;
        concurrent(&mut cluster, 40);
        cluster.run(ms(90_000));
        cluster.check(&format!("seed {seed}: {sleeper:?} was paused"));
        assert_eq!(cluster.answered.len(), 60, "seed {seed}");
    }
}

/// Two nodes pause. When they are to be removed, another one dies without which the rest has no quorum. Then
/// they return.
#[test]
fn returned_member_restores_the_quorum_after_another_died() {
    for seed in seeds(20) {
        let mut cluster = start_cluster(seed, 5, 0.05);
        let until = cluster.now + ms(2_500);
        let [victim, others @ ..] = [0, 1, 2].map(|more| ReplicaId(1 + ((seed + more) % 5) as u16));
        others.iter().for_each(|id| cluster.nodes.get_mut(id).unwrap().paused_until = until);
        cluster.run(ms(300));
        cluster.nodes.remove(&victim);
        cluster.run(ms(2_500));
        concurrent(&mut cluster, 20);
        cluster.run(ms(30_000));
        cluster.check(&format!("seed {seed}: {victim:?} died"));
    }
}

/// Node 2 learns of the new instance of node 3 when that is a member already.
#[test]
fn new_instance_that_rejoined_before_all_know_it_stays_a_member() {
    for seed in seeds(20) {
        let (mut cluster, [_, two, three]) = two_of_three(seed, ReplicaId(1));
        cluster.net.partition(two, three);
        cluster.start(three, false);
        until(&mut cluster, |cluster| cluster.nodes[&two].replica.members().contains(&three));
        cluster.net.heal();
        concurrent(&mut cluster, 30);
        cluster.run(ms(30_000));
        cluster.check(&format!("seed {seed}"));
    }
}

/// Node 3 dies as soon as it is a member, and node 1 learns of its new instance before it learns of the view.
#[test]
fn new_instance_is_not_mistaken_for_the_former_member() {
    for seed in seeds(20) {
        let (mut cluster, [one, two, three]) = two_of_three(seed, ReplicaId(2));
        cluster.start(three, false);
        until(&mut cluster, |cluster| cluster.nodes[&two].replica.members().contains(&three));
        cluster.net.cut(two, one);
        cluster.net.cut(three, one);
        // Before or after it has accepted the root.
        cluster.run(ms(seed % 2 * 100));
        cluster.start(three, false);
        cluster.run(ms(50));
        cluster.net.restore(three, one);
        cluster.run(ms(150));
        assert!(!cluster.nodes[&one].replica.members().contains(&three), "seed {seed}");
        cluster.net.heal();
        concurrent(&mut cluster, 30);
        cluster.run(ms(30_000));
        cluster.check(&format!("seed {seed}"));
    }
}

/// Two nodes that have removed a third one; `holder` has the token.
fn two_of_three(seed: u64, holder: ReplicaId) -> (Cluster, [ReplicaId; 3]) {
    let mut cluster = start_cluster(seed, 3, 0.02);
    let ids = [1, 2, 3].map(ReplicaId);
    cluster.nodes.remove(&ids[2]);
    concurrent(&mut cluster, 10);
    cluster.run(ms(10_000));
    while cluster.nodes[&holder].replica.holder() != holder {
        cluster.request_change(holder);
        cluster.run(ms(2_000));
    }
    (cluster, ids)
}

fn until(cluster: &mut Cluster, is_so: impl Fn(&Cluster) -> bool) {
    let end = cluster.now + ms(10_000);
    while !is_so(cluster) {
        assert!(cluster.now < end, "timed out");
        cluster.run(ms(1));
    }
}

#[test]
fn nodes_join_and_leave_while_others_change_the_tree() {
    for seed in seeds(30) {
        let mut cluster = Cluster::new(seed, 3, 0.05);
        cluster.start(ReplicaId(1), true);
        concurrent(&mut cluster, 10);
        cluster.start(ReplicaId(2), false);
        concurrent(&mut cluster, 40);
        cluster.start(ReplicaId(3), false);
        cluster.run(ms(3_000));
        concurrent(&mut cluster, 40);
        cluster.run(ms(30_000));
        cluster.check(&format!("seed {seed}: all joined"));
        // The first node leaves in order.
        let now = cluster.now;
        cluster.nodes.get_mut(&ReplicaId(1)).unwrap().replica.handle(now, ReplicaInput::Leave);
        cluster.execute(ReplicaId(1));
        cluster.run(ms(30_000));
        assert!(cluster.nodes[&ReplicaId(1)].has_left, "seed {seed}");
        cluster.nodes.remove(&ReplicaId(1));
        concurrent(&mut cluster, 20);
        cluster.run(ms(30_000));
        cluster.check(&format!("seed {seed}: one left"));
        assert_eq!(cluster.answered.len(), 110, "seed {seed}");
    }
}

#[test]
fn restarted_node_gets_all_blocks_again() {
    for seed in seeds(60) {
        let count = 2 + (seed % 2) as u16;
        let mut cluster = start_cluster(seed, count, 0.05);
        concurrent(&mut cluster, 30);
        let victim = ReplicaId(1 + (seed / 2 % u64::from(count)) as u16);
        let (counter, requested) = (cluster.nodes[&victim].counter, cluster.nodes[&victim].requested);
        cluster.nodes.remove(&victim);
        let wait = cluster.dice.below(2_500);
        cluster.run(ms(wait));
        cluster.start(victim, false);
        // Skips ids, as the tree does.
        let restarted = cluster.nodes.get_mut(&victim).unwrap();
        (restarted.counter, restarted.requested) = (counter + 1_000, requested);
        concurrent(&mut cluster, 30);
        cluster.run(ms(60_000));
        cluster.check(&format!("seed {seed}: {victim:?} of {count} died and restarted"));
    }
}
