use super::*;
use bytes::Bytes;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::Target;
use wirefs_op::wire::Data;
use wirefs_op::{SetStat, TreePath};

fn put(offset: u64, data: Vec<u8>) -> Tput {
    Tput {
        target: Target::at(TreePath::root()),
        mode: PutMode::DATA,
        create: None,
        set: SetStat::default(),
        offset,
        data: Data(Bytes::from(data)),
    }
}

/// A header as SQLite writes it, with this beginning.
fn header(magic: [u8; 8], page: u32) -> Vec<u8> {
    let mut header = magic.to_vec();
    header.extend([0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 2]);
    header.extend(512_u32.to_be_bytes());
    header.extend(page.to_be_bytes());
    header.resize(512, 0);
    header
}

#[test]
fn a_journal_is_named_after_its_database() {
    assert!(is_journal(b"db-journal"));
    for name in [&b"-journal"[..], b"db-wal", b"db-mj1234ABCD", b"journal", b"db-journal.bak"] {
        assert!(!is_journal(name));
    }
}

#[test]
fn a_transaction_begins_with_a_header() {
    assert!(begins(&put(0, header([0; 8], 4096)), false));
    assert!(begins(&put(0, header(MAGIC, 65_536)), false));
    assert!(!begins(&put(0, header([1; 8], 4096)), true));
    assert!(!begins(&put(0, header(MAGIC, 4095)), true));
    assert!(!begins(&put(0, vec![0; 512]), true));
    assert!(!begins(&put(512, vec![7; 4096]), false));
}

#[test]
fn what_follows_the_header_and_the_count_of_pages_leave_it() {
    let mut count = MAGIC.to_vec();
    count.extend(3_u32.to_be_bytes());
    assert!(begins(&put(0, count.clone()), true));
    assert!(!begins(&put(0, count), false));
    assert!(begins(&put(512, vec![7; 4096]), true));
}

#[test]
fn a_header_that_is_overwritten_ends_the_transaction() {
    assert!(!begins(&put(0, vec![0; 28]), true));
    assert!(!begins(&put(0, vec![0; 1]), true));
    assert!(!begins(&put(8, vec![0; 4]), true));
    assert!(!begins(&put(0, Vec::new()), true));
}
