use super::*;

#[test]
fn each_packet_is_taken_once_in_any_order() {
    let mut window = Window::new(128);
    (0..100).for_each(|number| window.send(Sequence(number)));
    for number in (0..100).rev() {
        assert!(window.take(Sequence(number)));
        assert!(!window.take(Sequence(number)));
    }
    assert!(!window.take(Sequence(100)), "never sent");
}

#[test]
fn packet_older_than_the_window_is_refused_though_its_bit_stands_for_another() {
    let mut window = Window::new(64);
    (0..65).for_each(|number| window.send(Sequence(number)));
    assert!(!window.take(Sequence(0)));
    assert!(window.take(Sequence(64)));
    assert!(window.take(Sequence(1)));
    assert_eq!(window.memory_bytes(), 8);
}
