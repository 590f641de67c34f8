//! Tests of the client's side of leases, rule by rule.

use super::{FullInvalidation, LeaseHolder};
use crate::limits::{DRIFT, MARGIN, RENEWAL, TERM};
use crate::recall::{LeaseItem, Serial};
use std::time::Duration;
use wirefs_op::{FileId, Time};

const F: FileId = FileId { fs: 0, ino: 10, generation: 1 };

fn at(seconds: u64) -> Time {
    Time(0) + Duration::from_secs(seconds)
}

/// A holder that attached at 0 and got the reply at 1 to a request sent at 0.
fn holding() -> LeaseHolder {
    let mut holder = LeaseHolder::new(at(0), TERM);
    holder.reply_received(at(1), at(0));
    holder
}

#[test]
fn no_lease_is_valid_before_a_reply() {
    let mut holder = LeaseHolder::new(at(0), TERM);
    assert!(!holder.is_valid(at(0)) && holder.valid_until().is_none() && holder.deadline().is_none());
    holder.reply_received(at(3), at(2));
    assert!(holder.is_valid(at(3)));
}

#[test]
fn the_term_counts_from_the_sending_of_the_request() {
    let mut holder = holding();
    assert_eq!((holder.valid_until(), holder.deadline()), (Some(at(15)), Some(at(15))));
    assert!(holder.is_valid(Time(at(15).0 - 1)) && !holder.is_valid(at(15)));
    holder.reply_received(at(6), at(5));
    holder.reply_received(at(7), at(3));
    assert_eq!(holder.valid_until(), Some(at(20)), "a late reply to an older request shortens no lease");
}

#[test]
fn the_expiry_requests_one_invalidation_with_its_deadline() {
    let mut holder = holding();
    holder.tick(at(14));
    assert_eq!(holder.poll(), None);
    holder.tick(at(15));
    assert_eq!(holder.poll(), Some(FullInvalidation { by: at(15) + (MARGIN - DRIFT), own_cache_too: false }));
    holder.tick(at(16));
    assert_eq!((holder.poll(), holder.deadline()), (None, None));
}

#[test]
fn no_lease_is_valid_before_the_kernel_is_invalidated() {
    let mut holder = holding();
    // The reply arrives before any call of `tick`.
    holder.reply_received(at(16), at(14));
    assert!(!holder.is_valid(at(16)));
    assert!(holder.poll().is_some() && !holder.is_valid(at(16)));
    holder.invalidated();
    assert_eq!(holder.valid_until(), Some(at(29)));
    holder.tick(at(29));
    assert!(holder.poll().is_some(), "the session ends again");
}

#[test]
fn each_invalidation_must_finish() {
    let mut holder = holding();
    holder.tick(at(15));
    assert!(holder.poll().is_some());
    holder.reply_received(at(17), at(16));
    holder.attached(at(18), TERM, false);
    holder.reply_received(at(20), at(19));
    holder.invalidated();
    assert!(!holder.is_valid(at(20)), "another invalidation is pending");
    assert_eq!(holder.poll().map(|request| request.own_cache_too), Some(true));
    holder.invalidated();
    assert!(holder.is_valid(at(20)));
}

#[test]
fn a_reply_after_the_term_validates_nothing() {
    let mut holder = LeaseHolder::new(at(0), TERM);
    holder.reply_received(at(20), at(1));
    assert!(!holder.is_valid(at(20)));
    holder.tick(at(20));
    assert_eq!((holder.poll(), holder.deadline()), (None, None), "no lease was valid");
}

#[test]
fn without_a_connection_no_lease_is_valid_until_a_new_reply() {
    let mut holder = holding();
    holder.disconnected();
    assert!(!holder.is_valid(at(2)) && holder.renewal_at().is_none());
    assert_eq!(holder.deadline(), Some(at(15)), "the kernel still has it cached");
    holder.reply_received(at(3), at(2));
    holder.attached(at(4), TERM, true);
    assert!(!holder.is_valid(at(4)));
    holder.reply_received(at(5), at(3));
    assert!(!holder.is_valid(at(5)), "the request was sent before");
    holder.reply_received(at(6), at(4));
    assert_eq!((holder.valid_until(), holder.poll()), (Some(at(19)), None));
}

#[test]
fn without_a_connection_the_kernel_is_invalidated_when_the_term_ends() {
    let mut holder = holding();
    holder.disconnected();
    holder.attached(at(16), TERM, true);
    assert_eq!(holder.poll().map(|request| request.own_cache_too), Some(false));
}

#[test]
fn void_leases_are_invalidated_first_and_overtake_earlier_replies() {
    let mut holder = holding();
    holder.disconnected();
    holder.attached(at(4), Duration::from_secs(30), false);
    let request = holder.poll().unwrap();
    assert!(request.own_cache_too && request.by == at(15) + (MARGIN - DRIFT));
    assert!(holder.is_overtaken(F, at(4)) && !holder.is_overtaken(F, at(5)));
    holder.reply_received(at(6), at(5));
    assert!(!holder.is_valid(at(6)));
    holder.invalidated();
    assert_eq!(holder.valid_until(), Some(at(35)), "the server's term counts");
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
fn a_recall_is_answered_on_its_own_connection_or_not_at_all() {
    let mut holder = holding();
    let pending = holder.recalled(at(5), Serial(6), &[LeaseItem::whole(F)]);
    assert_eq!(holder.recall_done(pending), Some(Serial(6)));
    holder.disconnected();
    // The server sends the recall again before its reply to the attach, with a new serial or the same one.
    let again = holder.recalled(at(6), Serial(6), &[LeaseItem::whole(F)]);
    holder.attached(at(7), TERM, true);
    assert_eq!((holder.recall_done(pending), holder.recall_done(again)), (None, Some(Serial(6))));
}
