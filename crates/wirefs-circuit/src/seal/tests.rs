use ring::hkdf::Salt;

use super::*;

const HERE: Address = Address([1; 6]);
const THERE: Address = Address([2; 6]);

fn keys(path: u8) -> PathKeys {
    let agreed = Salt::new(HKDF_SHA256, b"test").extract(b"secret");
    Secret::of(&agreed, b"there").unwrap().path(path)
}

fn sealed(counter: u64) -> Vec<u8> {
    let mut packet = [&[0x80; SEALED_HEADER_BYTES][..], b"content", &[0; TAG_BYTES]].concat();
    assert!(keys(0).seal(counter, HERE, THERE, &mut packet));
    packet
}

#[test]
fn sealed_packet_opens_to_its_content_with_its_own_counter_path_and_cards_only() {
    for counter in [0, 1, (1 << EPOCH_BITS) - 1, 1 << EPOCH_BITS, 9 << 40] {
        let packet = sealed(counter);
        assert!(!packet.windows(7).any(|window| window == b"content"));
        let open = |path, counter, from, to| {
            keys(path).open(counter, from, to, &mut packet.clone()).map(<[u8]>::to_vec)
        };
        assert_eq!(open(0, counter, HERE, THERE).as_deref(), Some(&b"content"[..]));
        assert_eq!(open(1, counter, HERE, THERE), None);
        assert_eq!(open(0, counter + 1, HERE, THERE), None);
        assert_eq!(open(0, counter + (1 << EPOCH_BITS), HERE, THERE), None);
        assert_eq!(open(0, counter, THERE, THERE), None);
        assert_eq!(open(0, counter, HERE, HERE), None);
    }
}

#[test]
fn each_bit_counts() {
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
fn forged_counters_do_not_push_the_keys_in_use_out() {
    let mut keys = keys(0);
    assert!(keys.open(5, HERE, THERE, &mut sealed(5)).is_some());
    for epoch in 1..100 {
        assert!(keys.open(epoch << EPOCH_BITS, HERE, THERE, &mut sealed(5)).is_none());
    }
    assert_eq!(keys.held.iter().map(|(epoch, _)| *epoch).collect::<Vec<_>>(), [0]);
    for epoch in 1..5u64 {
        assert!(keys.open(epoch << EPOCH_BITS, HERE, THERE, &mut sealed(epoch << EPOCH_BITS)).is_some());
    }
    assert_eq!(keys.held.iter().map(|(epoch, _)| *epoch).collect::<Vec<_>>(), [4, 3]);
}
