use super::*;

#[test]
fn pushed_packets_are_queued_in_order_until_the_batch_is_full() {
    let mut batch = PacketBatch::new(100);
    for number in 0..BATCH_PACKETS_MAX {
        let pushed = batch.push(|room| {
            assert!(room.len() >= 100);
            room[0] = number as u8;
            Some((1 + number % 100, EchoSequence(number as u16)))
        });
        assert!(pushed);
    }
    assert!(batch.is_full());
    assert!(!batch.push(|_| unreachable!("there is no room")));
    let mut ranges = std::array::from_fn(|_| 0..0);
    assert_eq!(batch.queued(&mut ranges), BATCH_PACKETS_MAX);
    assert_eq!(ranges[9].len(), ECHO_HEADER_BYTES + 10);
    assert_eq!(batch.arena()[ranges[9].start + ECHO_HEADER_BYTES], 9);
    batch.mark_sent(60);
    assert_eq!(batch.queued(&mut ranges), 4);
    assert_eq!(batch.arena()[ranges[0].start + ECHO_HEADER_BYTES], 60);
    batch.mark_sent(4);
    assert!(batch.is_sent());
}

#[test]
fn exchange_visits_each_packet_once_and_queues_the_selected_ones() {
    let mut batch = PacketBatch::new(50);
    let (arena, slot_bytes) = batch.slots();
    for slot in 0..3 {
        arena[slot * slot_bytes + MESSAGE_AT + ECHO_HEADER_BYTES] = slot as u8;
    }
    let waited = Duration::from_micros(3);
    batch.note(Some((MESSAGE_AT, ECHO_HEADER_BYTES + 5)), waited);
    batch.note(None, waited);
    batch.note(Some((MESSAGE_AT, ECHO_HEADER_BYTES)), waited);
    for _ in 0..2 {
        let mut looked_at = Vec::new();
        batch.for_each_arrived(|payload| looked_at.push(payload.len()));
        assert_eq!(looked_at, [5, 0]);
    }
    let mut seen = Vec::new();
    batch.exchange(|payload, waited| {
        seen.push((payload.to_vec(), waited));
        payload.first().map(|_| EchoSequence(7))
    });
    assert_eq!(seen, [(vec![0; 5], waited), (vec![], waited)]);
    batch.exchange(|_, _| unreachable!("all were shown"));
    batch.for_each_arrived(|_| unreachable!("all were taken"));
    let mut ranges = std::array::from_fn(|_| 0..0);
    assert_eq!(batch.queued(&mut ranges), 1);
    let mut written = 0;
    batch.write_headers(|message, sequence| {
        assert_eq!((message.len(), sequence), (13, EchoSequence(7)));
        message[0] = 8;
    });
    batch.write_headers(|_, _| written += 1);
    assert_eq!(written, 0, "a header is written once, also when sending takes several tries");
}

#[test]
fn message_too_short_for_its_header_is_not_shown() {
    let mut batch = PacketBatch::new(50);
    batch.note(Some((MESSAGE_AT, ECHO_HEADER_BYTES - 1)), Duration::ZERO);
    batch.exchange(|_, _| unreachable!("it has no payload"));
    assert!(batch.is_sent());
}
