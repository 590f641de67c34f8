//! Golden bytes of a little-endian Linux.

use super::*;
use wirefs_client::call::TreeNodeId;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_node_is_invalidated_from_an_offset_on() {
    let what = Invalidate::Node { node: TreeNodeId(0x22), offset: -1, length: 4096 };
    let expected = "28000000 02000000 0000000000000000 2200000000000000 ffffffffffffffff 0010000000000000";
    assert_eq!(hex(&encode(&what, true)), expected.replace(' ', ""));
}

#[test]
fn a_listing_is_all_pages_of_its_directory() {
    let pages = Invalidate::Node { node: TreeNodeId(5), offset: 0, length: 0 };
    assert_eq!(encode(&Invalidate::Listing { node: TreeNodeId(5) }, true), encode(&pages, true));
}

#[test]
fn a_dropped_name_is_terminated() {
    let what = Invalidate::Entry { parent: TreeNodeId(1), name: b"abc".to_vec(), is_directory: false };
    let expected = "24000000 03000000 0000000000000000 0100000000000000 03000000 00000000 61626300";
    assert_eq!(hex(&encode(&what, true)), expected.replace(' ', ""));
}

#[test]
fn a_name_that_expires_has_a_flag() {
    let what = Invalidate::Entry { parent: TreeNodeId(1), name: b"abc".to_vec(), is_directory: false };
    let expected = "24000000 03000000 0000000000000000 0100000000000000 03000000 01000000 61626300";
    assert_eq!(hex(&encode(&what, false)), expected.replace(' ', ""));
}

#[test]
fn invalidations_after_the_end_succeed() {
    let notifier = Notifier::new(Weak::new());
    let what = Invalidate::Entry { parent: TreeNodeId(1), name: b"abc".to_vec(), is_directory: false };
    assert!(notifier.invalidate(&what).is_ok());
    assert!(!notifier.invalidate_all_names().expect("no error"));
    assert!(notifier.expire_directories(&[TreeNodeId(1)], Instant::now()).expect("no error").is_zero());
}

#[test]
fn all_names_are_invalidated_by_a_header_alone() {
    assert_eq!(hex(&message(notify::INC_EPOCH, |_| {})), "10000000080000000000000000000000");
}

#[test]
fn an_inode_is_evicted_by_its_node_id() {
    let expected = "28000000 09000000 0000000000000000 01000000 00000000 0000000000000000 2200000000000000";
    assert_eq!(hex(&encode_prune(TreeNodeId(0x22))), expected.replace(' ', ""));
}
