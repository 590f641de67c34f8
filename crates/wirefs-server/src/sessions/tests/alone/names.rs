//! Requests that name what changes before them create.

use super::*;
use crate::sessions::Job;
use bytes::Bytes;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::put::{Create, PutMode, Rput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::target::{NOFD, Place};
use wirefs_op::{Cred, FileId, Kind, Stat, TreePath};

/// A has session 1, its next change has the number 1.
fn numbered() -> World {
    let mut world = lone();
    number(&mut world, A, 1);
    world
}

fn number(world: &mut World, connection: ConnectionKey, number: u64) {
    assert!(world.receive(connection, NOTAG, Request::Number(Tnumber { number, answered: 1 })).is_empty());
}

fn create(dir: FileId) -> Request {
    let Request::Put(mut put) = put(0) else { unreachable!("put() is a Tput") };
    put.target.id = Some(dir);
    put.mode = PutMode::CREATE.and(PutMode::EXCLUSIVE);
    put.create = Some(Create { kind: Kind::Directory, mode: 0o755, rdev: 0, cred: Cred::default() });
    Request::Put(put)
}

fn created(id: FileId) -> Reply {
    let stat = Some(Stat { id, ..root().root });
    Reply::Put(Rput { fd: NOFD, count: 0, offset: 0, before: 0, stat, dir: None })
}

fn get(id: FileId, mode: GetMode) -> Request {
    let Request::Get(mut get) = stat() else { unreachable!("stat() is a Tget") };
    (get.target.id, get.mode) = (Some(id), mode);
    Request::Get(get)
}

fn remove(dir: FileId) -> Request {
    let path = TreePath::from_bytes(Bytes::from_static(b"f/g")).unwrap();
    Request::Remove(Tremove { place: Place { path, dir: Some(dir) }, directory: false })
}

fn refusal(connection: ConnectionKey, tag: Tag) -> Output {
    Output::Reply { connection, tag, reply: Reply::Error(Rerror::from(Errno::Stale)) }
}

/// The change gets this reply and is over. What follows from the end.
fn done(world: &mut World, job: &Job, reply: Reply) -> Vec<Output> {
    world.handle(Input::Answered(job.key, reply));
    world.handle(Input::Finished(job.key))
}

#[test]
fn what_waits_for_its_turn_behind_a_creation_names_what_that_makes() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    assert!(world.receive(A, Tag(2), create(FileId::provisional(1))).is_empty());
    assert!(
        world.receive(A, Tag(3), get(FileId::provisional(2), GetMode::STAT.and(GetMode::ORDERED))).is_empty()
    );
    assert!(world.receive(A, Tag(4), remove(FileId::provisional(1))).is_empty());
    let second = executed(&done(&mut world, &first, created(id(70)))).unwrap();
    assert_eq!(second.request, create(id(70)));
    let third = executed(&done(&mut world, &second, created(id(71)))).unwrap();
    assert_eq!(third.request, get(id(71), GetMode::STAT.and(GetMode::ORDERED)));
    let fourth = executed(&world.handle(Input::Finished(third.key))).unwrap();
    assert_eq!(fourth.request, remove(id(70)));
}

#[test]
fn what_takes_no_turn_names_only_what_is_there_when_it_comes() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    let early = world.receive(A, Tag(2), get(FileId::provisional(1), GetMode::STAT));
    assert_eq!(early, [refusal(A, Tag(2))]);
    done(&mut world, &first, created(id(70)));
    let read = world.execute(A, Tag(2), get(FileId::provisional(1), GetMode::STAT));
    assert_eq!(read.request, get(id(70), GetMode::STAT));
    world.handle(Input::Finished(read.key));
    assert_eq!(world.sessions.jobs(), 0);
}

#[test]
fn what_names_a_creation_that_failed_is_refused_in_its_turn_however_much_it_is() {
    let mut world = numbered();
    let first = world.execute(A, Tag(0), create(id(5)));
    let last = 4000_u16;
    for tag in 1..last {
        assert!(world.receive(A, Tag(tag), create(FileId::provisional(u64::from(tag)))).is_empty());
    }
    assert!(world.receive(A, Tag(last), put(9)).is_empty());
    let outputs = done(&mut world, &first, Reply::Error(Rerror::from(Errno::NoSpace)));
    let refused: Vec<Output> = (1..last).map(|tag| refusal(A, Tag(tag))).collect();
    assert_eq!(outputs[..refused.len()], refused);
    assert_eq!(executed(&outputs[refused.len()..]).map(|job| job.tag), Some(Tag(last)));
    assert_eq!(world.sessions.jobs(), 1);
}

#[test]
fn refusal_is_told_again_when_the_change_comes_again() {
    let mut world = numbered();
    let refused = world.receive(A, Tag(1), remove(FileId::provisional(77)));
    assert_eq!(refused, [refusal(A, Tag(1))]);
    world.handle(Input::Disconnected(A));
    enter(&mut world, C, 1, ALL);
    number(&mut world, C, 1);
    assert_eq!(world.receive(C, Tag(8), remove(FileId::provisional(77))), [refusal(C, Tag(8))]);
}

#[test]
fn what_was_created_over_an_older_connection_is_known() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    world.handle(Input::Disconnected(A));
    done(&mut world, &first, created(id(70)));
    enter(&mut world, C, 1, ALL);
    number(&mut world, C, 1);
    assert_eq!(world.receive(C, Tag(1), create(id(5))).len(), 1, "it is answered as before");
    let next = world.execute(C, Tag(2), remove(FileId::provisional(1)));
    assert_eq!(next.request, remove(id(70)));
}

#[test]
fn creation_keeps_its_turn_until_it_is_answered() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    assert!(world.receive(A, Tag(2), remove(FileId::provisional(1))).is_empty());
    assert!(world.handle(Input::TurnPassed(first.key)).is_empty());
    assert_eq!(
        executed(&done(&mut world, &first, created(id(70)))).map(|job| job.request),
        Some(remove(id(70)))
    );
}

#[test]
fn parked_request_begins_anew_with_what_it_named() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    done(&mut world, &first, created(id(70)));
    let second = world.execute(A, Tag(2), remove(FileId::provisional(1)));
    let again = executed(&world.handle(Input::Parked(second.key, second.request))).unwrap();
    assert_eq!(again.request, remove(id(70)));
}

#[test]
fn who_did_not_agree_on_names_has_none() {
    let mut world = World::leasing();
    enter(&mut world, A, 1, FEATURE_LEASES | FEATURE_LEDGER);
    number(&mut world, A, 1);
    let first = world.execute(A, Tag(1), create(id(5)));
    done(&mut world, &first, created(id(70)));
    assert_eq!(world.receive(A, Tag(2), remove(FileId::provisional(1))), [refusal(A, Tag(2))]);
}

#[test]
fn creations_of_one_session_are_nothing_to_another() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    done(&mut world, &first, created(id(70)));
    let outputs = come(&mut world, B, 2, ALL);
    let [(A, serial, false)] = told(&outputs)[..] else { panic!("{outputs:?}") };
    let asked = asked(&world.receive(A, NOTAG, recalled(serial)));
    let_in(&mut world, &asked);
    let other = world.receive(B, Tag(2), get(FileId::provisional(1), GetMode::STAT));
    assert_eq!(other, [refusal(B, Tag(2))]);
}
