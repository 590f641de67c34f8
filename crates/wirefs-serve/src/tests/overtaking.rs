//! Which requests may overtake which.

use super::client::*;
use crate::ServeStatus;
use std::collections::BTreeSet;
use wirefs_carrier::limits::SEND_QUEUE_BYTES_MAX;
use wirefs_op::message::get::{GetMode, GotMode};
use wirefs_op::message::lock::LockAction;
use wirefs_op::{LockKind, NOTAG, Reply, Tag};

#[test]
fn replies_come_in_any_order() {
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    client.send(Tag(1), get(b"gate", GetMode::DATA, 200_000));
    script.await_state("the gate", |state| state.at_gate == 1);
    for tag in 2..40 {
        client.push(Tag(tag), stat(b"f"));
    }
    client.send(Tag(40), ping());
    let tags: BTreeSet<Tag> = (2..=40).map(|_| client.receive().0).collect();
    assert_eq!(tags, (2..=40).map(Tag).collect());
    script.open_gate();
    assert_eq!(client.receive().0, Tag(1));
}

#[test]
fn quick_request_that_blocks_does_not_delay_its_connection() {
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    for tag in 1..4 {
        client.send(Tag(tag), stat(b"gate"));
    }
    assert!(matches!(client.call(Tag(9), ping()), Reply::Ping(_)));
    assert!(matches!(client.call(Tag(9), stat(b"f")), Reply::Get(_)));
    assert!(matches!(client.call(Tag(9), put(b"f", 1, 1)), Reply::Put(_)));
    script.await_state("all at the gate", |state| state.at_gate == 3);
    script.open_gate();
    let tags: BTreeSet<Tag> = (1..4).map(|_| client.receive().0).collect();
    assert_eq!(tags, (1..4).map(Tag).collect());
}

#[test]
fn small_request_overtakes_a_large_stream() {
    const STREAM_BYTES: u32 = 64 << 20;
    let (server, _script) = server();
    let mut client = Client::silent(&server);
    client.exchange(NOTAG, version(1));
    client.exchange(Tag(1), attach(b""));
    // The client reads nothing until the small request is answered, so the stream fills all buffers.
    client.send(Tag(1), get(b"f", GetMode::DATA, STREAM_BYTES));
    let is_filled =
        |status: &ServeStatus| status.clients.iter().any(|at| at.queued_bytes > SEND_QUEUE_BYTES_MAX);
    await_status(&server, is_filled);
    client.send(Tag(2), stat(b"f"));
    await_status(&server, |status| status.running == 1 && status.requests.get("Get") == Some(&2));
    client.listen();
    let (mut before, mut bytes, mut overtaken) = (0, 0, false);
    loop {
        match client.receive() {
            (Tag(1), Reply::Get(part)) => {
                bytes += part.data.0.len();
                if !overtaken {
                    before += 1;
                }
                if part.mode.has(GotMode::LAST) {
                    break;
                }
            }
            (Tag(2), Reply::Get(_)) => overtaken = true,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bytes, STREAM_BYTES as usize);
    // The messages in the kernel's buffer come first; the rest of 512 does not.
    assert!(overtaken && before < 16, "{before} messages before");
}

#[test]
fn slow_commit_delays_no_change_and_follows_earlier_ones() {
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    for offset in 0..20_u16 {
        client.push(Tag(offset), put(b"f", offset.into(), 10));
    }
    client.push(Tag(100), commit(b"gate"));
    client.send(Tag(101), put(b"f", 20, 10));
    let tags: BTreeSet<Tag> = (0..21).map(|_| client.receive().0).collect();
    assert!(tags.contains(&Tag(101)) && !tags.contains(&Tag(100)));
    script.await_state("the commit", |state| state.at_gate == 1 && state.writes.len() == 21);
    script.open_gate();
    assert!(matches!(client.receive(), (Tag(100), Reply::Commit(_))));
}

#[test]
fn flush_withdraws_a_waiting_lock() {
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    client.call(Tag(1), lock(LockAction::Set, LockKind::Write, 1));
    client.send(Tag(2), lock(LockAction::Wait, LockKind::Write, 2));
    script.await_state("a try", |state| state.lock_tries > 1);
    assert!(matches!(client.call(Tag(3), flush(Tag(2))), Reply::Flush(_)));
    client.call(Tag(2), lock(LockAction::Set, LockKind::Unlock, 1));
    // The lock is free, so the withdrawn one did not get it.
    assert!(matches!(client.call(Tag(2), lock(LockAction::Set, LockKind::Write, 3)), Reply::Lock(_)));
}

#[test]
fn waiting_locks_leave_workers_for_others() {
    const WAITING: u16 = 60;
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    client.call(Tag(1), lock(LockAction::Set, LockKind::Write, 0));
    for number in 0..WAITING {
        client.push(Tag(100 + number), lock(LockAction::Wait, LockKind::Write, number.into()));
    }
    client.send(Tag(2), ping());
    assert_eq!(client.receive().0, Tag(2));
    script.await_state("all tries", |state| state.lock_tries > usize::from(WAITING));
    client.call(Tag(3), stat(b"f"));
    for _ in 0..WAITING {
        client.send(Tag(3), lock(LockAction::Set, LockKind::Unlock, 0));
        let tags = [client.receive().0, client.receive().0];
        assert!(tags.contains(&Tag(3)) && tags.iter().any(|tag| tag.0 >= 100), "{tags:?}");
    }
}

#[test]
fn waiting_locks_beyond_their_number_are_refused() {
    let (server, _script) = server();
    let client = Client::attached(&server, 1);
    client.call(Tag(1), lock(LockAction::Set, LockKind::Write, 0));
    for number in 0..130 {
        client.push(Tag(100 + number), lock(LockAction::Wait, LockKind::Write, 1));
    }
    client.send(Tag(2), ping());
    let replies: Vec<_> = (0..3).map(|_| client.receive()).collect();
    let refused = replies.iter().filter(|(_, reply)| matches!(reply, Reply::Error(_))).count();
    assert_eq!(refused, 2, "{replies:?}");
}

#[test]
fn client_that_never_reads_harms_no_other() {
    let (server, _script) = server();
    let deaf: Vec<Client> = (0..8)
        .map(|number| {
            let client = Client::silent(&server);
            client.push(NOTAG, version(100 + number));
            client.push(Tag(0), attach(b""));
            for tag in 1..40 {
                client.push(Tag(tag), get(b"f", GetMode::DATA, 64 << 20));
            }
            client.send(Tag(50), get(b"f", GetMode::DATA, 100_000));
            client
        })
        .collect();
    let client = Client::attached(&server, 1);
    for _ in 0..50 {
        client.push(Tag(1), stat(b"f"));
        client.push(Tag(2), get(b"f", GetMode::DATA, 300_000));
        client.send(Tag(3), put(b"f", 0, 100));
        for _ in 0..5 {
            client.receive();
        }
    }
    let queued: usize = server.status().clients.iter().map(|client| client.queued_bytes).sum();
    assert!(queued < deaf.len() * (16 << 20), "{queued} bytes queued");
}
