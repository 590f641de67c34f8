use super::*;
use crate::join::{InviterPlace, JoinFailure, join};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use wirefs_node::{NodeKey, NodeName};

fn introduction(number: u8, name: &str) -> Introduction {
    Introduction { key: NodeKey([number; 32]), name: NodeName::new(name).unwrap() }
}

fn code(text: &str) -> InvitationCode {
    InvitationCode::parse(text).unwrap()
}

/// Runs an invitation beside `joiners`, and returns the outcome with the stored introductions.
fn invite(
    is_stored: bool,
    joiners: impl FnOnce(&InviterPlace, SocketAddr),
) -> (Result<Introduction, InviteEnd>, Vec<Introduction>) {
    let inviter = Arc::new(Inviter::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap());
    let port = inviter.port();
    let running = std::thread::spawn(move || {
        let mut stored = Vec::new();
        let store = |guest: &Introduction| {
            stored.push(guest.clone());
            is_stored
        };
        let end = inviter.run(code("k7-4fm-q2x"), introduction(1, "inviter"), store);
        (end, stored)
    });
    joiners(&InviterPlace::Host("127.0.0.1".into(), port), SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    running.join().unwrap()
}

/// S-174: both sides have the other's key and name.
#[test]
fn joiner_and_inviter_exchange_keys() {
    let guest = introduction(2, "joiner");
    let (end, stored) = invite(true, |place, _| {
        let inviter = join(&code("k7-4fm-q2x"), &guest, place).unwrap();
        assert_eq!(inviter, introduction(1, "inviter"));
    });
    assert_eq!((end.unwrap(), stored), (guest.clone(), vec![guest]));
}

/// S-175: three wrong codes end the invitation.
#[test]
fn three_wrong_codes_end_the_invitation() {
    let (end, stored) = invite(true, |place, _| {
        for _ in 0..3 {
            let refused = join(&code("k7-4fm-q2y"), &introduction(2, "joiner"), place);
            assert!(matches!(refused, Err(JoinFailure::WrongCode)), "{refused:?}");
        }
    });
    assert!(matches!(end, Err(InviteEnd::WrongCodes)), "{end:?}");
    assert_eq!(stored, []);
}

/// S-176: silent and talkative strangers hold up nobody and cost no try.
#[test]
fn strangers_do_not_hold_up_an_invitation() {
    let (end, _) = invite(true, |place, address| {
        let mut strangers: Vec<TcpStream> =
            (0..CONVERSATIONS_MAX * 2).map(|_| TcpStream::connect(address).unwrap()).collect();
        for stranger in &mut strangers {
            let _closed = stranger.write_all(b"GET / HTTP/1.1\r\n\r\n");
        }
        let silent: Vec<TcpStream> =
            (0..CONVERSATIONS_MAX * 2).map(|_| TcpStream::connect(address).unwrap()).collect();
        join(&code("k7-4fm-q2x"), &introduction(2, "joiner"), place).unwrap();
        drop(silent);
    });
    assert_eq!(end.unwrap(), introduction(2, "joiner"));
}

#[test]
fn joiner_learns_that_its_key_was_not_stored() {
    let (end, _) = invite(false, |place, _| {
        let refused = join(&code("k7-4fm-q2x"), &introduction(2, "joiner"), place);
        assert!(matches!(refused, Err(JoinFailure::NotStored)), "{refused:?}");
    });
    assert!(matches!(end, Err(InviteEnd::NotStored)), "{end:?}");
}

#[test]
fn conversation_of_the_most_crowded_address_ends_first() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let talk = |number: u8| {
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Conversation::begin(stream, IpAddr::from([10, 0, 0, number]), Time(0)).unwrap()
    };
    let talks: Vec<Conversation> = [1, 2, 3, 2].map(talk).into();
    assert_eq!(most_crowded(&talks), Some(1));
    let talks: Vec<Conversation> = [1, 2, 3].map(talk).into();
    assert_eq!(most_crowded(&talks), Some(0));
    assert_eq!(most_crowded(&[]), None);
}
