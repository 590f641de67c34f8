//! Requests that name created objects by change numbers.

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

/// Connection A has the exclusive session 1, whose next change has number 1.
fn numbered() -> World {
    let mut world = exclusive_session();
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

fn refusal(connection: ConnectionKey, tag: Tag) -> ServerOutput {
    ServerOutput::Reply { connection, tag, reply: Reply::Error(Rerror::from(Errno::Stale)) }
}

/// Completes the change with this reply. Returns the outputs.
fn done(world: &mut World, job: &Job, reply: Reply) -> Vec<ServerOutput> {
    world.handle(ServerInput::Answered(job.key, reply));
    world.handle(ServerInput::Finished(job.key))
}

#[test]
fn queued_request_may_name_the_object_of_an_earlier_creation() {
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
    let fourth = executed(&world.handle(ServerInput::Finished(third.key))).unwrap();
    assert_eq!(fourth.request, remove(id(70)));
}

#[test]
fn unordered_request_may_only_name_existing_objects() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    let early = world.receive(A, Tag(2), get(FileId::provisional(1), GetMode::STAT));
    assert_eq!(early, [refusal(A, Tag(2))]);
    done(&mut world, &first, created(id(70)));
    let read = world.execute(A, Tag(2), get(FileId::provisional(1), GetMode::STAT));
    assert_eq!(read.request, get(id(70), GetMode::STAT));
    world.handle(ServerInput::Finished(read.key));
    assert_eq!(world.sessions.jobs(), 0);
}

#[test]
fn requests_that_name_a_failed_creation_are_refused_in_order() {
    let mut world = numbered();
    let first = world.execute(A, Tag(0), create(id(5)));
    let last = 4000_u16;
    for tag in 1..last {
        assert!(world.receive(A, Tag(tag), create(FileId::provisional(u64::from(tag)))).is_empty());
    }
    assert!(world.receive(A, Tag(last), put(9)).is_empty());
    let outputs = done(&mut world, &first, Reply::Error(Rerror::from(Errno::NoSpace)));
    let refused: Vec<ServerOutput> = (1..last).map(|tag| refusal(A, Tag(tag))).collect();
    assert_eq!(outputs[..refused.len()], refused);
    assert_eq!(executed(&outputs[refused.len()..]).map(|job| job.tag), Some(Tag(last)));
    assert_eq!(world.sessions.jobs(), 1);
}

#[test]
fn repeated_change_is_refused_again() {
    let mut world = numbered();
    let refused = world.receive(A, Tag(1), remove(FileId::provisional(77)));
    assert_eq!(refused, [refusal(A, Tag(1))]);
    world.handle(ServerInput::Disconnected(A));
    attach_at_once(&mut world, C, 1, ALL);
    number(&mut world, C, 1);
    assert_eq!(world.receive(C, Tag(8), remove(FileId::provisional(77))), [refusal(C, Tag(8))]);
}

#[test]
fn objects_created_over_an_older_connection_are_known() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    world.handle(ServerInput::Disconnected(A));
    done(&mut world, &first, created(id(70)));
    attach_at_once(&mut world, C, 1, ALL);
    number(&mut world, C, 1);
    assert_eq!(world.receive(C, Tag(1), create(id(5))).len(), 1, "it gets the same reply");
    let next = world.execute(C, Tag(2), remove(FileId::provisional(1)));
    assert_eq!(next.request, remove(id(70)));
}

#[test]
fn creation_keeps_the_write_slot_until_its_reply() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    assert!(world.receive(A, Tag(2), remove(FileId::provisional(1))).is_empty());
    assert!(world.handle(ServerInput::SlotReleased(first.key)).is_empty());
    assert_eq!(
        executed(&done(&mut world, &first, created(id(70)))).map(|job| job.request),
        Some(remove(id(70)))
    );
}

#[test]
fn parked_request_starts_again_with_resolved_ids() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    done(&mut world, &first, created(id(70)));
    let second = world.execute(A, Tag(2), remove(FileId::provisional(1)));
    let again = executed(&world.handle(ServerInput::Parked(second.key, second.request))).unwrap();
    assert_eq!(again.request, remove(id(70)));
}

#[test]
fn provisional_ids_must_be_negotiated() {
    let mut world = World::leasing();
    attach_at_once(&mut world, A, 1, FEATURE_LEASES | FEATURE_LEDGER);
    number(&mut world, A, 1);
    let first = world.execute(A, Tag(1), create(id(5)));
    done(&mut world, &first, created(id(70)));
    assert_eq!(world.receive(A, Tag(2), remove(FileId::provisional(1))), [refusal(A, Tag(2))]);
}

#[test]
fn creations_of_one_session_are_unknown_to_another() {
    let mut world = numbered();
    let first = world.execute(A, Tag(1), create(id(5)));
    done(&mut world, &first, created(id(70)));
    let outputs = start_attach(&mut world, B, 2, ALL);
    let [(A, serial, false)] = notices(&outputs)[..] else { panic!("{outputs:?}") };
    let attaches = attaches(&world.receive(A, NOTAG, recalled(serial)));
    accept(&mut world, &attaches);
    let other = world.receive(B, Tag(2), get(FileId::provisional(1), GetMode::STAT));
    assert_eq!(other, [refusal(B, Tag(2))]);
}
