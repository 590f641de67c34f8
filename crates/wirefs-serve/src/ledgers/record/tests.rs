use super::{Damage, FORM, LogContents, MAGIC, Record, read, whole};
use bytes::Bytes;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::Fd;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Reply};
use wirefs_server::{LedgerRecord, PriorState, SavedLedger, StartedChange};

fn id(ino: u64) -> FileId {
    FileId { fs: 3, ino, generation: 9 }
}

fn begun(number: u64) -> LedgerRecord {
    let prior = PriorState { named: None, object: Some(id(8)), size: 77 };
    LedgerRecord::Started { number, started: StartedChange { fingerprint: 0x0102_0304, prior } }
}

fn done(number: u64) -> LedgerRecord {
    let put = Rput { fd: Fd(u16::MAX), count: 5, offset: 6, before: 7, stat: None, dir: None };
    LedgerRecord::Done { number, created: Some(id(number)), reply: Box::new(Reply::Put(put)) }
}

fn failed(number: u64) -> LedgerRecord {
    LedgerRecord::Done { number, created: None, reply: Box::new(Reply::Error(Rerror::from(Errno::Exists))) }
}

/// All kinds of records, and their log.
fn all() -> (Vec<Record>, Vec<u8>) {
    let records = vec![
        Record::Opened(BootId(5)),
        Record::Next(3),
        Record::Created(2, id(2)),
        Record::Note(LedgerRecord::Owner([7; 32])),
        Record::Note(begun(3)),
        Record::Note(done(3)),
        Record::Note(failed(4)),
        Record::Note(LedgerRecord::Acknowledged(4)),
        Record::Note(begun(5)),
    ];
    let log = log_of(&records);
    (records, log)
}

fn log_of(records: &[Record]) -> Vec<u8> {
    let mut log = MAGIC.to_vec();
    assert!(records.iter().all(|record| record.write(&mut log)));
    log
}

fn decode(log: &[u8]) -> Result<LogContents, Damage> {
    read(&Bytes::copy_from_slice(log))
}

#[test]
fn log_returns_its_records() {
    let (_, log) = all();
    let contents = decode(&log).unwrap();
    assert_eq!(
        (contents.boot, contents.is_closed, contents.whole_bytes),
        (Some(BootId(5)), false, log.len())
    );
    let mut noted = SavedLedger { owner: Some([7; 32]), next: 3, ..SavedLedger::default() };
    noted.created.insert(2, id(2));
    [begun(3), done(3), failed(4), LedgerRecord::Acknowledged(4), begun(5)]
        .into_iter()
        .for_each(|note| noted.apply(note));
    assert_eq!((noted.next, noted.answered, noted.outcomes.len()), (6, 4, 2));
    assert_eq!(contents.noted, noted);
}

#[test]
fn rewritten_log_has_the_same_contents() {
    let (_, log) = all();
    let before = decode(&log).unwrap();
    let after = decode(&whole(BootId(6), &before.noted)).unwrap();
    assert_eq!((after.noted, after.boot), (before.noted, Some(BootId(6))));
}

/// Returns the bytes of the block that is fenced as ```` ```hex ledger ```` in `docs/FORMAT.md`; a `#` starts a comment.
fn example() -> Vec<u8> {
    let page = include_str!("../../../../../docs/FORMAT.md");
    let (_, block) = page.split_once("```hex ledger\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let code = block.lines().map(|line| line.split('#').next().unwrap_or_default());
    code.flat_map(str::split_whitespace).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn ledger_of_the_format_page_is_decoded_and_encoded_again() {
    let records =
        [Record::Opened(BootId(5)), Record::Note(begun(10)), Record::Note(LedgerRecord::Acknowledged(10))];
    assert_eq!(log_of(&records), example());
    let contents = decode(&example()).unwrap();
    assert_eq!((contents.boot, contents.noted.answered), (Some(BootId(5)), 10));
    assert_eq!(contents.whole_bytes, example().len());
}

#[test]
fn log_that_ends_within_a_record_is_valid_up_to_there() {
    let (records, log) = all();
    let mut ends = vec![MAGIC.len()];
    for count in 1..=records.len() {
        ends.push(log_of(&records[..count]).len());
    }
    for length in MAGIC.len()..=log.len() {
        let contents = decode(&log[..length]).unwrap_or_else(|damage| panic!("{length} bytes: {damage}"));
        let whole = ends.iter().rev().find(|end| **end <= length).unwrap();
        assert_eq!(contents.whole_bytes, *whole, "{length} bytes");
    }
    for length in 0..MAGIC.len() {
        assert_eq!(decode(&log[..length]), Err(Damage::Foreign));
    }
}

#[test]
fn log_with_a_wrong_byte_is_rejected() {
    let (records, log) = all();
    let last = log_of(&records[..records.len() - 1]).len();
    for at in 0..log.len() {
        let mut wrong = log.clone();
        wrong[at] ^= 0x10;
        match decode(&wrong) {
            Err(_) => {}
            // The length of the last record exceeds the file, as after an incomplete write.
            Ok(contents) => {
                assert!(at >= last && at < last + 4 && contents.whole_bytes == last, "the byte at {at}")
            }
        }
    }
}

#[test]
fn log_of_another_version_or_type_is_rejected() {
    let (_, mut log) = all();
    log[7] += 1;
    assert_eq!(decode(&log), Err(Damage::Foreign));
    assert_eq!(decode(b"#!/bin/sh\n"), Err(Damage::Foreign));
    let mut unknown = MAGIC.to_vec();
    FORM.append(&mut unknown, &[&[99]]);
    assert_eq!(decode(&unknown), Err(Damage::Record(MAGIC.len())));
}

#[test]
fn log_is_closed_until_it_is_opened_again() {
    let mut records = vec![Record::Opened(BootId(1)), Record::Note(failed(1)), Record::Closed];
    assert!(decode(&log_of(&records)).unwrap().is_closed);
    records.push(Record::Opened(BootId(2)));
    let contents = decode(&log_of(&records)).unwrap();
    assert_eq!((contents.is_closed, contents.boot), (false, Some(BootId(2))));
}
