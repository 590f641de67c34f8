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
        heard_from: None,
    }
}

fn names<'a>(difference: &Difference<'a>) -> (Vec<String>, Vec<&'a str>) {
    (difference.lower.clone(), difference.raise.iter().map(|(name, _)| *name).collect())
}

#[test]
fn who_lives_and_shares_and_holds_its_name_gets_a_gate() {
    let mut nodes: Vec<NodeInfo> = (1..=6).map(|number| node(number, &format!("linus{number}"))).collect();
    nodes[0].is_own = true;
    nodes[1].state = Liveness::Dead;
    nodes[2].record.exports.clear();
    nodes[3].holds_name = false;
    let gates = BTreeMap::from([("linus6", NodeKey([6; 32]))]);
    assert_eq!(names(&Difference::between(&gates, &nodes)), (vec![], vec!["linus5"]));
}

#[test]
fn a_gate_stays_while_its_node_is_dead_and_goes_with_its_name() {
    let mut dead = node(1, "linus1");
    dead.state = Liveness::Dead;
    let gates = BTreeMap::from([
        ("linus1", NodeKey([1; 32])),
        ("linus2", NodeKey([2; 32])),
        ("linus3", NodeKey([3; 32])),
        ("linus4", NodeKey([4; 32])),
    ]);
    // Another has the second's name, the third has a new one, the fourth is forgotten.
    let mut second = node(2, "linus2");
    second.holds_name = false;
    let nodes = [dead, second, node(5, "linus2"), node(3, "other")];
    let lowered = ["linus2", "linus3", "linus4"].map(str::to_owned).to_vec();
    assert_eq!(names(&Difference::between(&gates, &nodes)), (lowered, vec!["linus2", "other"]));
}

#[test]
fn there_are_no_more_gates_than_their_bound() {
    let nodes: Vec<NodeInfo> = (1..=200).map(|number| node(number, &format!("linus{number}"))).collect();
    let difference = Difference::between(&BTreeMap::new(), &nodes);
    assert_eq!((difference.raise.len(), difference.is_full), (GATES_MAX, true));
    let gates = difference.raise.iter().map(|(name, node)| (*name, node.record.key)).collect();
    let difference = Difference::between(&gates, &nodes);
    assert_eq!((difference.lower.len(), difference.raise.len(), difference.is_full), (0, 0, true));
}
