//! Locks, which live as long as their stream.

use crate::gate::{Client, Gate, path};
use crate::proto;
use std::os::fd::AsRawFd;
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// One stream of locks.
struct Locks {
    requests: Sender<proto::LockRequest>,
    replies: Streaming<proto::LockReply>,
}

impl Locks {
    async fn open(mut client: Client) -> Locks {
        let (requests, receiver) = channel(1);
        let replies = client.lock(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        Locks { requests, replies }
    }

    async fn ask(&mut self, request: proto::LockRequest) -> proto::LockReply {
        self.requests.send(request).await.unwrap();
        self.replies.message().await.unwrap().unwrap()
    }
}

fn request(kind: proto::LockKind, start: u64, length: u64) -> proto::LockRequest {
    let path = bytes::Bytes::from_static(b"f");
    proto::LockRequest { path, kind: kind.into(), start, length, owner: 1, ..proto::LockRequest::default() }
}

// S-193
#[test]
fn locks_of_two_streams_exclude_each_other_until_one_ends() {
    let gate = Gate::start(&[]);
    gate.write("f", "contents");
    gate.runtime.block_on(async {
        let (mut one, mut other) = (Locks::open(gate.client()).await, Locks::open(gate.client()).await);
        let exclusive = |start, length| request(proto::LockKind::Exclusive, start, length);
        assert!(one.ask(exclusive(0, 4)).await.granted);
        let refused = other.ask(exclusive(2, 0)).await;
        assert_eq!((refused.granted, refused.errno), (false, 0));
        let test = proto::LockRequest { test: true, ..exclusive(2, 0) };
        let found = other.ask(test).await;
        assert!(!found.granted);
        assert_eq!((found.kind(), found.start, found.length), (proto::LockKind::Exclusive, 0, 4));
        assert!(other.ask(exclusive(4, 0)).await.granted, "the ranges do not overlap");
        assert!(one.ask(request(proto::LockKind::Unlock, 0, 1)).await.granted);
        assert!(other.ask(exclusive(0, 1)).await.granted);
        // Another owner in the same stream is another holder.
        let owner = proto::LockRequest { owner: 2, ..exclusive(1, 1) };
        assert!(!one.ask(owner).await.granted);
        let missing = proto::LockRequest { path: "none".into(), ..exclusive(0, 0) };
        assert_eq!(one.ask(missing).await.errno, 2);
        drop(one);
        while !other.ask(exclusive(1, 3)).await.granted {
            tokio::task::yield_now().await;
        }
    });
}

// S-193
#[test]
fn a_lock_excludes_programs_on_the_server() {
    let gate = Gate::start(&[]);
    gate.write("f", "contents");
    let file = std::fs::File::options().write(true).open(gate.file("f")).unwrap();
    gate.runtime.block_on(async {
        let mut locks = Locks::open(gate.client()).await;
        let flock = proto::LockRequest {
            family: proto::LockFamily::Flock.into(),
            ..request(proto::LockKind::Exclusive, 0, 0)
        };
        assert!(locks.ask(flock.clone()).await.granted);
        let is_locked =
            || rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err();
        assert!(is_locked(), "fd {}", file.as_raw_fd());
        let unlock = proto::LockRequest { kind: proto::LockKind::Unlock.into(), ..flock };
        assert!(locks.ask(unlock).await.granted);
        while is_locked() {
            tokio::task::yield_now().await;
        }
    });
}

/// More than one stream has files with locks, or a file has owners.
const MANY: u64 = 5000;

// S-193
#[test]
fn more_owners_than_hold_locks_at_a_time_lock_in_turn() {
    let gate = Gate::start(&[]);
    gate.write("f", "contents");
    gate.runtime.block_on(async {
        let mut locks = Locks::open(gate.client()).await;
        for owner in 0..MANY {
            let lock = proto::LockRequest { owner, ..request(proto::LockKind::Exclusive, 2, 3) };
            let reply = locks.ask(lock.clone()).await;
            assert_eq!((reply.granted, reply.errno), (true, 0), "owner {owner}");
            let kind = proto::LockKind::Unlock.into();
            // A part first: the rest is still locked.
            assert!(locks.ask(proto::LockRequest { kind, length: 1, ..lock.clone() }).await.granted);
            let other = proto::LockRequest { owner: owner + 1, ..lock.clone() };
            assert!(!locks.ask(other).await.granted);
            assert!(locks.ask(proto::LockRequest { kind, ..lock }).await.granted);
        }
    });
}

// S-193
#[test]
fn more_files_than_have_locks_at_a_time_are_tested_in_turn() {
    let gate = Gate::start(&[]);
    gate.write("f", "contents");
    for number in 0..MANY {
        std::fs::write(gate.file(&format!("file {number}")), "").unwrap();
    }
    gate.write("last", "contents");
    gate.runtime.block_on(async {
        let mut locks = Locks::open(gate.client()).await;
        for number in 0..MANY {
            let path = format!("file {number}").into();
            let test = proto::LockRequest { path, test: true, ..request(proto::LockKind::Exclusive, 0, 0) };
            let reply = locks.ask(test).await;
            assert_eq!((reply.granted, reply.errno), (true, 0), "file {number}");
        }
    });
}

#[test]
fn streams_of_locks_that_are_idle_keep_no_thread() {
    let gate = Gate::start(&[]);
    gate.write("f", "contents");
    gate.runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..4 {
            // A connection has 256 requests at a time.
            let client = Client::connect(format!("http://{}", gate.address)).await.unwrap();
            for _ in 0..200 {
                let mut locks = Locks::open(client.clone()).await;
                assert!(locks.ask(request(proto::LockKind::Unlock, 0, 0)).await.granted);
                streams.push(locks);
            }
        }
        assert_eq!(gate.client().lookup(path("f")).await.unwrap().into_inner().size, 8);
        for locks in &mut streams {
            assert!(locks.ask(request(proto::LockKind::Exclusive, 0, 0)).await.granted);
            assert!(locks.ask(request(proto::LockKind::Unlock, 0, 0)).await.granted);
        }
    });
}
