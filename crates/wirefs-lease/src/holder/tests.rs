//! Tests of the client's side, rule by rule.

use super::{CacheFlush, LeaseHolder};
use crate::limits::{DRIFT, MARGIN, RENEWAL, TERM};
use crate::recall::{LeaseItem, Serial};
use std::time::Duration;
use wirefs_op::{FileId, Time};

const F: FileId = FileId { fs: 0, ino: 10, generation: 1 };

fn at(seconds: u64) -> Time {
    Time(0) + Duration::from_secs(seconds)
}

/// Attached at 0, and a request that was sent then was answered at 1.
fn holding() -> LeaseHolder {
    let mut holder = LeaseHolder::new(at(0), TERM);
    holder.reply_received(at(1), at(0));
    holder
}

#[test]
fn nothing_is_believed_before_a_request_was_answered() {
    let mut holder = LeaseHolder::new(at(0), TERM);
    assert!(!holder.is_valid(at(0)) && holder.valid_until().is_none() && holder.deadline().is_none());
    holder.reply_received(at(3), at(2));
    assert!(holder.is_valid(at(3)));
}

#[test]
fn the_term_counts_from_the_sending() {
    let mut holder = holding();
    assert_eq!((holder.valid_until(), holder.deadline()), (Some(at(15)), Some(at(15))));
    assert!(holder.is_valid(Time(at(15).0 - 1)) && !holder.is_valid(at(15)));
    holder.reply_received(at(6), at(5));
    holder.reply_received(at(7), at(3));
    assert_eq!(
        holder.valid_until(),
        Some(at(20)),
        "an older request that is answered later takes nothing back"
    );
}

#[test]
fn the_end_is_told_once_with_the_time_by_which_the_kernel_is_to_be_empty() {
    let mut holder = holding();
    holder.tick(at(14));
    assert_eq!(holder.poll(), None);
    holder.tick(at(15));
    assert_eq!(holder.poll(), Some(CacheFlush { by: at(15) + (MARGIN - DRIFT), own_cache_too: false }));
    holder.tick(at(16));
    assert_eq!((holder.poll(), holder.deadline()), (None, None));
}

#[test]
fn nothing_is_believed_before_the_kernel_is_empty() {
    let mut holder = holding();
    // The answer comes before anybody looked at the clock.
    holder.reply_received(at(16), at(14));
    assert!(!holder.is_valid(at(16)));
    assert!(holder.poll().is_some() && !holder.is_valid(at(16)));
    holder.flushed();
    assert_eq!(holder.valid_until(), Some(at(29)));
    holder.tick(at(29));
    assert!(holder.poll().is_some(), "it ends again");
}

#[test]
fn each_emptying_has_to_be_done() {
    let mut holder = holding();
    holder.tick(at(15));
    assert!(holder.poll().is_some());
    holder.reply_received(at(17), at(16));
    holder.attached(at(18), TERM, false);
    holder.reply_received(at(20), at(19));
    holder.flushed();
    assert!(!holder.is_valid(at(20)), "another is to be done");
    assert_eq!(holder.poll().map(|flush| flush.own_cache_too), Some(true));
    holder.flushed();
    assert!(holder.is_valid(at(20)));
}

#[test]
fn an_answer_that_comes_too_late_is_worth_nothing() {
    let mut holder = LeaseHolder::new(at(0), TERM);
    holder.reply_received(at(20), at(1));
    assert!(!holder.is_valid(at(20)));
    holder.tick(at(20));
    assert_eq!((holder.poll(), holder.deadline()), (None, None), "nothing was believed");
}

#[test]
fn without_a_connection_nothing_is_believed_until_a_new_request_is_answered() {
    let mut holder = holding();
    holder.disconnected();
    assert!(!holder.is_valid(at(2)) && holder.renewal_at().is_none());
    assert_eq!(holder.deadline(), Some(at(15)), "the kernel believes it still");
    holder.reply_received(at(3), at(2));
    holder.attached(at(4), TERM, true);
    assert!(!holder.is_valid(at(4)));
    holder.reply_received(at(5), at(3));
    assert!(!holder.is_valid(at(5)), "it was sent before");
    holder.reply_received(at(6), at(4));
    assert_eq!((holder.valid_until(), holder.poll()), (Some(at(19)), None));
}

#[test]
fn without_a_connection_the_kernel_is_emptied_when_the_term_is_over() {
    let mut holder = holding();
    holder.disconnected();
    holder.attached(at(16), TERM, true);
    assert_eq!(holder.poll().map(|flush| flush.own_cache_too), Some(false));
}

#[test]
fn what_was_not_kept_is_forgotten_first_and_replies_from_before_are_overtaken() {
    let mut holder = holding();
    holder.disconnected();
    holder.attached(at(4), Duration::from_secs(30), false);
    let flush = holder.poll().unwrap();
    assert!(flush.own_cache_too && flush.by == at(15) + (MARGIN - DRIFT));
    assert!(holder.is_overtaken(F, at(4)) && !holder.is_overtaken(F, at(5)));
    holder.reply_received(at(6), at(5));
    assert!(!holder.is_valid(at(6)));
    holder.flushed();
    assert_eq!(holder.valid_until(), Some(at(35)), "by the term of this server");
}

#[test]
fn an_idle_client_sends_a_request_every_five_seconds() {
    let mut holder = LeaseHolder::new(at(0), TERM);
    assert_eq!(holder.renewal_at(), Some(at(0) + RENEWAL));
    holder.request_sent(at(3));
    assert_eq!(holder.renewal_at(), Some(at(8)));
    holder.disconnected();
    holder.attached(at(20), TERM, true);
    assert_eq!(holder.renewal_at(), Some(at(25)));
}

#[test]
fn recalls_overtake_replies() {
    let mut holder = holding();
    holder.recalled(at(5), Serial(1), &[LeaseItem::whole(F), LeaseItem::named(FileId { ino: 1, ..F }, "x")]);
    let directory = FileId { ino: 1, ..F };
    assert!(holder.is_overtaken(F, at(4)) && holder.is_name_overtaken(directory, b"x", at(4)));
    assert!(!holder.is_name_overtaken(directory, b"y", at(4)) && !holder.is_overtaken(F, at(6)));
    holder.prune(Some(at(6)));
    assert!(!holder.is_overtaken(F, at(4)));
    holder.recalled(at(7), Serial(2), &[]);
    assert!(holder.is_overtaken(FileId { ino: 99, ..F }, at(7)));
}

#[test]
fn a_recall_is_answered_over_its_own_connection_or_not_at_all() {
    let mut holder = holding();
    let pending = holder.recalled(at(5), Serial(6), &[LeaseItem::whole(F)]);
    assert_eq!(holder.recall_done(pending), Some(Serial(6)));
    holder.disconnected();
    // It comes again ahead of the reply to the attaching, by another number or by the same.
    let again = holder.recalled(at(6), Serial(6), &[LeaseItem::whole(F)]);
    holder.attached(at(7), TERM, true);
    assert_eq!((holder.recall_done(pending), holder.recall_done(again)), (None, Some(Serial(6))));
}
