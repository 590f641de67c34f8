use super::*;

#[test]
fn crc32c_sums_are_those_of_rfc_3720() {
    // Appendix B.4.
    let sum = |bytes: &[u8]| u32::from_le_bytes(Crc32c::of(&[bytes]));
    assert_eq!(sum(&[0; 32]), 0x8a91_36aa);
    assert_eq!(sum(&[0xff; 32]), 0x62a8_ab43);
    let up: Vec<u8> = (0..32).collect();
    assert_eq!(sum(&up), 0x46dd_794e);
    assert_eq!(sum(b"123456789"), 0xe306_9283);
}

#[test]
fn parts_may_be_cut_anywhere() {
    let all: Vec<u8> = (0..100_u8).map(|byte| byte.wrapping_mul(7)).collect();
    for position in 0..all.len() {
        let (front, back) = all.split_at(position);
        assert_eq!(Crc32c::of(&[front, back]), Crc32c::of(&[&all]));
        assert_eq!(HalfSha256::of(&[front, back]), HalfSha256::of(&[&all]));
    }
}

#[test]
fn name_is_half_of_a_sha256() {
    // FIPS 180-2, B.1.
    assert_eq!(hash_name(&[b"a", b"bc"]), "ba7816bf8f01cfea414140de5dae2223");
}
