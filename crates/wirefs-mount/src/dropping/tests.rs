use super::*;
use std::sync::Arc;

#[test]
fn errands_are_done_in_order_and_none_stays_when_they_are_stopped() {
    let errands = Errands::default();
    let held = Arc::new(());
    for number in 0..3 {
        errands.push((number, Arc::clone(&held)));
    }
    assert_eq!(errands.next().map(|(number, _)| number), Some(0));
    errands.stop();
    assert!(errands.next().is_none());
    errands.push((3, Arc::clone(&held)));
    assert_eq!(Arc::strong_count(&held), 1, "who waits is let go of");
    assert!(errands.next().is_none());
}
