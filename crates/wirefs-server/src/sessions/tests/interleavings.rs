//! The guarantees hold for every order of events.

use super::world::*;
use crate::sessions::{ConnectionKey, Job, JobKey, ServerInput, ServerOutput};
use crate::tree::SessionKey;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::Order;
use wirefs_op::{NOTAG, Reply, Request, Tag};

/// An event; numbers select among the existing connections and jobs.
#[derive(Clone, Debug)]
enum Event {
    Connect,
    Resume(u8, u8),
    Ask(u8, u8, u8),
    Flush(u8, u8, u8),
    Disconnect(u8),
    Answering(u8),
    Replied(u8),
    SlotReleased(u8),
    Finished(u8),
    Later(u8),
    Noise(u8, Vec<u8>),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => Just(Event::Connect),
        2 => any::<(u8, u8)>().prop_map(|(connection, id)| Event::Resume(connection, id % 3)),
        12 => any::<(u8, u8, u8)>().prop_map(|(connection, tag, what)| Event::Ask(connection, tag, what)),
        3 => any::<(u8, u8, u8)>().prop_map(|(connection, tag, old)| Event::Flush(connection, tag, old)),
        1 => any::<u8>().prop_map(Event::Disconnect),
        3 => any::<u8>().prop_map(Event::Answering),
        6 => any::<u8>().prop_map(Event::Replied),
        2 => any::<u8>().prop_map(Event::SlotReleased),
        8 => any::<u8>().prop_map(Event::Finished),
        1 => any::<u8>().prop_map(Event::Later),
        1 => (any::<u8>(), noise()).prop_map(|(connection, bytes)| Event::Noise(connection, bytes)),
    ]
}

/// Random bytes. One in 10,000 draws would be a valid Tflush, so some are drawn on purpose.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..40),
        1 => any::<(u16, u16)>().prop_map(|(tag, old)| flush(Tag(old)).encode(Tag(tag)).to_body().to_vec()),
    ]
}

/// The expected state.
#[derive(Default)]
struct Observer {
    live: Vec<ConnectionKey>,
    next_connection: u64,
    /// Unfinished jobs, and whether they have a reply.
    running: BTreeMap<JobKey, (Job, bool)>,
    /// The job with the write slot.
    slots: BTreeMap<SessionKey, JobKey>,
    /// The number of the last change that each session started; changes are numbered in the order of sending.
    started: BTreeMap<SessionKey, u64>,
    sent: u64,
    flushing: BTreeSet<(ConnectionKey, Tag)>,
    ended: BTreeSet<SessionKey>,
}

impl Observer {
    fn connection(&self, choice: u8) -> Option<ConnectionKey> {
        self.live.get(usize::from(choice) % self.live.len().max(1)).copied()
    }

    fn job(&self, choice: u8) -> Option<JobKey> {
        self.running.keys().nth(usize::from(choice) % self.running.len().max(1)).copied()
    }

    fn gone(&mut self, connection: ConnectionKey) {
        self.live.retain(|live| *live != connection);
        self.flushing.retain(|(of, _)| *of != connection);
    }

    fn watch(&mut self, world: &mut World, outputs: Vec<ServerOutput>) {
        let mut attaches = Vec::new();
        for output in outputs {
            match output {
                ServerOutput::Reply { connection, tag, reply } => {
                    if matches!(reply, Reply::Flush(_)) {
                        assert!(self.flushing.remove(&(connection, tag)), "unexpected Rflush");
                    }
                }
                ServerOutput::Attach { connection, session, .. } => attaches.push((connection, session)),
                ServerOutput::Execute(job) => self.started(job),
                ServerOutput::Stop(key) => {
                    let order = self.running.get(&key).map(|(job, _)| job.order);
                    assert!(matches!(order, Some(Order::Free | Order::Ordered)), "{key:?} stopped");
                }
                ServerOutput::EndSession(session) => {
                    assert!(self.running.values().all(|(job, _)| job.session != session));
                    assert!(self.ended.insert(session), "ended twice");
                }
                ServerOutput::Verify { .. } => unreachable!("no leases are granted"),
                ServerOutput::LoadLedger { .. }
                | ServerOutput::AppendLedger(..)
                | ServerOutput::LedgerClosed(_) => {
                    unreachable!("ledgers are not saved")
                }
                ServerOutput::AwaitColocated(_) | ServerOutput::ExclusiveEnded => {
                    unreachable!("there are no colocated servers")
                }
                ServerOutput::Close { connection, .. } => self.gone(connection),
            }
        }
        for (connection, session) in attaches {
            let result = Ok(root());
            let outputs = world.handle(ServerInput::Attached { connection, session, result });
            self.watch(world, outputs);
        }
    }

    fn started(&mut self, job: Job) {
        assert!(!self.ended.contains(&job.session), "a job after the end");
        if job.order != Order::Free {
            assert!(self.slots.insert(job.session, job.key).is_none(), "two jobs with the write slot");
        }
        if let Request::Put(put) = &job.request {
            let last = self.started.insert(job.session, put.offset);
            assert!(last.is_none_or(|last| last < put.offset), "changes out of order");
        }
        self.running.insert(job.key, (job, false));
    }

    fn release_slot(&mut self, key: JobKey) {
        self.slots.retain(|_, holder| *holder != key);
    }
}

