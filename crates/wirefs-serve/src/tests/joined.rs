//! A client in the server's process that executes its requests itself.

use super::super::Server;
use super::client::*;
use super::script::{PATIENCE, Script};
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, ThreadId};
use wirefs_carrier::{Carrier, CarrierLost, Closer, InProcessPeer, memory};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GetMode, GotMode};
use wirefs_op::message::lock::LockAction;
use wirefs_op::{LockKind, NOTAG, Reply, Request, Tag};

/// A received reply, and the thread that delivered it.
type Delivered = (ThreadId, Tag, Reply);

/// An in-process client and its reader.
struct Joined {
    way: Arc<dyn InProcessPeer>,
    heard: Receiver<Delivered>,
    closer: Closer,
    reader: Option<JoinHandle<()>>,
}

impl Joined {
    fn new(server: &Server, id: u8) -> Joined {
        let Carrier { mut source, mut sink, closer, .. } = server.join().unwrap();
        let way = sink.in_process().expect("it is in this process");
        let hello = [version(id).encode(NOTAG), attach(b"").encode(Tag(0))];
        sink.send(&mut VecDeque::from(hello)).unwrap();
        for _ in 0..2 {
            let body = source.receive().unwrap().expect("an answer");
            let (_, reply) = Reply::decode(body).unwrap();
            assert!(matches!(reply, Reply::Version(_) | Reply::Attach(_)), "{reply:?}");
        }
        let (sender, heard) = channel();
        let sender = Mutex::new(sender);
        way.set_handler(Arc::new(move |body: Bytes| {
            let (tag, reply) = Reply::decode(body).unwrap();
            sender.lock().unwrap().send((std::thread::current().id(), tag, reply)).is_ok()
        }));
        let reader = std::thread::spawn(move || match source.receive() {
            Err(CarrierLost::Closed) => {}
            other => panic!("{other:?}"),
        });
        Joined { way, heard, closer, reader: Some(reader) }
    }

    fn push(&self, tag: u16, request: Request) {
        self.way.push(request.encode(Tag(tag)));
    }

    fn send(&self, tag: u16, request: Request, helpers_max: usize) {
        self.push(tag, request);
        self.way.flush(helpers_max);
    }

    fn receive(&self) -> Delivered {
        self.heard.recv_timeout(PATIENCE).expect("no reply")
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.closer.close();
        let ended = self.reader.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))) || std::thread::panicking());
    }
}

fn executed_by(script: &Script) -> Vec<ThreadId> {
    script.state(|state| std::mem::take(&mut state.executed_by))
}

#[test]
fn flushing_thread_executes_and_answers_its_request() {
    let (server, script) = server();
    let client = Joined::new(&server, 1);
    let here = std::thread::current().id();
    let requests = [stat(b"f"), put(b"f", 1, 9), commit(b"f"), get(b"f", GetMode::DATA, 3 << 20)];
    for (tag, request) in (1..).zip(requests) {
        executed_by(&script);
        client.send(tag, request, 1);
        assert_eq!(executed_by(&script), [here], "{tag}");
        let (by, replied, _) = client.heard.try_recv().expect("it is answered already");
        assert_eq!((by, replied), (here, Tag(tag)));
        client.heard.try_iter().for_each(drop);
    }
}

#[test]
fn thread_that_may_not_execute_leaves_the_request_to_a_worker() {
    let (server, script) = server();
    let client = Joined::new(&server, 1);
    let here = std::thread::current().id();
    client.send(1, stat(b"f"), 0);
    let (by, tag, _) = client.receive();
    assert_eq!(tag, Tag(1));
    assert!(by != here && !executed_by(&script).contains(&here));
}

#[test]
fn slow_request_delays_no_other_and_executing_threads_are_bounded() {
    let (server, script) = server();
    let client = Joined::new(&server, 1);
    std::thread::scope(|scope| {
        client.push(1, stat(b"gate"));
        let way = &client.way;
        let slow = scope.spawn(|| way.flush(1));
        script.await_state("the gate", |state| state.at_gate == 1);
        // The only executing thread is at the gate.
        let here = std::thread::current().id();
        client.send(2, stat(b"f"), 1);
        let (by, tag, _) = client.receive();
        assert!(tag == Tag(2) && by != here, "{tag:?} by {by:?}, not {here:?}");
        // A second thread may execute. A thread that delivers another reply may deliver its reply as well.
        executed_by(&script);
        client.send(3, stat(b"f"), 2);
        assert_eq!(client.receive().1, Tag(3));
        assert_eq!(executed_by(&script), [here]);
        script.open_gate();
        assert_eq!(client.receive().1, Tag(1));
        slow.join().unwrap();
    });
}

#[test]
fn waiting_lock_uses_no_executing_thread() {
    let (server, script) = server();
    let client = Joined::new(&server, 1);
    client.send(1, lock(LockAction::Set, LockKind::Write, 1), 1);
    assert_eq!(client.receive().1, Tag(1));
    client.send(2, lock(LockAction::Wait, LockKind::Write, 2), 1);
    script.await_state("a try", |state| state.lock_tries >= 2);
    client.send(3, lock(LockAction::Set, LockKind::Unlock, 1), 1);
    let tags: BTreeSet<Tag> = (0..2).map(|_| client.receive().1).collect();
    assert_eq!(tags, [Tag(2), Tag(3)].into());
}

