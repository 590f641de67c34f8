//! Changes wait for the holders of leases on their objects only, and no thread waits.

use super::super::{BeforeLeasing, Believers, ServeOptions};
use super::client::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wirefs_op::message::get::GetMode;
use wirefs_op::message::version::BootId;
use wirefs_op::{NOTAG, Reply, Tag};

#[test]
fn change_is_answered_once_the_holder_has_invalidated() {
    let (server, script) = server();
    let (reader, writer) = (Client::leasing(&server, 1), Client::leasing(&server, 2));
    assert!(reader.learn(Tag(1), b"f"));
    writer.send(Tag(1), put(b"f", 7, 10));
    let recall = reader.receive_recall();
    assert_eq!(recall.items.len(), 1);
    script.await_state("the write given back", |state| state.parked == 1);
    assert!(!reader.learn(Tag(2), b"f"), "a change is pending");
    assert!(writer.has_nothing() && script.state(|state| state.writes.is_empty()));
    reader.forget(&recall);
    assert!(matches!(writer.receive(), (Tag(1), Reply::Put(put)) if put.offset == 7));
    assert!(reader.learn(Tag(2), b"f"));
}

#[test]
fn later_changes_of_the_session_wait_for_the_write_slot() {
    let (server, script) = server();
    let (reader, writer) = (Client::leasing(&server, 1), Client::leasing(&server, 2));
    assert!(reader.learn(Tag(1), b"f"));
    writer.send(Tag(1), put(b"f", 1, 10));
    let recall = reader.receive_recall();
    writer.push(Tag(2), put(b"g", 2, 10));
    writer.push(Tag(3), commit(b"g"));
    writer.push(Tag(4), put(b"f", 3, 10));
    writer.send(Tag(5), ping());
    assert_eq!(writer.receive().0, Tag(5));
    writer.call(Tag(6), stat(b"g"));
    reader.forget(&recall);
    let mut answered: Vec<Tag> = (0..4).map(|_| writer.receive().0).collect();
    // A commit releases the write slot before its reply.
    answered[2..].sort_unstable();
    assert_eq!(answered, [Tag(1), Tag(2), Tag(3), Tag(4)]);
    let offsets: Vec<u64> = script.state(|state| state.writes.iter().map(|(_, offset)| *offset).collect());
    assert_eq!(offsets, [1, 2, 3]);
}

#[test]
fn waiting_changes_hold_no_thread() {
    let (server, script) =
        server_with(ServeOptions { workers_max: 2, session_workers_max: 1, ..ServeOptions::new(BootId(5)) });
    let reader = Client::leasing(&server, 100);
    assert!(reader.learn(Tag(1), b"f"));
    // Each in a session of its own, so that none waits for the write slot.
    let writers: Vec<Client> = (0..40).map(|id| Client::leasing(&server, id)).collect();
    for writer in &writers {
        writer.send(Tag(1), put(b"f", 1, 10));
    }
    script.await_state("all given back", |state| state.parked == writers.len());
    // Long enough for the pool, whose workers are idle.
    let reply = writers[0].call(Tag(2), get(b"f", GetMode::DATA, 1));
    assert!(matches!(reply, Reply::Get(_)));
    await_status(&server, |status| status.running == writers.len());
    let recall = reader.receive_recall();
    reader.forget(&recall);
    for writer in &writers {
        assert!(matches!(writer.receive(), (Tag(1), Reply::Put(_))));
    }
    assert!(reader.has_nothing(), "one recall serves all");
    assert_eq!(script.state(|state| state.writes.len()), writers.len());
}

#[test]
fn recalls_overtake_streams() {
    let (server, _script) = server();
    let (reader, writer) = (Client::leasing(&server, 1), Client::leasing(&server, 2));
    assert!(reader.learn(Tag(1), b"f"));
    reader.send(Tag(2), get(b"stream", GetMode::DATA, 512 << 20));
    assert!(matches!(reader.receive(), (Tag(2), Reply::Get(_))));
    writer.send(Tag(1), put(b"f", 1, 10));
    let mut pieces = 0;
    let recall = loop {
        match reader.receive() {
            (Tag(2), Reply::Get(_)) => pieces += 1,
            (NOTAG, Reply::Recall(recall)) => break recall,
            other => panic!("{other:?}"),
        }
    };
    assert!(pieces < 4096 - 1, "it came before the end of the stream");
    reader.forget(&recall);
    assert!(matches!(writer.receive(), (Tag(1), Reply::Put(_))));
    reader.close();
}

#[test]
fn resumed_session_gets_unanswered_recalls_again() {
    let (server, script) = server();
    let (reader, writer) = (Client::leasing(&server, 1), Client::leasing(&server, 2));
    assert!(reader.learn(Tag(1), b"f"));
    writer.send(Tag(1), put(b"f", 1, 10));
    reader.receive_recall();
    reader.close();
    script.await_state("the write given back", |state| state.parked == 1);
    let reader = Client::leasing(&server, 1);
    let recall = reader.receive_recall();
    assert_eq!(recall.items.len(), 1);
    reader.forget(&recall);
    assert!(matches!(writer.receive(), (Tag(1), Reply::Put(_))));
}

#[test]
fn stop_recalls_leases_and_waits_for_the_replies() {
    let (server, _script) = server();
    let client = Client::leasing(&server, 1);
    assert!(client.learn(Tag(1), b"f"));
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| server.stop());
        let recall = client.receive_recall();
        assert!(recall.items.is_empty(), "everything");
        client.forget(&recall);
        assert!(stop.join().unwrap());
    });
    assert!(!server.are_leases_out());
}

#[test]
fn stop_reports_outstanding_leases() {
    let options = ServeOptions { drain_max: Duration::from_millis(50), ..ServeOptions::new(BootId(5)) };
    let (server, _script) = server_with(options);
    let client = Client::leasing(&server, 1);
    assert!(client.learn(Tag(1), b"f"));
    assert!(!server.stop(), "no holder has answered");
    assert!(server.are_leases_out());
    assert_eq!(client.until_closed().len(), 1);
}

#[test]
fn callback_runs_before_a_session_gets_leases() {
    let times = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&times);
    let act = Box::new(move |believers: &Believers| {
        let before = counted.fetch_add(1, Ordering::SeqCst);
        assert_eq!((believers.sessions.len(), believers.is_recovering), (before + 1, false));
    });
    let options =
        ServeOptions { before_leasing: Some(BeforeLeasing::new(act)), ..ServeOptions::new(BootId(5)) };
    let (server, _script) = server_with(options);
    assert_eq!(times.load(Ordering::SeqCst), 0);
    let clients = [1, 2].map(|id| {
        let client = Client::leasing(&server, id);
        assert_eq!(times.load(Ordering::SeqCst), usize::from(id));
        client
    });
    drop(clients);
}

#[test]
fn changes_wait_for_leases_of_the_previous_server() {
    let recovery = Duration::from_millis(300);
    let before = Instant::now();
    let (server, script) = server_with(ServeOptions { recovery, ..ServeOptions::new(BootId(5)) });
    let client = Client::leasing(&server, 1);
    client.send(Tag(1), put(b"f", 1, 10));
    assert!(matches!(client.receive(), (Tag(1), Reply::Put(_))));
    assert!(before.elapsed() >= recovery, "it did not wait");
    assert_eq!(script.state(|state| state.writes.len()), 1);
}
