use super::*;
use crate::replication::{ReplicaInput, ReplicationTimers};
use std::time::Duration;
use wirefs_op::Time;

const STEP: Duration = Duration::from_millis(10);

fn id(counter: u128) -> EchoBlockId {
    EchoBlockId::from(counter)
}

/// Two replicas on a path without delay. Roots are checked at once and found complete, except one.
struct TwoReplicas {
    nodes: [Replica; 2],
    now: Time,
    unchecked: EchoBlockId,
    seen: Vec<ReplicaOutput>,
}

impl TwoReplicas {
    fn step(&mut self) {
        self.now = self.now + STEP;
        for place in 0..2 {
            self.nodes[place].handle(self.now, ReplicaInput::Tick);
            self.execute(place);
        }
    }

    fn execute(&mut self, place: usize) {
        while let Some(output) = self.nodes[place].poll() {
            let from = self.nodes[place].id();
            match output.clone() {
                ReplicaOutput::Send { message, .. } => {
                    self.nodes[1 - place].handle(self.now, ReplicaInput::Received { from, message });
                    self.execute(1 - place);
                }
                ReplicaOutput::Check { root, .. } if root != self.unchecked => {
                    self.nodes[place].handle(self.now, ReplicaInput::Checked { root, missing: Vec::new() });
                }
                _ => {}
            }
            self.seen.push(output);
        }
    }
}

/// A slow check is repeated. When the second check ends, the next root may have arrived.
#[test]
fn late_check_of_a_former_root_does_not_count_for_the_next() {
    let timers = ReplicationTimers { heartbeat: STEP * 5, retry: STEP * 10, dead_after: STEP * 100 };
    let [one, two] = [ReplicaId(1), ReplicaId(2)];
    let (first, next) = (id(1), id(5));
    let nodes = [Replica::create(one, &[two], timers, Some(first)), Replica::join(two, &[one], timers)];
    let mut both = TwoReplicas { nodes, now: Time::default(), unchecked: next, seen: Vec::new() };
    for _ in 0..500 {
        both.step();
    }
    assert!(both.nodes[1].is_member() && both.nodes[1].root() == Some(first));
    both.nodes[0].handle(both.now, ReplicaInput::RequestWrite);
    both.execute(0);
    assert!(both.seen.contains(&ReplicaOutput::RunChange { base: Some(first) }));
    let new_blocks = NewRoot { root: next, new_blocks: vec![next], freed: Vec::new() };
    both.nodes[0].handle(both.now, ReplicaInput::ChangeDone(Some(new_blocks)));
    both.execute(0);
    assert!(
        both.seen.iter().any(|output| matches!(output, ReplicaOutput::Check { root, .. } if *root == next))
    );
    for root in [first, next] {
        both.nodes[1].handle(both.now, ReplicaInput::Checked { root, missing: Vec::new() });
    }
    assert_eq!(both.nodes[1].root(), Some(next));
}
