//! A stop waits for running requests, and ends the rest.

use super::client::*;
use wirefs_carrier::{Address, Dial, ListenOptions, Listener, UnixDial};
use wirefs_op::message::get::GetMode;
use wirefs_op::message::lock::LockAction;
use wirefs_op::{LockKind, Reply, Tag};

#[test]
fn stop_finishes_running_requests_and_ends_all_sessions() {
    let (server, script) = server();
    let client = Client::attached(&server, 1);
    let waiting = Client::attached(&server, 2);
    client.call(Tag(1), lock(LockAction::Set, LockKind::Write, 1));
    waiting.send(Tag(1), lock(LockAction::Wait, LockKind::Write, 1));
    script.await_state("a try", |state| state.lock_tries > 1);
    client.send(Tag(2), get(b"gate", GetMode::DATA, 200_000));
    script.await_state("the gate", |state| state.at_gate == 1);
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| server.stop());
        // The waiting lock fails first, so its end shows that the stop has begun.
        await_status(&server, |status| status.running == 1);
        script.open_gate();
        assert!(stop.join().unwrap());
    });
    let replies = client.until_closed();
    let bytes: usize = replies
        .iter()
        .map(|(tag, reply)| match reply {
            Reply::Get(part) if *tag == Tag(2) => part.data.0.len(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(bytes, 200_000);
    assert!(waiting.until_closed().is_empty());
    let status = server.status();
    assert_eq!((status.sessions, status.clients.len(), status.running), (0, 0, 0));
    assert_eq!(script.state(|state| state.ended.len()), 2);
}

#[test]
fn stopped_server_accepts_no_connection() {
    let (server, _script) = server();
    assert!(server.stop());
    let client = Client::connect(&server);
    assert!(client.until_closed().is_empty());
    assert!(server.stop(), "a second stop does nothing");
}

#[test]
fn listening_ends_with_the_server() {
    let place = std::env::temp_dir().join(format!("wirefs-serve-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let path = place.join("socket");
    let (server, _script) = server();
    let listener = Listener::bind(&Address::Unix(path.clone()), &ListenOptions::default()).unwrap();
    server.listen(listener).unwrap();
    let client = Client::over_and_listening(UnixDial::new(&path).dial().unwrap());
    assert!(!client.join(1));
    assert!(server.stop());
    assert!(client.until_closed().is_empty());
    std::fs::remove_dir_all(&place).unwrap();
}
