//! A peer that breaks the protocol loses its connection, and no other peer does.

use super::super::Server;
use super::client::*;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::lock::LockAction;
use wirefs_op::{Errno, LockKind, NOTAG, Reply, Tag};

fn blamed(client: &Client) -> bool {
    let rest = client.until_closed();
    matches!(rest.last(), Some((NOTAG, Reply::Error(error))) if error.errno == Errno::Protocol)
}

// S-80
#[test]
fn hostile_messages_close_their_own_connection_only() {
    let (server, _script) = server();
    let honest = Client::attached(&server, 200);
    let unknown_type = [7, 0, 0, 0, 250, 1, 0];
    let lying_count = {
        let mut put = put(b"f", 0, 3).encode(Tag(1));
        let at = put.head.len() - 4;
        put.head[at..].copy_from_slice(&u32::MAX.to_le_bytes());
        [put.head, put.data.to_vec()].concat()
    };
    let left_over = {
        let mut ping = ping().encode(Tag(1)).head;
        ping[0] += 3;
        [ping, vec![0; 3]].concat()
    };
    let path_out = {
        let mut get = stat(b"ab").encode(Tag(1)).head;
        let at = get.windows(2).position(|pair| pair == b"ab").unwrap();
        get[at..at + 2].copy_from_slice(b"..");
        get
    };
    for (number, bytes) in [&unknown_type[..], &lying_count, &left_over, &path_out].into_iter().enumerate() {
        for attached in [false, true] {
            let client = Client::connect(&server);
            if attached {
                client.join(u8::try_from(number).unwrap());
            }
            client.send_raw(bytes);
            assert!(blamed(&client), "message {number}, attached {attached}");
        }
    }
    honest.call(Tag(1), stat(b"f"));
}

#[test]
fn broken_framing_closes_the_connection() {
    let (server, _script) = server();
    let honest = Client::attached(&server, 200);
    for bytes in [&[255, 255, 255, 255, 100, 0, 0][..], &[1, 0, 0, 0, 100, 0, 0], &[0; 64]] {
        let client = Client::connect(&server);
        client.send_raw(bytes);
        client.until_closed();
    }
    honest.call(Tag(1), stat(b"f"));
}

#[test]
fn connection_cut_within_a_message_is_removed() {
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    client.call(Tag(1), stat(b"f"));
    client.send_raw(&[200, 0, 0, 0, 132, 1, 0, 9]);
    client.close();
    let honest = Client::connect(&server);
    assert!(honest.join(1));
    assert!(matches!(honest.call(Tag(1), put(b"f", 3, 1)), Reply::Put(_)));
    assert_eq!(script.state(|state| state.writes.len()), 1);
}

#[test]
fn wrong_first_messages_are_blamed() {
    let (server, _script) = server();
    for first in [attach(b""), stat(b"f"), ping(), flush(Tag(3))] {
        let client = Client::connect(&server);
        client.send(Tag(1), first);
        assert!(blamed(&client));
    }
    let client = Client::connect(&server);
    client.call(NOTAG, version(1));
    client.send(Tag(1), stat(b"f"));
    assert!(blamed(&client));
}

/// The hostile peers of one number, one of each kind. None of them reads replies, except at first.
fn hostile_peers(server: &Server, number: u8) -> Vec<Client> {
    let joined = |id: u8| {
        let mut client = Client::silent(server);
        assert!(matches!(client.exchange(NOTAG, version(id)), Reply::Version(_)));
        assert!(matches!(client.exchange(Tag(0), attach(b"")), Reply::Attach(_)));
        client
    };
    let silent = Client::silent(server);
    let halting = Client::silent(server);
    halting.send_raw(&[200, 0, 0, 0, 132]);
    let deaf = joined(number);
    (1..=9).for_each(|tag| deaf.send(Tag(tag), get(b"f", GetMode::DATA, 1 << 20)));
    let flooding = joined(100 + number);
    (1..=500).for_each(|tag| flooding.send(Tag(tag), ping()));
    let waiting = joined(200 + number);
    (1..=20).for_each(|tag| waiting.send(Tag(tag), lock(LockAction::Wait, LockKind::Write, u64::from(tag))));
    vec![silent, halting, deaf, flooding, waiting]
}

// S-80
#[test]
fn twenty_hostile_peers_of_each_kind_take_nothing_from_an_honest_client() {
    let (server, script) = server();
    let honest = Client::attached(&server, 255);
    let mut peers = Vec::new();
    for number in 0..20 {
        peers.extend(hostile_peers(&server, number));
        for round in 0..10 {
            assert!(matches!(honest.call(Tag(1), put(b"f", round, 3)), Reply::Put(_)));
            assert!(matches!(honest.call(Tag(1), get(b"f", GetMode::DATA, 3)), Reply::Get(_)));
            assert!(matches!(honest.call(Tag(1), stat(b"f")), Reply::Get(_)));
        }
    }
    assert_eq!(script.state(|state| state.writes.len()), 200);
    assert!(!server.status().clients.is_empty());
    // A newcomer gets in, too.
    let late = Client::attached(&server, 254);
    assert!(matches!(late.call(Tag(1), stat(b"f")), Reply::Get(_)));
    peers.iter().for_each(Client::close);
}
