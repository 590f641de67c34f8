use super::*;

fn message(size: usize) -> Vec<u8> {
    let mut bytes = u32::try_from(size).unwrap().to_le_bytes().to_vec();
    bytes.extend((4..size).map(|place| (place % 251) as u8));
    bytes
}

/// Feeds `stream` in pieces of at most `piece` bytes, as a carrier does, and returns the bodies.
fn bodies(stream: &[u8], piece: usize) -> Vec<Bytes> {
    let mut assembly = Assembly::new();
    let mut found = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let room = assembly.room();
        let room_bytes = room.len();
        let (now, later) = rest.split_at(room_bytes.min(piece).min(rest.len()));
        room[..now.len()].copy_from_slice(now);
        assembly.filled(now.len());
        assembly.record_read(now.len(), room_bytes);
        rest = later;
        while let Some(body) = assembly.next_body().unwrap() {
            found.push(body);
        }
    }
    assert!(assembly.end().is_ok());
    found
}

#[test]
fn bodies_do_not_depend_on_read_boundaries() {
    let sizes = [7, 8, 100, 4096, 4097, 20_000, MESSAGE_BYTES_MAX, 7, MESSAGE_BYTES_MAX, 9];
    let stream: Vec<u8> = sizes.iter().flat_map(|&size| message(size)).collect();
    for piece in [1, 3, 1000, 65_536, usize::MAX] {
        let found = bodies(&stream, piece);
        assert_eq!(found.len(), sizes.len());
        for (body, &size) in found.iter().zip(&sizes) {
            assert_eq!(body[..], message(size)[4..], "pieces of {piece}, message of {size}");
        }
    }
}

#[test]
fn invalid_length_is_a_permanent_fault() {
    for size in [0u32, 3, 6, MESSAGE_BYTES_MAX as u32 + 1, u32::MAX] {
        let mut assembly = Assembly::new();
        assembly.append(&size.to_le_bytes());
        for _ in 0..2 {
            assert_eq!(assembly.next_body().unwrap_err().size_bytes, size);
        }
        assert!(assembly.has_body(), "the fault can be read");
        assert!(assembly.room().len() <= READ_BYTES_MIN, "no buffer for an invalid message");
    }
}

#[test]
fn small_bodies_do_not_hold_the_receive_buffer() {
    let mut assembly = Assembly::new();
    let held: Vec<Bytes> = (0..1000)
        .map(|_| {
            assembly.room();
            assembly.append(&message(100));
            assembly.next_body().unwrap().unwrap()
        })
        .collect();
    assert!(held.iter().all(|body| body.len() == 96));
    assert!(matches!(assembly.buffer, Buffer::Small { .. }), "the one small buffer is used again");
    assert_eq!(assembly.room().len(), READ_BYTES_MIN);
}

#[test]
fn the_buffer_follows_the_traffic_and_stays_bounded() {
    let mut assembly = Assembly::new();
    for _ in 0..20 {
        let room_bytes = assembly.room().len();
        assert!(room_bytes <= READ_BYTES_MAX);
        assembly.record_read(room_bytes, room_bytes);
    }
    assert_eq!(assembly.room().len(), READ_BYTES_MAX);
    assert!(matches!(assembly.buffer, Buffer::Slab(_)));
    for _ in 0..20 {
        assembly.record_read(10, READ_BYTES_MAX);
    }
    assert_eq!(assembly.room().len(), READ_BYTES_MIN);
    assert!(matches!(assembly.buffer, Buffer::Small { .. }), "an idle carrier gives its slab back");
}

#[test]
fn a_slab_with_bodies_that_are_held_is_filled_to_its_end() {
    let mut assembly = Assembly::new();
    let large = message(MESSAGE_BYTES_MAX);
    let take = |assembly: &mut Assembly| {
        assembly.append(&large);
        assembly.next_body().unwrap().unwrap()
    };
    let first = take(&mut assembly);
    for _ in 0..20 {
        assembly.record_read(10, READ_BYTES_MAX);
        assembly.room();
    }
    let second = take(&mut assembly);
    let distance = second.as_ptr().addr() - first.as_ptr().addr();
    assert_eq!(distance, MESSAGE_BYTES_MAX, "the second lies after the first, even after a quiet time");
    drop(second);
    drop(first);
    assembly.room();
    assert!(matches!(assembly.buffer, Buffer::Small { .. }));
}

#[test]
fn end_within_a_message_is_an_error() {
    let mut assembly = Assembly::new();
    assert!(assembly.end().unwrap().is_none());
    assembly.append(&message(50)[..20]);
    assert!(matches!(assembly.end(), Err(CarrierLost::Cut { received_bytes: 20 })));
}
