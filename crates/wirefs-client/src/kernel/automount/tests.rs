use super::*;
use crate::call::{Handle, TreeNodeId};

const NOW: Time = Time(1_000_000_000);
const LOOKUP: Call<'static> = Call::Lookup { parent: ROOT, name: b"file" };
const FAILED: CallDecision = CallDecision::Answer(Answer::Fail(Errno::AccessDenied));
const DOWN: CallDecision = CallDecision::Answer(Answer::Fail(Errno::HostDown));

fn after(millis: u64) -> Time {
    NOW + Duration::from_millis(millis)
}

fn decide(trigger: &mut Automount, now: Time, call: &Call<'_>) -> CallDecision {
    trigger.call(now, call, 1, UnconnectedRoot::default)
}

fn connecting() -> Automount {
    let mut trigger = Automount::new(false);
    assert_eq!(decide(&mut trigger, NOW, &LOOKUP), CallDecision::HoldAndConnect);
    trigger
}

fn connected() -> Automount {
    let mut trigger = connecting();
    assert_eq!(trigger.finished(NOW, Ok(())), FinishedConnection::Use);
    trigger
}

fn failed() -> Automount {
    let mut trigger = connecting();
    let errno = Errno::AccessDenied;
    assert_eq!(trigger.finished(NOW, Err(errno)), FinishedConnection::Fail(errno));
    trigger
}

#[test]
fn attributes_and_space_of_the_root_do_not_connect() {
    let mut trigger = Automount::new(false);
    let root = UnconnectedRoot { uid: 7, free_bytes: 8_192, total_bytes: 40_960, ..Default::default() };
    let getattr = Call::Getattr { node: ROOT, handle: None };
    let CallDecision::Answer(Answer::Attr(stat, _)) = trigger.call(NOW, &getattr, 0, || root) else {
        panic!("answered locally")
    };
    assert_eq!((stat.uid, stat.kind, stat.id.ino), (7, Kind::Directory, ROOT.0));
    let statfs = Call::Statfs { node: ROOT };
    let CallDecision::Answer(Answer::FsStat(space)) = trigger.call(NOW, &statfs, 0, || root) else {
        panic!("answered locally")
    };
    assert_eq!((space.blocks, space.blocks_free), (10, 2));
    assert_eq!(trigger.phase, Phase::Closed);
}

#[test]
fn first_use_connects_and_later_calls_are_held_up_to_a_limit() {
    let mut trigger = connecting();
    assert_eq!(decide(&mut trigger, NOW, &LOOKUP), CallDecision::Hold);
    let full = trigger.call(NOW, &LOOKUP, HELD_MAX, UnconnectedRoot::default);
    assert_eq!(full, CallDecision::Answer(Answer::Fail(Errno::WouldBlock)));
}

#[test]
fn connected_trigger_forwards_all_calls() {
    let mut trigger = connected();
    for call in [LOOKUP, Call::Getattr { node: ROOT, handle: None }, Call::Statfs { node: ROOT }] {
        assert_eq!(decide(&mut trigger, NOW, &call), CallDecision::Forward);
    }
}

#[test]
fn failure_fails_calls_for_a_second_and_then_the_next_one_connects() {
    let mut trigger = failed();
    assert_eq!(decide(&mut trigger, after(999), &LOOKUP), FAILED);
    assert_eq!(decide(&mut trigger, after(1_000), &LOOKUP), CallDecision::HoldAndConnect);
}

#[test]
fn server_that_is_up_again_ends_a_failure() {
    let mut trigger = failed();
    trigger.set_server_up(false);
    assert_eq!(decide(&mut trigger, after(1), &LOOKUP), DOWN);
    assert_eq!(trigger.set_server_up(true), ServerChange::None);
    assert_eq!(decide(&mut trigger, after(2), &LOOKUP), CallDecision::HoldAndConnect);
}

#[test]
fn calls_fail_at_once_while_the_server_is_down() {
    let mut closed = Automount::new(false);
    assert_eq!(closed.set_server_up(false), ServerChange::None);
    assert_eq!(decide(&mut closed, NOW, &LOOKUP), DOWN);
    assert_eq!(decide(&mut closed, NOW, &Call::Getattr { node: ROOT, handle: None }), DOWN);
    assert_eq!(connecting().set_server_up(false), ServerChange::FailHeld);

    let mut connected = connected();
    assert_eq!(connected.set_server_up(false), ServerChange::FailWaiting);
    assert_eq!(connected.set_server_up(false), ServerChange::None, "reported before");
    assert_eq!(decide(&mut connected, NOW, &LOOKUP), CallDecision::Unreachable);
    let release = Call::Releasedir { node: TreeNodeId(2), handle: Handle(1) };
    assert_eq!(decide(&mut connected, NOW, &release), CallDecision::Forward);
    assert_eq!(connected.set_server_up(true), ServerChange::Redial);
}

#[test]
fn journal_connects_without_a_call_and_again_5_s_after_a_failure() {
    assert!(!Automount::new(false).connects_for_journal(NOW));
    let mut trigger = Automount::new(true);
    trigger.set_server_up(false);
    assert!(!trigger.connects_for_journal(NOW), "the server is down");
    trigger.set_server_up(true);
    assert!(trigger.connects_for_journal(NOW));
    assert!(!trigger.connects_for_journal(NOW), "it connects already");
    trigger.finished(NOW, Err(Errno::HostDown));
    assert!(!trigger.connects_for_journal(after(4_999)));
    assert!(trigger.connects_for_journal(after(5_000)));
    trigger.finished(after(5_000), Ok(()));
    assert!(!trigger.connects_for_journal(after(60_000)), "replayed");
}

#[test]
fn connection_that_succeeds_after_the_end_is_discarded() {
    let mut trigger = connecting();
    trigger.end();
    assert_eq!(trigger.finished(NOW, Ok(())), FinishedConnection::Discard);
    assert_eq!(decide(&mut trigger, NOW, &LOOKUP), DOWN, "an ended trigger never connects again");
    assert!(!trigger.connects_for_journal(NOW));
}
