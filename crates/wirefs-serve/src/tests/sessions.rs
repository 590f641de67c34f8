//! Sessions over several connections.

use super::client::*;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::lock::LockAction;
use wirefs_op::{Errno, LockKind, NOTAG, Reply, Tag};

// S-77
#[test]
fn reconnect_resumes_the_session_with_its_open_files_and_locks() {
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    client.call(Tag(1), get(b"f", GetMode::STAT.and(GetMode::MORE), 0));
    client.call(Tag(1), lock(LockAction::Set, LockKind::Write, 1));
    client.close();
    let client = Client::connect(&server);
    assert!(client.join(1));
    assert!(matches!(client.call(Tag(1), stat_fd(7)), Reply::Get(_)));
    let other = Client::attached(&server, 2);
    let refused = other.call(Tag(1), lock(LockAction::Set, LockKind::Write, 1));
    assert!(matches!(refused, Reply::Error(error) if error.errno == Errno::WouldBlock));
    // A second attach must not start a new session in the tree.
    assert_eq!(script.state(|state| (state.attached.len(), state.ended.len())), (2, 0));
}

#[test]
fn newer_connection_takes_the_session_over() {
    let (server, _script) = server();
    let older = Client::attached(&server, 1);
    older.call(Tag(1), stat(b"f"));
    let newer = Client::connect(&server);
    assert!(newer.join(1));
    assert!(older.until_closed().is_empty());
    newer.call(Tag(1), stat(b"f"));
    assert_eq!(server.status().sessions, 1);
}

#[test]
fn received_changes_are_executed_without_their_client() {
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    client.send(Tag(1), put(b"gate", 0, 1));
    for tag in 2..10 {
        client.push(Tag(tag), put(b"f", tag.into(), 1));
    }
    client.send(Tag(20), ping());
    assert_eq!(client.receive().0, Tag(20));
    client.close();
    script.open_gate();
    script.await_state("all writes", |state| state.writes.len() == 9);
}

#[test]
fn refused_attach_names_the_reason() {
    let (server, _script) = server();
    let client = Client::connect(&server);
    assert!(matches!(client.call(NOTAG, version(1)), Reply::Version(_)));
    let refused = client.call(Tag(1), attach(b"nowhere"));
    assert!(matches!(refused, Reply::Error(error) if error.errno == Errno::NotFound));
    assert!(matches!(client.call(Tag(1), attach(b"")), Reply::Attach(_)));
}
