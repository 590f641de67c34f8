use super::*;

#[test]
fn each_packet_is_accepted_once_in_any_order() {
    let mut window = PacketWindow::new(128);
    (0..100).for_each(|number| window.send(PacketSequence(number)));
    for number in (0..100).rev() {
        assert!(window.take(PacketSequence(number)));
        assert!(!window.take(PacketSequence(number)));
    }
    assert!(!window.take(PacketSequence(100)), "never sent");
}

#[test]
fn packet_older_than_the_window_is_rejected() {
    let mut window = PacketWindow::new(64);
    (0..65).for_each(|number| window.send(PacketSequence(number)));
    assert!(!window.take(PacketSequence(0)));
    assert!(window.take(PacketSequence(64)));
    assert!(window.take(PacketSequence(1)));
    assert_eq!(window.memory_bytes(), 8);
}
