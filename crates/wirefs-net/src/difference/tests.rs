use super::*;
use std::time::Duration;
use wirefs_node::{Liveness, NodeExport, NodeName, NodeRecord};

fn node(number: u8, name: &str) -> NodeInfo {
    let share =
        NodeExport { name: NodeName::new("share").unwrap(), read_only: false, acts_for_callers: false };
    NodeInfo {
        record: NodeRecord {
            key: NodeKey([number; 32]),
            name: NodeName::new(name).unwrap(),
            born: 1,
            incarnation: 1,
            edition: 0,
            leaving: false,
            port: 6440,
            addresses: Vec::new(),
            exports: vec![share],
            cards: Vec::new(),
            load_percent: 0,
            free_bytes: 0,
            all_bytes: 0,
        },
        state: Liveness::Alive,
        state_for: Duration::ZERO,
        holds_name: true,
        is_own: false,
        last_source: None,
    }
}

fn names<'a>(difference: &Difference<'a>) -> (Vec<String>, Vec<&'a str>) {
    (difference.removed.clone(), difference.added.iter().map(|(name, _)| *name).collect())
}

#[test]
fn live_node_with_an_export_and_its_name_gets_a_trigger() {
    let mut nodes: Vec<NodeInfo> = (1..=6).map(|number| node(number, &format!("linus{number}"))).collect();
    nodes[0].is_own = true;
    nodes[1].state = Liveness::Dead;
    nodes[2].record.exports.clear();
    nodes[3].holds_name = false;
    let triggers = BTreeMap::from([("linus6", NodeKey([6; 32]))]);
    assert_eq!(names(&Difference::between(&triggers, &nodes)), (vec![], vec!["linus5"]));
}

#[test]
fn trigger_stays_while_its_node_is_dead_and_ends_with_its_name() {
    let mut dead = node(1, "linus1");
    dead.state = Liveness::Dead;
    let triggers = BTreeMap::from([
        ("linus1", NodeKey([1; 32])),
        ("linus2", NodeKey([2; 32])),
        ("linus3", NodeKey([3; 32])),
        ("linus4", NodeKey([4; 32])),
    ]);
    // Another node has the name of the second, the third has a new name, the fourth is not in the table.
    let mut second = node(2, "linus2");
    second.holds_name = false;
    let nodes = [dead, second, node(5, "linus2"), node(3, "other")];
    let removed = ["linus2", "linus3", "linus4"].map(str::to_owned).to_vec();
    assert_eq!(names(&Difference::between(&triggers, &nodes)), (removed, vec!["linus2", "other"]));
}

#[test]
fn number_of_triggers_is_bounded() {
    let nodes: Vec<NodeInfo> = (1..=200).map(|number| node(number, &format!("linus{number}"))).collect();
    let difference = Difference::between(&BTreeMap::new(), &nodes);
    assert_eq!((difference.added.len(), difference.is_full), (TRIGGERS_MAX, true));
    let triggers = difference.added.iter().map(|(name, node)| (*name, node.record.key)).collect();
    let difference = Difference::between(&triggers, &nodes);
    assert_eq!((difference.removed.len(), difference.added.len(), difference.is_full), (0, 0, true));
}
