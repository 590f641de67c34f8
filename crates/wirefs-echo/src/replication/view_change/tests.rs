use super::*;
use crate::replication::message::{MessageHeader, ReplicationMessage};
use crate::replication::{ReplicaInput, ReplicationTimers};
use std::time::Duration;
use wirefs_op::Time;

const TIMERS: ReplicationTimers = ReplicationTimers {
    heartbeat: Duration::from_millis(50),
    retry: Duration::from_millis(100),
    dead_after: Duration::from_secs(1),
};
const ONE: ReplicaId = ReplicaId(1);
const TWO: ReplicaId = ReplicaId(2);
const THREE: ReplicaId = ReplicaId(3);
const VIEW: ViewId = ViewId { number: 5, proposer: THREE };

/// Node 1 of three.
struct FirstOfThree {
    node: Replica,
    now: Time,
}

impl FirstOfThree {
    fn new() -> FirstOfThree {
        FirstOfThree { node: Replica::join(ONE, &[TWO, THREE], TIMERS), now: Time::default() }
    }

    fn in_view() -> FirstOfThree {
        let mut first = FirstOfThree::new();
        let members = BTreeSet::from([ONE, TWO, THREE]);
        first.receive(THREE, ViewId::default(), MessageBody::ProposeView { view: VIEW, members });
        first.receive(THREE, VIEW, MessageBody::Heartbeat);
        assert!(first.node.is_member());
        first
    }

    /// Receives a message of a member of the view that has prepared for another one.
    fn receive(&mut self, from: ReplicaId, prepared_view: ViewId, body: MessageBody) {
        let view = VIEW.min(prepared_view);
        let members = BTreeSet::from([ONE, TWO, THREE]);
        let header =
            MessageHeader { view, prepared_view, members, holder: THREE, ..MessageHeader::default() };
        self.node
            .handle(self.now, ReplicaInput::Received { from, message: ReplicationMessage { header, body } });
    }

    /// Returns the views that node 1 proposes within `time`, while these nodes send heartbeats.
    fn proposed(&mut self, time: Duration, live: &[(ReplicaId, ViewId)]) -> Vec<ViewId> {
        let end = self.now + time;
        let mut views = Vec::new();
        while self.now < end {
            self.now = self.now + TIMERS.heartbeat;
            live.iter().for_each(|(from, prepared_view)| {
                self.receive(*from, *prepared_view, MessageBody::Heartbeat)
            });
            self.node.handle(self.now, ReplicaInput::Tick);
            while let Some(output) = self.node.poll() {
                if let ReplicaOutput::Send {
                    message: ReplicationMessage { body: MessageBody::ProposeView { view, .. }, .. },
                    ..
                } = output
                {
                    views.push(view);
                }
            }
        }
        views
    }
}

/// A member of a view has accepted it. If it has not, a former instance did, whose blocks are not here.
#[test]
fn node_that_never_accepted_a_view_is_no_member() {
    let mut first = FirstOfThree::new();
    first.receive(THREE, VIEW, MessageBody::Heartbeat);
    assert!(!first.node.is_member() && first.node.knows_of_tree());
    assert!(FirstOfThree::in_view().node.is_member());
}

#[test]
fn view_that_conflicts_with_a_prepared_one_is_proposed_again() {
    let mut first = FirstOfThree::in_view();
    let own = first.proposed(TIMERS.dead_after * 2, &[(THREE, VIEW)]);
    assert!(
        own.iter().all(|view| *view == ViewId { number: 6, proposer: ONE }) && !own.is_empty(),
        "{own:?}"
    );
    let other = ViewId { number: 6, proposer: TWO };
    let anew = first.proposed(TIMERS.dead_after, &[(THREE, other)]);
    assert_eq!(anew.last(), Some(&ViewId { number: 7, proposer: ONE }));
}

/// It takes part in no change until a view begins, and may not be the proposer itself.
#[test]
fn member_stuck_in_a_view_of_a_dead_proposer_gets_another() {
    let mut first = FirstOfThree::in_view();
    let other = ViewId { number: 6, proposer: ReplicaId(4) };
    assert_eq!(first.proposed(TIMERS.dead_after / 2, &[(TWO, VIEW), (THREE, other)]), []);
    let views = first.proposed(TIMERS.dead_after * 2, &[(TWO, VIEW), (THREE, other)]);
    assert_eq!(views.first(), Some(&ViewId { number: 7, proposer: ONE }));
}
