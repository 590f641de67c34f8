//! Order and completeness under load.

use super::client::*;
use wirefs_op::message::get::GetMode;
use wirefs_op::{Errno, Reply, Tag};
use wirefs_server::SessionKey;

// S-3
#[test]
fn changes_keep_their_order_under_load() {
    const ROUNDS: u16 = 300;
    let (server, script) = server();
    let clients: Vec<Client> = (1..4).map(|id| Client::attached(&server, id)).collect();
    for round in 0..ROUNDS {
        for client in &clients {
            let bytes = if round % 7 == 0 { 100_000 } else { 10 };
            client.push(Tag(2 * round), put(b"f", round.into(), bytes));
            client.send(Tag(2 * round + 1), get(b"f", GetMode::DATA, 1000));
        }
    }
    for client in &clients {
        for _ in 0..2 * ROUNDS {
            assert!(!matches!(client.receive().1, Reply::Error(_)));
        }
    }
    let writes = script.state(|state| std::mem::take(&mut state.writes));
    let sessions: std::collections::BTreeSet<SessionKey> =
        writes.iter().map(|(session, _)| *session).collect();
    assert_eq!(sessions.len(), 3);
    for session in sessions {
        let offsets: Vec<u64> =
            writes.iter().filter(|(of, _)| *of == session).map(|(_, offset)| *offset).collect();
        assert_eq!(offsets, (0..u64::from(ROUNDS)).collect::<Vec<_>>());
    }
    let status = server.status();
    assert_eq!(status.requests.get("Put"), Some(&(3 * u64::from(ROUNDS))));
    assert!(status.received_bytes > 3 * 40 * 100_000 && status.sent_bytes > 3 * 300 * 1000);
}

#[test]
fn requests_beyond_the_limit_stay_on_the_wire_and_arrive() {
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    client.send(Tag(0), put(b"gate", 0, 100_000));
    script.await_state("the gate", |state| state.at_gate == 1);
    for tag in 1..300 {
        client.send(Tag(tag), put(b"f", tag.into(), 100_000));
    }
    let limit = (wirefs_server::limits::BACKLOG_BYTES_MAX + (1 << 20)) as u64;
    assert!(server.status().received_bytes < limit);
    script.open_gate();
    for _ in 0..300 {
        assert!(matches!(client.receive().1, Reply::Put(_)));
    }
    assert!(server.status().received_bytes > 300 * 100_000);
}

#[test]
fn panic_and_silence_of_the_tree_are_answered_with_eio() {
    let (server, _script) = server();
    let client = Client::attached(&server, 1);
    for request in [stat(b"panic"), get(b"panic", GetMode::DATA, 1 << 20), stat(b"mute"), put(b"panic", 0, 1)]
    {
        let reply = client.call(Tag(1), request);
        assert!(matches!(&reply, Reply::Error(error) if error.errno == Errno::Io), "{reply:?}");
        assert!(matches!(client.call(Tag(1), put(b"f", 0, 1)), Reply::Put(_)));
    }
}
