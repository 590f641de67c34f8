use super::TreePath;
use crate::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX};
use bytes::Bytes;

fn parse(bytes: &[u8]) -> Option<TreePath> {
    TreePath::from_bytes(Bytes::copy_from_slice(bytes))
}

#[test]
fn only_clean_paths_are_accepted() {
    let long_name = vec![b'n'; NAME_BYTES_MAX];
    let clean: [&[u8]; 6] = [b"", b"a", b"a/b", b"...", b"\xff/ ", &long_name];
    for bytes in clean {
        assert_eq!(parse(bytes).unwrap().as_bytes(), bytes);
    }
    let longer_name = vec![b'n'; NAME_BYTES_MAX + 1];
    let dirty: [&[u8]; 10] =
        [b"/", b"/a", b"a/", b"a//b", b".", b"..", b"a/..", b"../a", b"a\0b", &longer_name];
    for bytes in dirty {
        assert_eq!(parse(bytes), None, "{}", bytes.escape_ascii());
    }
    let longest = b"aa/".repeat(PATH_BYTES_MAX / 3);
    assert!(parse(&[&longest[..], b"aa"].concat()).is_some());
    assert!(parse(&[&longest[..], b"aaa"].concat()).is_none());
}

#[test]
fn splitting_and_joining_are_inverse() {
    for bytes in [&b"a"[..], b"a/b", b"a/b/c"] {
        let path = parse(bytes).unwrap();
        let (dir, name) = path.split_last().unwrap();
        assert_eq!(dir.join(name), Some(path.clone()));
        assert_eq!(TreePath::from_names(path.names()), Some(path.clone()));
    }
    assert_eq!(TreePath::root().split_last(), None);
    assert_eq!(TreePath::root().join(b".."), None);
}
