use super::*;

#[test]
fn request_has_golden_bytes() {
    let mut message = *b"........ab";
    write_request(&mut message, Family::V4, EchoIdent(0x1234), EchoSequence(0xfffe));
    // 0800 + 1234 + fffe + 6162 = 17b94, folded 7b95, complement 846a.
    assert_eq!(message, [8, 0, 0x84, 0x6a, 0x12, 0x34, 0xff, 0xfe, b'a', b'b']);
    assert_eq!(checksum(&message), [0, 0]);
    write_request(&mut message, Family::V6, EchoIdent(0x1234), EchoSequence(0xfffe));
    assert_eq!(message[..8], [128, 0, 0, 0, 0x12, 0x34, 0xff, 0xfe], "the kernel adds the checksum");
}

#[test]
fn only_replies_with_the_own_identifier_are_accepted() {
    let ident = EchoIdent(0x1234);
    assert!(is_reply(&[0, 0, 9, 9, 0x12, 0x34, 0, 1], Family::V4, ident));
    assert!(is_reply(&[129, 0, 9, 9, 0x12, 0x34, 0, 1, 7], Family::V6, ident));
    assert!(!is_reply(&[8, 0, 9, 9, 0x12, 0x34, 0, 1], Family::V4, ident), "a request");
    assert!(!is_reply(&[129, 0, 9, 9, 0x12, 0x34, 0, 1], Family::V4, ident), "the other family");
    assert!(!is_reply(&[0, 1, 9, 9, 0x12, 0x34, 0, 1], Family::V4, ident), "a code");
    assert!(!is_reply(&[0, 0, 9, 9, 0x12, 0x35, 0, 1], Family::V4, ident), "another's");
    assert!(!is_reply(&[0, 0, 9, 9, 0x12, 0x34, 0], Family::V4, ident), "cut short");
}
