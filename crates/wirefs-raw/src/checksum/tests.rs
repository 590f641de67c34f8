use super::checksum;

/// The definition: sixteen bits at a time, in network byte order.
fn plain(bytes: &[u8]) -> [u8; 2] {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

#[test]
fn example_of_the_rfc_has_its_checksum() {
    // RFC 1071, section 3: the sum is ddf2, the checksum its complement.
    assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), [0x22, 0x0d]);
}

#[test]
fn every_length_agrees_with_the_definition() {
    let bytes: Vec<u8> = (0..2_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for length in 0..bytes.len() {
        assert_eq!(checksum(&bytes[..length]), plain(&bytes[..length]), "{length} bytes");
    }
    assert_eq!(checksum(&[0xff; 1_472]), plain(&[0xff; 1_472]), "all carries");
}

#[test]
fn message_with_its_checksum_sums_to_zero() {
    let mut message = vec![8, 0, 0, 0, 1, 2, 3, 4, 5];
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    assert_eq!(checksum(&message), [0, 0]);
}
