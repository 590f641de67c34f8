//! Tests of recalls in transit.

use super::Delivery;
use crate::grantor::held_leases::RecallPosition;
use crate::grantor::{GrantorOutput, HolderKey};
use crate::recall::LeaseItem;
use std::collections::VecDeque;
use wirefs_op::{FileId, Time};

const A: HolderKey = HolderKey(1);
const NOW: Time = Time(5);

fn item(ino: u64) -> LeaseItem {
    LeaseItem::whole(FileId { fs: 0, ino, generation: 1 })
}

#[test]
fn nothing_joins_a_recall_of_everything() {
    let mut delivery = Delivery::default();
    delivery.push(NOW, NOW, item(1), RecallPosition::default());
    delivery.push_everything(NOW, NOW, RecallPosition::default());
    delivery.push(NOW, NOW, item(2), RecallPosition::default());
    delivery.push(NOW, NOW, item(3), RecallPosition::default());
    let mut outputs = VecDeque::new();
    delivery.flush(A, &mut outputs);
    let items = outputs.into_iter().map(|output| match output {
        GrantorOutput::Recall { items, .. } => items,
        other => panic!("{other:?}"),
    });
    assert_eq!(items.collect::<Vec<_>>(), [vec![item(1)], vec![], vec![item(2), item(3)]]);
    assert_eq!((delivery.items(), delivery.is_empty()), (3, false));
    assert_eq!(delivery.take_unanswered().len(), 3);
    assert_eq!((delivery.items(), delivery.is_empty()), (0, true));
}
