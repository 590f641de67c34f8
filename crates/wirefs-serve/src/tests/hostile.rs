//! A peer that breaks the protocol loses its connection, and no other peer does.

use super::client::*;
use wirefs_op::{Errno, NOTAG, Reply, Tag};

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
