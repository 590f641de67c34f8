use super::{Kept, Log, REWRITTEN_AT, remove_unless_used};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Reply};
use wirefs_server::{Note, Noted};

const BOOT: BootId = BootId(7);

/// A directory that goes with the test.
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

    /// What the log says to a process of this boot.
    fn reads(&self, boot: BootId) -> Option<Noted> {
        match Log::open(&self.log(), boot).unwrap() {
            Kept::Log(_, noted) => Some(*noted),
            Kept::Nothing => None,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn done(number: u64) -> Note {
    Note::Done { number, created: None, reply: Box::new(Reply::Error(Rerror::from(Errno::Exists))) }
}

fn noted(notes: impl IntoIterator<Item = Note>) -> Noted {
    let mut noted = Noted::default();
    notes.into_iter().for_each(|note| noted.take(note));
    noted
}

#[test]
fn what_a_process_noted_the_next_one_knows_although_it_was_killed() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    log.note(done(1)).unwrap();
    log.note(Note::Answered(2)).unwrap();
    log.note(done(2)).unwrap();
    drop(log);
    assert_eq!(scratch.reads(BOOT), Some(noted([done(1), Note::Answered(2), done(2)])));
    assert_eq!(fs::metadata(scratch.log()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_log_that_was_not_ended_counts_while_the_machine_runs_and_an_ended_one_longer() {
    let scratch = Scratch::new();
    Log::create(&scratch.log(), BOOT).unwrap().note(done(1)).unwrap();
    assert_eq!(scratch.reads(BootId(8)), None);
    assert!(!scratch.log().exists(), "nobody is to believe it later");
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    log.note(done(1)).unwrap();
    log.close().unwrap();
    assert_eq!(scratch.reads(BootId(8)), Some(noted([done(1)])));
    // It was opened by that one, and not ended.
    assert_eq!(scratch.reads(BootId(9)), None);
}

#[test]
fn a_torn_end_is_cut_and_what_follows_is_read() {
    let scratch = Scratch::new();
    Log::create(&scratch.log(), BOOT).unwrap().note(done(1)).unwrap();
    let whole = fs::read(scratch.log()).unwrap();
    fs::write(scratch.log(), [&whole[..], &whole[8..30]].concat()).unwrap();
    let Kept::Log(mut log, before) = Log::open(&scratch.log(), BOOT).unwrap() else { panic!("no log") };
    assert_eq!(*before, noted([done(1)]));
    log.note(done(2)).unwrap();
    drop(log);
    assert_eq!(scratch.reads(BOOT), Some(noted([done(1), done(2)])));
}

#[test]
fn a_damaged_log_is_removed() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    log.note(done(1)).unwrap();
    log.note(done(2)).unwrap();
    drop(log);
    let mut bytes = fs::read(scratch.log()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(scratch.log(), bytes).unwrap();
    assert!(matches!(Log::open(&scratch.log(), BOOT).unwrap(), Kept::Void(_)));
    assert_eq!(scratch.reads(BOOT), None);
}

#[test]
fn one_process_at_a_time_has_a_log() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    assert!(matches!(Log::open(&scratch.log(), BOOT).unwrap(), Kept::Busy));
    assert!(Log::create(&scratch.log(), BOOT).is_err());
    remove_unless_used(&scratch.log());
    log.rewrite(&noted([done(1)])).unwrap();
    assert!(matches!(Log::open(&scratch.log(), BOOT).unwrap(), Kept::Busy), "the new file is locked as well");
    drop(log);
    assert!(scratch.reads(BOOT).is_some());
    remove_unless_used(&scratch.log());
    assert_eq!(scratch.reads(BOOT), None);
}

#[test]
fn a_log_is_written_anew_when_it_has_become_long() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    let mut said = Noted::default();
    let mut number = 0;
    while !log.is_long() {
        number += 1;
        for note in [Note::Answered(number), done(number)] {
            said.take(note.clone());
            log.note(note).unwrap();
        }
    }
    assert!(fs::metadata(scratch.log()).unwrap().len() > REWRITTEN_AT);
    log.rewrite(&said).unwrap();
    assert!(!log.is_long() && fs::metadata(scratch.log()).unwrap().len() < 1000);
    log.note(done(number + 1)).unwrap();
    said.take(done(number + 1));
    drop(log);
    assert_eq!(scratch.reads(BOOT), Some(said));
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);
}

#[test]
fn who_has_lost_the_place_of_its_log_does_not_take_it_back() {
    let scratch = Scratch::new();
    let mut older = Log::create(&scratch.log(), BOOT).unwrap();
    fs::remove_file(scratch.log()).unwrap();
    let mut newer = Log::create(&scratch.log(), BOOT).unwrap();
    newer.note(done(5)).unwrap();
    assert!(older.rewrite(&Noted::default()).is_err());
    older.discard();
    drop(newer);
    assert_eq!(scratch.reads(BOOT), Some(noted([done(5)])));
}

#[test]
fn what_a_client_has_heard_of_takes_no_room_however_often_it_says_so() {
    let scratch = Scratch::new();
    let mut log = Log::create(&scratch.log(), BOOT).unwrap();
    for below in 1..10_000 {
        log.note(Note::Answered(below)).unwrap();
    }
    assert!(log.held_back.len() < 64, "{}", log.held_back.len());
    log.close().unwrap();
    assert_eq!(scratch.reads(BOOT).unwrap().answered, 9_999);
}
