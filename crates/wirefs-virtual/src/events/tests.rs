use super::*;

#[test]
fn events_come_in_the_order_of_their_times_and_of_their_addition() {
    let mut events = EventQueue::default();
    for (at, event) in [(5, "c"), (3, "a"), (5, "d"), (4, "b")] {
        events.push(Time(at), event);
    }
    assert_eq!(events.iter().map(|(_, event)| *event).collect::<String>(), "abcd");
    assert_eq!((events.pop(), events.next_at()), (Some((Time(3), "a")), Some(Time(4))));
    assert_eq!((events.pop_until(Time(4)), events.pop_until(Time(4))), (Some((Time(4), "b")), None));
    events.retain(|event| *event != "c");
    assert_eq!(events.pop(), Some((Time(5), "d")));
}
