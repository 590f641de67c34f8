use super::*;
use crate::block::EchoBlockId;
use crate::packet::{self, LaneId, Piece};

const HOST: HostId = HostId(2);
const ORIGIN: Origin = Origin(0x0102_0304);
const CIPHERS: [Cipher; 3] = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];

fn sealer(cipher: Cipher) -> Sealer {
    Sealer::new(cipher, &EchoKey([7; 32]), ORIGIN).unwrap()
}

fn payload() -> PacketPayload {
    PacketPayload::Piece(Piece { id: EchoBlockId::from(9), lane: LaneId(0), block_bytes: 5 })
}

fn sealed(cipher: Cipher, sequence: u64) -> Vec<u8> {
    let mut bytes = vec![0; OVERHEAD_BYTES + 5];
    packet::body_mut(&mut bytes).copy_from_slice(b"piece");
    assert!(sealer(cipher).seal(HOST, PacketSequence(sequence), Time(1_000), payload(), &mut bytes));
    bytes
}

#[test]
fn sealed_packet_opens_to_the_same_contents() {
    for cipher in CIPHERS {
        let mut bytes = sealed(cipher, 77);
        let opened = sealer(cipher).open(HOST, &mut bytes);
        assert_eq!(opened, Ok((PacketSequence(77), SealedHeader { sent: Time(1_000), payload: payload() })));
        assert_eq!(packet::body(&bytes), b"piece");
    }
}

#[test]
fn sealed_packet_has_golden_bytes() {
    let bytes = sealed(Cipher::Aes128Gcm, 77);
    assert_eq!(bytes[..12], [1, 2, 3, 4, 2, 0, 0, 0, 0, 0, 0, 77]);
    let sealed: String = bytes[12..].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sealed, GOLDEN);
}

/// Produced by this code, to detect a change of the format; the primitives are the library's.
const GOLDEN: &str =
    "91e64afd1ecc50f5ff0f55ec31415f21cc2d2163f0eac814a1b178cc695fa6bf45c6c47295e194e5cd9051cd992da14ecf";

#[test]
fn every_changed_bit_and_every_truncation_is_detected() {
    for cipher in CIPHERS {
        let good = sealed(cipher, 77);
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let fault = sealer(cipher).open(HOST, &mut bad).unwrap_err();
            let expected = match bit / 8 {
                0..4 => PacketFault::Foreign,
                4 => PacketFault::Misplaced,
                _ => PacketFault::Forged,
            };
            assert_eq!(fault, expected, "bit {bit}");
        }
        for length in 0..good.len() {
            let fault = sealer(cipher).open(HOST, &mut good[..length].to_vec()).unwrap_err();
            let expected = if length < OVERHEAD_BYTES { PacketFault::TooShort } else { PacketFault::Forged };
            assert_eq!(fault, expected, "{length} bytes");
        }
    }
}

#[test]
fn packet_of_another_host_origin_or_key_is_rejected() {
    let good = sealed(Cipher::Aes128Gcm, 77);
    let other_host = sealer(Cipher::Aes128Gcm).open(HostId(3), &mut good.clone());
    assert_eq!(other_host.unwrap_err(), PacketFault::Misplaced);
    let other_origin = Sealer::new(Cipher::Aes128Gcm, &EchoKey([7; 32]), Origin(1)).unwrap();
    assert_eq!(other_origin.open(HOST, &mut good.clone()).unwrap_err(), PacketFault::Foreign);
    let other_key = Sealer::new(Cipher::Aes128Gcm, &EchoKey([8; 32]), ORIGIN).unwrap();
    assert_eq!(other_key.open(HOST, &mut good.clone()).unwrap_err(), PacketFault::Forged);
}

#[test]
fn packets_are_opaque_and_differ_in_each_cycle() {
    let (one, next) = (sealed(Cipher::Aes128Gcm, 1), sealed(Cipher::Aes128Gcm, 2));
    assert!(!one.windows(5).any(|window| window == b"piece"));
    let equal = one[12..].iter().zip(&next[12..]).filter(|(a, b)| a == b).count();
    assert!(equal < 8, "{equal} of 49 bytes are equal");
}

#[test]
fn debug_output_hides_the_key() {
    assert_eq!(format!("{:?}", EchoKey([7; 32])), "Key(secret)");
}
