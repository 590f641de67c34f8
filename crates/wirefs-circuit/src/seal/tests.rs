use ring::hkdf::Salt;

use super::*;

const HERE: CardAddress = CardAddress([1; 6]);
const THERE: CardAddress = CardAddress([2; 6]);

fn keys(path: u8) -> PathKeys {
    let agreed = Salt::new(HKDF_SHA256, b"test").extract(b"secret");
    TrafficSecret::derive(&agreed, b"there").unwrap().path(path)
}

fn sealed(packet_number: u64) -> Vec<u8> {
    let mut packet = [&[0x80; SEALED_HEADER_BYTES][..], b"content", &[0; TAG_BYTES]].concat();
    assert!(keys(0).seal(packet_number, HERE, THERE, &mut packet));
    packet
}

#[test]
fn sealed_packet_opens_only_with_its_packet_number_path_and_cards() {
    for packet_number in [0, 1, (1 << KEY_PHASE_BITS) - 1, 1 << KEY_PHASE_BITS, 9 << 40] {
        let packet = sealed(packet_number);
        assert!(!packet.windows(7).any(|window| window == b"content"));
        let open = |path, packet_number, from, to| {
            keys(path).open(packet_number, from, to, &mut packet.clone()).map(<[u8]>::to_vec)
        };
        assert_eq!(open(0, packet_number, HERE, THERE).as_deref(), Some(&b"content"[..]));
        assert_eq!(open(1, packet_number, HERE, THERE), None);
        assert_eq!(open(0, packet_number + 1, HERE, THERE), None);
        assert_eq!(open(0, packet_number + (1 << KEY_PHASE_BITS), HERE, THERE), None);
        assert_eq!(open(0, packet_number, THERE, THERE), None);
        assert_eq!(open(0, packet_number, HERE, HERE), None);
    }
}

#[test]
fn every_flipped_bit_is_rejected() {
    let packet = sealed(5);
    for bit in 0..packet.len() * 8 {
        let mut damaged = packet.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(keys(0).open(5, HERE, THERE, &mut damaged), None, "{bit}");
    }
    for bytes in 0..packet.len() {
        assert_eq!(keys(0).open(5, HERE, THERE, &mut packet[..bytes].to_vec()), None);
    }
}

#[test]
fn forged_packet_numbers_do_not_evict_cached_keys() {
    let mut keys = keys(0);
    assert!(keys.open(5, HERE, THERE, &mut sealed(5)).is_some());
    for key_phase in 1..100 {
        assert!(keys.open(key_phase << KEY_PHASE_BITS, HERE, THERE, &mut sealed(5)).is_none());
    }
    assert_eq!(keys.held.iter().map(|(key_phase, _)| *key_phase).collect::<Vec<_>>(), [0]);
    for key_phase in 1..5u64 {
        assert!(
            keys.open(key_phase << KEY_PHASE_BITS, HERE, THERE, &mut sealed(key_phase << KEY_PHASE_BITS))
                .is_some()
        );
    }
    assert_eq!(keys.held.iter().map(|(key_phase, _)| *key_phase).collect::<Vec<_>>(), [4, 3]);
}
