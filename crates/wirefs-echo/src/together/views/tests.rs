use super::*;
use crate::together::message::{Header, Message};
use crate::together::{Input, Pulse};
use std::time::Duration;
use wirefs_op::Time;

const PULSE: Pulse = Pulse {
    beat: Duration::from_millis(50),
    retry: Duration::from_millis(100),
    dead: Duration::from_secs(1),
};
const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);
const THREE: NodeId = NodeId(3);
const VIEW: View = View { number: 5, by: THREE };

/// The first one of three, and what it is told.
struct First {
    node: Together,
    now: Time,
}

impl First {
    fn new() -> First {
        First { node: Together::join(ONE, &[TWO, THREE], PULSE), now: Time::default() }
    }

    fn in_view() -> First {
        let mut first = First::new();
        let members = BTreeSet::from([ONE, TWO, THREE]);
        first.hear(THREE, View::default(), Body::Propose { view: VIEW, members });
        first.hear(THREE, VIEW, Body::Alive);
        assert!(first.node.is_member());
        first
    }

    /// Hears somebody who is in the view, and has promised another one.
    fn hear(&mut self, from: NodeId, promised: View, body: Body) {
        let view = VIEW.min(promised);
        let members = BTreeSet::from([ONE, TWO, THREE]);
        let header = Header { view, promised, members, holder: THREE, ..Header::default() };
        self.node.handle(self.now, Input::Heard { from, message: Message { header, body } });
    }

    /// Which views it proposes within this time, while these say that they live.
    fn proposed(&mut self, time: Duration, living: &[(NodeId, View)]) -> Vec<View> {
        let end = self.now + time;
        let mut views = Vec::new();
        while self.now < end {
            self.now = self.now + PULSE.beat;
            living.iter().for_each(|(from, promised)| self.hear(*from, *promised, Body::Alive));
            self.node.handle(self.now, Input::Tick);
            while let Some(output) = self.node.poll() {
                if let Output::Send { message: Message { body: Body::Propose { view, .. }, .. }, .. } = output
                {
                    views.push(view);
                }
            }
        }
        views
    }
}

/// Whoever is in a view has agreed to it, or it was another life of the same node: that one's blocks are not here.
#[test]
fn node_that_never_agreed_to_a_view_is_no_member_of_it() {
    let mut first = First::new();
    first.hear(THREE, VIEW, Body::Alive);
    assert!(!first.node.is_member() && first.node.has_heard_of_a_tree());
    assert!(First::in_view().node.is_member());
}

#[test]
fn view_that_one_cannot_agree_to_since_it_promised_another_of_that_number_is_proposed_anew() {
    let mut first = First::in_view();
    let own = first.proposed(PULSE.dead * 2, &[(THREE, VIEW)]);
    assert!(own.iter().all(|view| *view == View { number: 6, by: ONE }) && !own.is_empty(), "{own:?}");
    let other = View { number: 6, by: TWO };
    let anew = first.proposed(PULSE.dead, &[(THREE, other)]);
    assert_eq!(anew.last(), Some(&View { number: 7, by: ONE }));
}

/// It takes part in no change until a view begins, and need not be the one that proposes it.
#[test]
fn member_that_promised_a_view_of_one_that_is_gone_gets_another_one() {
    let mut first = First::in_view();
    let other = View { number: 6, by: NodeId(4) };
    assert_eq!(first.proposed(PULSE.dead / 2, &[(TWO, VIEW), (THREE, other)]), []);
    let views = first.proposed(PULSE.dead * 2, &[(TWO, VIEW), (THREE, other)]);
    assert_eq!(views.first(), Some(&View { number: 7, by: ONE }));
}
