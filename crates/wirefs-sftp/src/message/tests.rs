use super::*;

#[test]
fn requests_have_the_bytes_of_the_draft() {
    let open = Request::Open { path: b"/a", flags: open::READ, attributes: Attributes::mode(0o644) };
    let bytes = open.encode(7);
    assert_eq!(
        bytes,
        [0, 0, 0, 23, 3, 0, 0, 0, 7, 0, 0, 0, 2, b'/', b'a', 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 1, 0o244]
    );
    assert_eq!(init(), [0, 0, 0, 5, 1, 0, 0, 0, 3]);
    let link = Request::Symlink { target: b"t", path: b"l" }.encode(1);
    assert_eq!(link[9..], [0, 0, 0, 1, b't', 0, 0, 0, 1, b'l'], "OpenSSH's order");
}

#[test]
fn replies_are_decoded() {
    let status = Bytes::from_static(&[101, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(Reply::decode(status), Ok((9, Reply::Status(Status::NoSuchFile))));
    let attributes = Bytes::from_static(&[105, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 2]);
    let times = Attributes { times: Some((1, 2)), ..Attributes::default() };
    assert_eq!(Reply::decode(attributes), Ok((1, Reply::Attributes(times))));
    let hello = Bytes::from_static(&[2, 0, 0, 0, 3, 0, 0, 0, 1, b'x', 0, 0, 0, 1, b'1']);
    assert_eq!(version(hello), Ok(vec![Bytes::from_static(b"x")]));
}

#[test]
fn no_prefix_of_a_reply_and_no_count_is_believed() {
    let mut names = vec![104, 0, 0, 0, 1, 0, 0, 0, 2];
    for _ in 0..2 {
        names.extend([0, 0, 0, 1, b'n', 0, 0, 0, 1, b'l', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5]);
    }
    assert!(
        matches!(Reply::decode(Bytes::from(names.clone())), Ok((1, Reply::Names(found))) if found.len() == 2)
    );
    for end in 0..names.len() {
        assert_eq!(Reply::decode(Bytes::copy_from_slice(&names[..end])), Err(Malformed), "{end}");
    }
    names[5..9].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(Reply::decode(Bytes::from(names)), Err(Malformed));
}
