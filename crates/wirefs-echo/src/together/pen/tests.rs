use super::*;
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
