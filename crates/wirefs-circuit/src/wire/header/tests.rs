use super::*;

#[test]
fn packet_kinds_round_trip_and_others_are_rejected() {
    let group = GroupId { slot: 7, generation: 0x1234 };
    let kinds = [Kind::Hello, Kind::Cookie, Kind::Reply, Kind::Finish, Kind::Sealed { path: 15 }];
    let bytes: Vec<[u8; 4]> = kinds.iter().map(|kind| encode(*kind, group)).collect();
    let golden = [0x11, 0x21, 0x31, 0x41, 0x8F].map(|kind| [kind, 7, 0x34, 0x12]);
    assert_eq!(bytes, golden);
    for (kind, bytes) in kinds.iter().zip(&bytes) {
        assert_eq!(decode(bytes), Some((*kind, group)));
    }
    let known = (0..=255).filter(|byte| decode(&[*byte, 0, 0, 0]).is_some()).count();
    assert_eq!(known, 4 + 16);
    assert_eq!(decode(&[0x11, 7, 0x34]), None);
}

#[test]
fn decoded_packet_number_is_closest_to_the_expected_one() {
    for (expected, whole) in [
        (0, 0),
        (0, 1 << 20),
        (5, 3),
        (1 << 32, (1 << 32) - 1),
        ((1 << 32) - 1, (1 << 32) + 7),
        ((3 << 32) + 5, (3 << 32) - 900),
        ((3 << 32) - 5, (3 << 32) + 900),
    ] {
        assert_eq!(decode_packet_number(expected, whole as u32), whole, "{expected} {whole}");
    }
}
