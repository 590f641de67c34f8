use super::*;

const CLEAR: Clear =
    Clear { origin: Origin(0x0102_0304), host: HostId(5), sequence: Sequence(0x0a_0b0c_0d0e) };
const CLEAR_ENCODED: [u8; CLEAR_BYTES] = [1, 2, 3, 4, 5, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e];

fn head() -> (Head, Vec<u8>) {
    let id = BlockId::from(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    let piece = Piece { id, lane: LaneId(3), block_bytes: 0x01_0203 };
    let mut encoded: Vec<u8> = (0..16).map(|digit| digit * 0x11).collect();
    encoded.extend([0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 3, 1, 2, 3]);
    (Head { sent: Time(0x1122_3344), cargo: Cargo::Piece(piece) }, encoded)
}

#[test]
fn bytes_in_the_clear_are_these() {
    assert_eq!(CLEAR.encode(), CLEAR_ENCODED);
    assert_eq!(Clear::decode(&CLEAR_ENCODED), Some(CLEAR));
    assert_eq!(Clear::decode(&CLEAR_ENCODED[..11]), None);
}

#[test]
fn sealed_head_is_these_bytes() {
    let (head, encoded) = head();
    assert_eq!(head.encode(), encoded[..]);
    assert_eq!(Head::decode(&encoded), Some(head));
    assert_eq!(Head::decode(&encoded[..27]), None);
}

#[test]
fn ballast_is_lane_255_and_lanes_that_cannot_be_are_refused() {
    let ballast = Head { sent: Time(9), cargo: Cargo::Ballast };
    assert_eq!(ballast.encode()[24..], [255, 0, 0, 0]);
    assert_eq!(Head::decode(&ballast.encode()), Some(ballast));
    let (_, mut encoded) = head();
    encoded[24] = LANES_MAX as u8;
    assert_eq!(Head::decode(&encoded), None);
}

#[test]
fn piece_lies_between_head_and_tag() {
    let mut packet = vec![0; OVERHEAD_BYTES + 5];
    body_mut(&mut packet).copy_from_slice(b"piece");
    assert_eq!(packet[40..45], *b"piece");
    assert_eq!(body(&packet), b"piece");
    assert!(body(&packet[..OVERHEAD_BYTES - 1]).is_empty());
}
