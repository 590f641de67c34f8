//! The kernel drops no packet that fits the requested receive buffer.

use wirefs_raw::{EchoSequence, PacketBatch, charge_bytes};

use crate::site::{IDENT, LOOPBACKS, on_a_host, open, receive_all, send};

#[test]
fn all_packets_of_the_reserved_room_arrive() {
    on_a_host("room", || {
        for host in LOOPBACKS {
            for (packets, bytes) in
                [(500, 1_472), (500, 64), (200, 300), (200, 4_000), (100, 8_972), (50, 16_100), (20, 65_000)]
            {
                let socket = open(host, IDENT);
                assert!(socket.reserve(packets, bytes).unwrap() >= packets);
                let payload = vec![5; bytes];
                send(&socket, vec![payload.as_slice(); packets]);
                let memory = socket.buffer_usage().unwrap();
                assert_eq!(memory.dropped, 0, "{packets} of {bytes} bytes from {host}");
                assert!(memory.held_bytes <= packets * charge_bytes(bytes), "{bytes} bytes: {memory:?}");
                assert_eq!(receive_all(&socket).len(), packets);
            }
        }
    });
}

#[test]
fn default_buffer_drops_most_of_a_thousand_packets() {
    on_a_host("default", || {
        let socket = open(LOOPBACKS[0], IDENT);
        let mut batch = PacketBatch::new(1_472);
        for number in 0..1_000 {
            batch.clear();
            batch.push(|room| Some((room.len().min(1_472), EchoSequence(number))));
            socket.send(&mut batch).unwrap();
        }
        let held = receive_all(&socket).len();
        assert!(held < 200, "{held}");
        // Some kernels count each twice.
        let dropped = socket.buffer_usage().unwrap().dropped as usize;
        assert!((1_000 - held..=2 * (1_000 - held)).contains(&dropped), "{dropped}");
    });
}
