use super::{Log, OpenedLog, REWRITTEN_AT, remove_unless_used};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Reply};
use wirefs_server::{LedgerRecord, SavedLedger};

const BOOT: BootId = BootId(7);

/// A directory that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-log-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// The log's contents as a process of this boot reads them.
    fn reads(&self, boot: BootId) -> Option<SavedLedger> {
        match Log::open(&self.log(), boot).unwrap() {
            OpenedLog::Log(_, noted) => Some(*noted),
            OpenedLog::Missing => None,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn done(number: u64) -> LedgerRecord {
    LedgerRecord::Done { number, created: None, reply: Box::new(Reply::Error(Rerror::from(Errno::Exists))) }
}

fn noted(notes: impl IntoIterator<Item = LedgerRecord>) -> SavedLedger {
    let mut noted = SavedLedger::default();
    notes.into_iter().for_each(|note| noted.apply(note));
    noted
}

#[test]
fn records_of_a_killed_process_are_read_by_the_next_one() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    log.note(done(1)).unwrap();
    log.note(LedgerRecord::Acknowledged(2)).unwrap();
    log.note(done(2)).unwrap();
    drop(log);
    assert_eq!(scratch.reads(BOOT), Some(noted([done(1), LedgerRecord::Acknowledged(2), done(2)])));
    assert_eq!(fs::metadata(scratch.log()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn open_log_is_valid_until_a_reboot_and_a_closed_one_after_it() {
    let scratch = Scratch::new();
    Log::create(&scratch.log(), BOOT).unwrap().note(done(1)).unwrap();
    assert_eq!(scratch.reads(BootId(8)), None);
    assert!(!scratch.log().exists(), "no later process may use it");
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    log.note(done(1)).unwrap();
    log.close().unwrap();
    assert_eq!(scratch.reads(BootId(8)), Some(noted([done(1)])));
    // That process opened it and did not close it.
    assert_eq!(scratch.reads(BootId(9)), None);
}

#[test]
fn torn_end_is_cut_and_later_records_are_read() {
    let scratch = Scratch::new();
    Log::create(&scratch.log(), BOOT).unwrap().note(done(1)).unwrap();
    let whole = fs::read(scratch.log()).unwrap();
    fs::write(scratch.log(), [&whole[..], &whole[8..30]].concat()).unwrap();
    let OpenedLog::Log(mut log, before) = Log::open(&scratch.log(), BOOT).unwrap() else { panic!("no log") };
    assert_eq!(*before, noted([done(1)]));
    log.note(done(2)).unwrap();
    drop(log);
    assert_eq!(scratch.reads(BOOT), Some(noted([done(1), done(2)])));
}

#[test]
fn damaged_log_is_removed() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    log.note(done(1)).unwrap();
    log.note(done(2)).unwrap();
    drop(log);
    let mut bytes = fs::read(scratch.log()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(scratch.log(), bytes).unwrap();
    assert!(matches!(Log::open(&scratch.log(), BOOT).unwrap(), OpenedLog::Damaged(_)));
    assert_eq!(scratch.reads(BOOT), None);
}

#[test]
fn log_is_open_in_one_process_at_a_time() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    assert!(matches!(Log::open(&scratch.log(), BOOT).unwrap(), OpenedLog::Busy));
    assert!(Log::create(&scratch.log(), BOOT).is_err());
    remove_unless_used(&scratch.log());
    log.rewrite(&noted([done(1)])).unwrap();
    assert!(
        matches!(Log::open(&scratch.log(), BOOT).unwrap(), OpenedLog::Busy),
        "the new file is locked as well"
    );
    drop(log);
    assert!(scratch.reads(BOOT).is_some());
    remove_unless_used(&scratch.log());
    assert_eq!(scratch.reads(BOOT), None);
}

#[test]
fn long_log_is_rewritten() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    let mut noted_so_far = SavedLedger::default();
    let mut number = 0;
    while !log.is_long() {
        number += 1;
        for note in [LedgerRecord::Acknowledged(number), done(number)] {
            noted_so_far.apply(note.clone());
            log.note(note).unwrap();
        }
    }
    assert!(fs::metadata(scratch.log()).unwrap().len() > REWRITTEN_AT);
    log.rewrite(&noted_so_far).unwrap();
    assert!(!log.is_long() && fs::metadata(scratch.log()).unwrap().len() < 1000);
    log.note(done(number + 1)).unwrap();
    noted_so_far.apply(done(number + 1));
    drop(log);
    assert_eq!(scratch.reads(BOOT), Some(noted_so_far));
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);
}

#[test]
fn process_that_lost_its_log_does_not_replace_the_new_one() {
    let scratch = Scratch::new();
    let mut older = Log::create(&scratch.log(), BOOT).unwrap();
    fs::remove_file(scratch.log()).unwrap();
    let mut newer = Log::create(&scratch.log(), BOOT).unwrap();
    newer.note(done(5)).unwrap();
    assert!(older.rewrite(&SavedLedger::default()).is_err());
    older.discard();
    drop(newer);
    assert_eq!(scratch.reads(BOOT), Some(noted([done(5)])));
}

#[test]
fn repeated_acknowledgments_take_no_room() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    for below in 1..10_000 {
        log.note(LedgerRecord::Acknowledged(below)).unwrap();
    }
    assert!(log.held_back.len() < 64, "{}", log.held_back.len());
    log.close().unwrap();
    assert_eq!(scratch.reads(BOOT).unwrap().answered, 9_999);
}