#[test]
fn changes_keep_the_order_of_their_pushes() {
    const COUNT: u16 = 2_000;
    let (server, script) = server();
    let client = Joined::new(&server, 1);
    let next = Mutex::new(0u16);
    std::thread::scope(|scope| {
        for helpers_max in [0, 1, 2, 4] {
            let (client, next) = (&client.way, &next);
            scope.spawn(move || {
                loop {
                    let mut next = next.lock().unwrap();
                    if *next == COUNT {
                        return;
                    }
                    client.push(put(b"f", u64::from(*next), 1).encode(Tag(*next + 1)));
                    *next += 1;
                    drop(next);
                    client.flush(helpers_max);
                }
            });
        }
    });
    let tags: BTreeSet<Tag> = (0..COUNT).map(|_| client.receive().1).collect();
    assert_eq!(tags.len(), usize::from(COUNT));
    let offsets: Vec<u64> = script.state(|state| state.writes.iter().map(|(_, offset)| *offset).collect());
    assert!(offsets.iter().copied().eq(0..u64::from(COUNT)));
}

#[test]
fn request_that_a_reply_causes_is_executed_by_the_same_thread() {
    let (server, script) = server();
    let Carrier { mut source, mut sink, closer, .. } = server.join().unwrap();
    let way = sink.in_process().unwrap();
    sink.send(&mut VecDeque::from([version(1).encode(NOTAG), attach(b"").encode(Tag(0))])).unwrap();
    for _ in 0..2 {
        source.receive().unwrap().expect("an answer");
    }
    // Each reply causes one more request, as in a client core.
    let (again, heard) = (Arc::downgrade(&way), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&heard);
    way.set_handler(Arc::new(move |_| {
        if let (Some(way), true) = (again.upgrade(), count.fetch_add(1, Ordering::SeqCst) < 9) {
            way.push(stat(b"f").encode(Tag(7)));
            way.flush(0);
        }
        true
    }));
    executed_by(&script);
    way.push(stat(b"f").encode(Tag(7)));
    way.flush(1);
    assert_eq!(heard.load(Ordering::SeqCst), 10);
    assert_eq!(executed_by(&script), [std::thread::current().id(); 10]);
    closer.close();
    assert!(matches!(source.receive(), Err(CarrierLost::Closed)));
}

#[test]
fn stream_larger_than_the_queues_arrives_complete_and_in_order() {
    const BYTES: u32 = 64 << 20;
    let (server, _script) = server();
    let client = Joined::new(&server, 1);
    client.send(1, get(b"f", GetMode::DATA, BYTES), 1);
    let mut bytes = 0;
    loop {
        let (_, tag, reply) = client.receive();
        let Reply::Get(part) = reply else { panic!("{reply:?}") };
        assert_eq!(tag, Tag(1));
        assert!(part.data.0.len() <= DATA_BYTES_MAX);
        bytes += part.data.0.len();
        if part.mode.has(GotMode::LAST) {
            break;
        }
    }
    assert_eq!(bytes, BYTES as usize);
}

#[test]
fn client_that_closes_or_breaks_the_protocol_is_disconnected() {
    let (server, _script) = server();
    for breaks in [false, true] {
        let client = Joined::new(&server, 1);
        assert_eq!(server.status().clients.len(), 1);
        if breaks {
            client.way.push(wirefs_op::Frame { head: vec![5, 0, 0, 0, 255], data: Bytes::new() });
            client.way.flush(1);
            assert!(client.closer.is_closed());
        }
        drop(client);
        assert_eq!(server.status().clients.len(), 0);
    }
}

#[test]
fn client_that_stops_receiving_is_disconnected_and_may_resume() {
    let (server, script) = server();
    let first = Joined::new(&server, 1);
    let refuses = Arc::new(AtomicBool::new(false));
    let deaf = Arc::clone(&refuses);
    first.way.set_handler(Arc::new(move |_| {
        deaf.store(true, Ordering::SeqCst);
        false
    }));
    first.send(1, stat(b"f"), 1);
    assert!(refuses.load(Ordering::SeqCst));
    await_status(&server, |status| status.clients.is_empty());
    drop(first);
    let (near, far) = memory::pair().unwrap();
    server.connect(far).unwrap();
    let second = Client::over_and_listening(near);
    assert!(second.join(1), "the session still exists");
    assert!(script.state(|state| state.ended.is_empty()));
}

#[test]
fn client_learns_whether_the_tree_announces_blocking() {
    let (server, _script) = server();
    let client = Joined::new(&server, 1);
    assert!(client.way.announces_blocking());
    server.stop();
}

#[test]
fn stopped_server_closes_the_connection() {
    let (server, _script) = server();
    let client = Joined::new(&server, 1);
    assert!(server.stop());
    assert!(client.closer.is_closed());
    drop(client);
    assert!(server.status().clients.is_empty());
}
