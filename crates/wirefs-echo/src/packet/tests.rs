use super::*;

const CLEAR: ClearHeader =
    ClearHeader { origin: Origin(0x0102_0304), host: HostId(5), sequence: PacketSequence(0x0a_0b0c_0d0e) };
const CLEAR_ENCODED: [u8; CLEAR_BYTES] = [1, 2, 3, 4, 5, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e];

fn head() -> (SealedHeader, Vec<u8>) {
    let id = EchoBlockId::from(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    let piece = Piece { id, lane: LaneId(3), block_bytes: 0x01_0203 };
    let mut encoded: Vec<u8> = (0..16).map(|digit| digit * 0x11).collect();
    encoded.extend([0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 3, 1, 2, 3]);
    (SealedHeader { sent: Time(0x1122_3344), payload: PacketPayload::Piece(piece) }, encoded)
}

#[test]
fn clear_header_has_golden_bytes() {
    assert_eq!(CLEAR.encode(), CLEAR_ENCODED);
    assert_eq!(ClearHeader::decode(&CLEAR_ENCODED), Some(CLEAR));
    assert_eq!(ClearHeader::decode(&CLEAR_ENCODED[..11]), None);
}

#[test]
fn sealed_header_has_golden_bytes() {
    let (head, encoded) = head();
    assert_eq!(head.encode(), encoded[..]);
    assert_eq!(SealedHeader::decode(&encoded), Some(head));
    assert_eq!(SealedHeader::decode(&encoded[..27]), None);
}

#[test]
fn probe_is_lane_255_and_invalid_lanes_are_rejected() {
    let probes = SealedHeader { sent: Time(9), payload: PacketPayload::Probe };
    assert_eq!(probes.encode()[24..], [255, 0, 0, 0]);
    assert_eq!(SealedHeader::decode(&probes.encode()), Some(probes));
    let (_, mut encoded) = head();
    encoded[24] = LANES_MAX as u8;
    assert_eq!(SealedHeader::decode(&encoded), None);
}

#[test]
fn piece_is_between_header_and_tag() {
    let mut packet = vec![0; OVERHEAD_BYTES + 5];
    body_mut(&mut packet).copy_from_slice(b"piece");
    assert_eq!(packet[40..45], *b"piece");
    assert_eq!(body(&packet), b"piece");
    assert!(body(&packet[..OVERHEAD_BYTES - 1]).is_empty());
}
