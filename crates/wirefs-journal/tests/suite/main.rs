//! The example of a segment in `docs/FORMAT.md`: decoded, and encoded again to the same bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails panics")]

use bytes::Bytes;
use wirefs_journal::entry::{self, Entry, EntryKind, HEAD_BYTES, Record, Spot};
use wirefs_journal::{ChangeOutcome, Header, Tail, scan};
use wirefs_op::{FileId, Request};

const PAGE: &str = include_str!("../../../../docs/FORMAT.md");

/// Returns the bytes of the block that is fenced as ```` ```hex NAME ````; a `#` starts a comment.
fn example(name: &str) -> Vec<u8> {
    let (_, block) = PAGE.split_once(&format!("```hex {name}\n")).unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let code = block.lines().map(|line| line.split('#').next().unwrap_or_default());
    code.flat_map(str::split_whitespace).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Returns the kind, number and body of an entry.
fn parts(entry: &Entry) -> (EntryKind, u64, Vec<u8>) {
    match entry {
        Entry::Change(Record { number, body }) => (EntryKind::Change, *number, body.to_vec()),
        Entry::Outcome(number, outcome) => (EntryKind::Outcome, *number, outcome.encode().to_vec()),
        Entry::Answered(number) => (EntryKind::Answered, *number, Vec::new()),
        Entry::Durable(number) => (EntryKind::Durable, *number, Vec::new()),
        Entry::Exclusive(number) => (EntryKind::Exclusive, *number, Vec::new()),
        Entry::LatestTime(number) => (EntryKind::LatestTime, *number, Vec::new()),
        Entry::Synced(number, file) => (EntryKind::Synced, *number, file.to_bytes().to_vec()),
    }
}

#[test]
fn segment_of_the_format_page_is_decoded_and_encoded_again() {
    let segment = Bytes::from(example("journal"));
    let read = scan(&segment).unwrap();
    assert_eq!(read.rest, Tail::Blank);
    let [Entry::Change(change), Entry::Outcome(9, outcome), Entry::Synced(9, file), Entry::Durable(10)] =
        &read.entries[..]
    else {
        panic!("{:?}", read.entries)
    };
    assert_eq!((change.number, *file), (9, FileId { fs: 0, ino: 5, generation: 1 }));
    assert!(matches!(Request::decode(change.body.clone()), Ok((_, Request::Remove(_)))));
    assert_eq!(*outcome, ChangeOutcome { is_answered: true, is_rejected: true, made: None, offset: None });

    let (header, end, salt) = Header::decode(&segment).unwrap();
    assert_eq!((&header.path[..], &header.source[..], header.run), (&b"d"[..], &b"nas:d"[..], 7));
    let mut recreated_as = header.encode();
    assert_eq!(recreated_as.len(), end);
    for entry in &read.entries {
        let (kind, number, body) = parts(entry);
        let head: [u8; HEAD_BYTES] =
            entry::head(kind, number, &[&body], Spot { salt, offset: recreated_as.len() as u64 });
        recreated_as.extend(head);
        recreated_as.extend(body);
    }
    assert_eq!(recreated_as, segment);
}
