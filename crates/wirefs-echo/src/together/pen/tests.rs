use super::*;
use crate::together::message::{Header, Message, View};
use crate::together::{Input, Pulse};
use std::time::Duration;
use wirefs_op::Time;

const STEP: Duration = Duration::from_millis(10);

fn id(counter: u128) -> BlockId {
    BlockId::from(counter)
}

/// Two nodes on lines without delay. A root is looked at at once and found whole, but for this one.
struct Two {
    nodes: [Together; 2],
    now: Time,
    unlooked: BlockId,
    seen: Vec<Output>,
}

impl Two {
    fn step(&mut self) {
        self.now = self.now + STEP;
        for place in 0..2 {
            self.nodes[place].handle(self.now, Input::Tick);
            self.obey(place);
        }
    }

    fn obey(&mut self, place: usize) {
        while let Some(output) = self.nodes[place].poll() {
            let from = self.nodes[place].me();
            match output.clone() {
                Output::Send { message, .. } => {
                    self.nodes[1 - place].handle(self.now, Input::Heard { from, message });
                    self.obey(1 - place);
                }
                Output::Check { root, .. } if root != self.unlooked => {
                    self.nodes[place].handle(self.now, Input::Checked { root, lacking: Vec::new() });
                }
                _ => {}
            }
            self.seen.push(output);
        }
    }
}

/// A root is looked at twice where looking takes long; by the end of the second look the next one may have been told.
#[test]
fn late_look_at_the_root_before_does_not_count_for_the_next_one() {
    let pulse = Pulse { beat: STEP * 5, retry: STEP * 10, dead: STEP * 100 };
    let [one, two] = [NodeId(1), NodeId(2)];
    let (first, next) = (id(1), id(5));
    let nodes = [Together::found(one, &[two], pulse, Some(first)), Together::join(two, &[one], pulse)];
    let mut both = Two { nodes, now: Time::default(), unlooked: next, seen: Vec::new() };
    for _ in 0..500 {
        both.step();
    }
    assert!(both.nodes[1].is_member() && both.nodes[1].root() == Some(first));
    both.nodes[0].handle(both.now, Input::Change);
    both.obey(0);
    assert!(both.seen.contains(&Output::Run { on: Some(first) }));
    let made = Made { root: next, made: vec![next], freed: Vec::new() };
    both.nodes[0].handle(both.now, Input::Made(Some(made)));
    both.obey(0);
    assert!(both.seen.iter().any(|output| matches!(output, Output::Check { root, .. } if *root == next)));
    for root in [first, next] {
        both.nodes[1].handle(both.now, Input::Checked { root, lacking: Vec::new() });
    }
    assert_eq!(both.nodes[1].root(), Some(next));
}

/// Whoever is in a view has agreed to it, or it was another life of the same node: that one's blocks are not here.
#[test]
fn node_that_never_agreed_to_a_view_is_no_member_of_it() {
    let pulse = Pulse { beat: STEP * 5, retry: STEP * 10, dead: STEP * 100 };
    let [one, two] = [NodeId(1), NodeId(2)];
    let view = View { number: 9, by: one };
    let members = BTreeSet::from([one, two]);
    let hear = |node: &mut Together, view, body| {
        let header = Header { view, members: members.clone(), holder: one, ..Header::default() };
        node.handle(Time::default(), Input::Heard { from: one, message: Message { header, body } });
    };
    let mut node = Together::join(two, &[one], pulse);
    hear(&mut node, view, Body::Alive);
    assert!(!node.is_member() && node.has_heard_of_a_tree());
    hear(&mut node, View { number: 8, by: one }, Body::Propose { view, members: members.clone() });
    hear(&mut node, view, Body::Alive);
    assert!(node.is_member());
}
