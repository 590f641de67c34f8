use super::*;
use std::sync::Arc;

#[test]
fn tasks_are_taken_in_order_and_dropped_by_a_stop() {
    let queue = TaskQueue::default();
    let held = Arc::new(());
    for number in 0..3 {
        queue.push((number, Arc::clone(&held)));
    }
    assert_eq!(queue.next().map(|(number, _)| number), Some(0));
    queue.stop();
    assert!(queue.next().is_none());
    queue.push((3, Arc::clone(&held)));
    assert_eq!(Arc::strong_count(&held), 1, "waiting tasks are dropped");
    assert!(queue.next().is_none());
}