fn apply(world: &mut World, observer: &mut Observer, event: Event) {
    let input = match event {
        Event::Connect if observer.live.len() < 6 => {
            observer.next_connection += 1;
            let key = ConnectionKey(100 + observer.next_connection);
            observer.live.push(key);
            Some(ServerInput::Connected(key))
        }
        Event::Connect => None,
        Event::Resume(choice, id) => observer.connection(choice).map(|connection| {
            let outputs =
                world.handle(ServerInput::Received(connection, version(id, 1 << 20).encode(NOTAG).to_body()));
            observer.watch(world, outputs);
            ServerInput::Received(connection, attach(b"").encode(Tag(0)).to_body())
        }),
        Event::Ask(choice, tag, what) => observer.connection(choice).map(|connection| {
            observer.sent += 1;
            let request = match what % 6 {
                0 | 1 => put(observer.sent),
                2 => stat(),
                3 => ordered_stat(),
                4 => commit(),
                _ => lock(),
            };
            ServerInput::Received(connection, request.encode(Tag(u16::from(tag))).to_body())
        }),
        Event::Flush(choice, tag, old) => observer.connection(choice).map(|connection| {
            let tag = Tag(256 + u16::from(tag));
            observer.flushing.insert((connection, tag));
            ServerInput::Received(connection, flush(Tag(u16::from(old))).encode(tag).to_body())
        }),
        Event::Disconnect(choice) => observer.connection(choice).map(|connection| {
            observer.gone(connection);
            ServerInput::Disconnected(connection)
        }),
        Event::Answering(choice) => {
            let unanswered = |key: &JobKey| observer.running.get(key).is_some_and(|(_, answered)| !answered);
            observer.job(choice).filter(unanswered).map(ServerInput::Answering)
        }
        Event::Replied(choice) => observer.job(choice).and_then(|key| {
            let answered = &mut observer.running.get_mut(&key)?.1;
            (!std::mem::replace(answered, true)).then_some(ServerInput::Replied(key))
        }),
        Event::SlotReleased(choice) => observer.job(choice).map(|key| {
            observer.release_slot(key);
            ServerInput::SlotReleased(key)
        }),
        Event::Finished(choice) => observer.job(choice).map(|key| {
            observer.release_slot(key);
            observer.running.remove(&key);
            ServerInput::Finished(key)
        }),
        Event::Later(seconds) => {
            world.now = world.now + std::time::Duration::from_secs(seconds.into());
            Some(ServerInput::Tick)
        }
        Event::Noise(choice, bytes) => observer.connection(choice).map(|connection| {
            let body = Bytes::from(bytes);
            if let Ok((tag, Request::Flush(_))) = Request::decode(body.clone()) {
                observer.flushing.insert((connection, tag));
            }
            ServerInput::Received(connection, body)
        }),
    };
    if let Some(input) = input {
        let outputs = world.handle(input);
        observer.watch(world, outputs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn guarantees_hold_for_every_order_of_events(events in prop::collection::vec(event(), 1..250)) {
        let mut world = World::new();
        let mut observer = Observer { live: vec![A, B], ..Observer::default() };
        for event in events {
            apply(&mut world, &mut observer, event);
            prop_assert!(world.sessions.connections() == observer.live.len());
        }
        // All jobs end, and no state is left.
        let outputs = world.handle(ServerInput::Stop);
        observer.watch(&mut world, outputs);
        while let Some(key) = observer.job(0) {
            observer.release_slot(key);
            observer.running.remove(&key);
            let outputs = world.handle(ServerInput::Finished(key));
            observer.watch(&mut world, outputs);
        }
        prop_assert!(observer.flushing.is_empty(), "a Tflush without Rflush");
        prop_assert_eq!(world.sessions.jobs(), 0);
        prop_assert_eq!(world.sessions.sessions(), 0);
        prop_assert_eq!(world.sessions.connections(), 0);
        prop_assert_eq!(world.sessions.deadline(), None);
    }

    #[test]
    fn random_bytes_close_their_connection_and_no_other(
        attached: bool,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut world = World::new();
        world.join(B, 2);
        if attached {
            world.join(A, 1);
        }
        let understood = Request::decode(bytes.clone().into()).is_ok();
        let outputs = world.handle(ServerInput::Received(A, bytes.into()));
        let blamed = matches!(closed(&outputs, A), Some(crate::blame::CloseReason::Fault(_)));
        prop_assert!(blamed || understood);
        prop_assert!(closed(&outputs, B).is_none());
        world.execute(B, Tag(5), stat());
    }

    #[test]
    fn damaged_messages_affect_no_other_connection(
        which in 0_usize..7,
        at in any::<prop::sample::Index>(),
        byte: u8,
        cut in any::<prop::sample::Index>(),
    ) {
        let messages = [put(3), stat(), commit(), lock(), flush(Tag(1)), attach(b"x"), version(1, 1 << 20)];
        let mut body = messages[which].encode(Tag(3)).to_body().to_vec();
        let position = at.index(body.len());
        body[position] = byte;
        body.truncate(cut.index(body.len()) + 1);
        let mut world = World::attached();
        world.join(B, 2);
        let outputs = world.handle(ServerInput::Received(A, body.into()));
        prop_assert!(closed(&outputs, B).is_none());
        world.execute(B, Tag(5), stat());
    }
}
