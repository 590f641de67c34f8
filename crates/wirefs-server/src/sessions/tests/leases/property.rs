//! For every order of events: no client has a lease on an object while another changes it, and each change
//! completes.

use super::*;
use crate::sessions::{ConnectionKey, Job, JobKey};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use wirefs_lease::limits::TERM;
use wirefs_op::{Reply, Time};

const CLIENTS: u8 = 3;
const OBJECTS: u64 = 4;

#[derive(Clone, Debug)]
enum Event {
    /// A client reads an object.
    Read(u8, u64),
    /// A client changes an object.
    Change(u8, u64),
    /// A job ends.
    Finish(u8),
    /// A client receives its next message.
    Deliver(u8),
    Disconnect(u8),
    Connect(u8),
    Later(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let (client, object) = (0..CLIENTS, 0..OBJECTS);
    prop_oneof![
        6 => (client.clone(), object.clone()).prop_map(|(client, object)| Event::Read(client, object)),
        5 => (client.clone(), object).prop_map(|(client, object)| Event::Change(client, object)),
        6 => any::<u8>().prop_map(Event::Finish),
        12 => client.clone().prop_map(Event::Deliver),
        1 => client.clone().prop_map(Event::Disconnect),
        2 => client.prop_map(Event::Connect),
        1 => (1_u64..25).prop_map(Event::Later),
    ]
}

/// A message in transit to a client.
enum Message {
    Recall(u64, Vec<RecallItem>),
    /// The reply to a request that was sent at this time, with the leased object.
    Reply {
        sent: Time,
        leased: Option<u64>,
    },
}

#[derive(Default)]
struct Client {
    connection: Option<ConnectionKey>,
    /// When the connection began.
    since: Time,
    inbox: VecDeque<Message>,
    leased_objects: BTreeSet<u64>,
    /// When the last answered request was sent.
    answered: Option<Time>,
    /// When each object was recalled last, and when everything was.
    recalled: BTreeMap<Option<u64>, Time>,
}

impl Client {
    fn has_lease(&self, object: u64, now: Time) -> bool {
        let counts = self.answered.is_some_and(|sent| sent >= self.since && now < sent + TERM);
        self.connection.is_some() && counts && self.leased_objects.contains(&object)
    }

    fn invalidate(&mut self, now: Time, items: &[RecallItem]) {
        if items.is_empty() {
            self.leased_objects.clear();
            self.recalled.insert(None, now);
        }
        for item in items {
            self.leased_objects.remove(&item.id.ino);
            self.recalled.insert(Some(item.id.ino), now);
        }
    }

    fn record_overtaken(&self, object: u64, sent: Time) -> bool {
        [None, Some(object)].iter().any(|what| self.recalled.get(what).is_some_and(|at| *at >= sent))
    }
}

struct Scenario {
    world: World,
    clients: Vec<Client>,
    connections: u64,
    tag: u16,
    /// Running changes: client and object.
    running: BTreeMap<JobKey, (u8, u64)>,
    /// Unfinished changes: client, object and start.
    changes: BTreeMap<JobKey, (u8, u64, Time)>,
}

impl Scenario {
    fn new() -> Scenario {
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        let world = World::leasing();
        let mut scenario = Scenario {
            world,
            clients,
            connections: 100,
            tag: 0,
            running: BTreeMap::new(),
            changes: BTreeMap::new(),
        };
        for client in 0..CLIENTS {
            scenario.connect(client);
        }
        scenario
    }

    fn client(&mut self, client: u8) -> &mut Client {
        &mut self.clients[usize::from(client)]
    }

    fn connect(&mut self, client: u8) {
        if self.client(client).connection.is_some() {
            return;
        }
        self.connections += 1;
        let connection = ConnectionKey(self.connections);
        let Some((_, leases, outputs)) = self.world.try_to_join_leasing(connection, client + 1) else {
            let runs = self.changes.values().any(|(whose, ..)| *whose == client);
            return assert!(runs, "client {client} is refused without running changes");
        };
        let now = self.world.now;
        let joined = self.client(client);
        joined.connection = Some(connection);
        joined.since = now;
        if !leases.unwrap().kept {
            joined.leased_objects.clear();
        }
        self.follow(outputs);
    }

    fn disconnect(&mut self, client: u8) {
        let gone = self.client(client);
        gone.inbox.clear();
        if let Some(connection) = gone.connection.take() {
            let outputs = self.world.handle(ServerInput::Disconnected(connection));
            self.follow(outputs);
        }
    }

    fn follow(&mut self, outputs: Vec<ServerOutput>) {
        for output in outputs {
            match output {
                ServerOutput::Reply { connection, reply: Reply::Recall(recall), .. } => {
                    let whose = self.clients.iter_mut().find(|client| client.connection == Some(connection));
                    whose
                        .expect("a recall over an unknown connection")
                        .inbox
                        .push_back(Message::Recall(recall.serial, recall.items));
                }
                ServerOutput::Execute(job) => self.attempt(&job),
                ServerOutput::Close { connection, .. } => {
                    let whose = self.clients.iter_mut().find(|client| client.connection == Some(connection));
                    if let Some(client) = whose {
                        client.connection = None;
                        client.inbox.clear();
                    }
                }
                ServerOutput::Reply { .. } | ServerOutput::Attach { .. } | ServerOutput::Stop(_) => {}
                ServerOutput::EndSession(_) | ServerOutput::Verify { .. } => {}
                ServerOutput::LoadLedger { .. }
                | ServerOutput::AppendLedger(..)
                | ServerOutput::LedgerClosed(_) => {}
                ServerOutput::AwaitColocated(_) | ServerOutput::ExclusiveEnded => {}
            }
        }
    }

    /// Executes a change, or parks it.
    fn attempt(&mut self, job: &Job) {
        let Request::Put(put) = &job.request else { return };
        let (client, object) = self.changes.get(&job.key).map_or_else(
            || ((put.offset >> 8) as u8, put.offset & 0xff),
            |(client, object, _)| (*client, *object),
        );
        let now = self.world.now;
        self.changes.entry(job.key).or_insert((client, object, now));
        let (outcome, outputs) = self.world.touch(job.key, &[Touched::object(id(object))]);
        self.follow(outputs);
        if outcome.is_err() {
            let outputs = self.world.handle(ServerInput::Parked(job.key, job.request.clone()));
            return self.follow(outputs);
        }
        let now = self.world.now;
        for (other, state) in (0..).zip(&self.clients) {
            assert!(
                other == client || !state.has_lease(object, now),
                "{other} has a lease on an object that {client} changes"
            );
        }
        self.running.insert(job.key, (client, object));
    }

    fn ask(&mut self, client: u8, request: Request) -> Option<Vec<ServerOutput>> {
        let connection = self.client(client).connection?;
        self.tag = self.tag % 800 + 1;
        Some(self.world.receive(connection, Tag(self.tag), request))
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Read(client, object) => {
                let sent = self.world.now;
                let Some(outputs) = self.ask(client, stat()) else { return };
                let job = executed(&outputs);
                self.follow(outputs);
                let Some(job) = job else { return };
                let leased = self.world.grant(job.key, id(object)).then_some(object);
                self.client(client).inbox.push_back(Message::Reply { sent, leased });
                let outputs = self.world.handle(ServerInput::Finished(job.key));
                self.follow(outputs);
            }
            Event::Change(client, object) => {
                if let Some(outputs) = self.ask(client, put(u64::from(client) << 8 | object)) {
                    self.follow(outputs);
                }
            }
            Event::Finish(choice) => {
                let at = usize::from(choice) % self.running.len().max(1);
                if let Some(key) = self.running.keys().nth(at).copied() {
                    self.finish(key);
                }
            }
            Event::Deliver(client) => self.deliver(client),
            Event::Disconnect(client) => self.disconnect(client),
            Event::Connect(client) => self.connect(client),
            Event::Later(seconds) => self.later(seconds),
        }
    }

    fn finish(&mut self, key: JobKey) {
        self.running.remove(&key);
        self.changes.remove(&key);
        let outputs = self.world.handle(ServerInput::Finished(key));
        self.follow(outputs);
    }

    fn deliver(&mut self, client: u8) {
        let now = self.world.now;
        let state = self.client(client);
        match state.inbox.pop_front() {
            Some(Message::Recall(serial, items)) => {
                state.invalidate(now, &items);
                if let Some(connection) = state.connection {
                    let outputs = self.world.receive(connection, NOTAG, recalled(serial));
                    self.follow(outputs);
                }
            }
            Some(Message::Reply { sent, leased }) => {
                state.answered = state.answered.max(Some(sent));
                if let Some(object) = leased.filter(|object| !state.record_overtaken(*object, sent)) {
                    state.leased_objects.insert(object);
                }
            }
            None => {}
        }
    }

    fn later(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.world.now = self.world.now + Duration::from_secs(1);
            let outputs = self.world.handle(ServerInput::Tick);
            self.follow(outputs);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_client_has_a_lease_on_an_object_that_another_changes(events in prop::collection::vec(event(), 1..300)) {
        let mut scenario = Scenario::new();
        for event in events {
            scenario.apply(event);
        }
        // No client answers any more: all changes complete after the longest lifetime of leases.
        for _ in 0..120 {
            scenario.later(1);
            while let Some(key) = scenario.running.keys().next().copied() {
                scenario.finish(key);
            }
        }
        prop_assert!(scenario.changes.is_empty(), "a change waits forever");
        prop_assert_eq!(scenario.world.sessions.jobs(), 0);
    }
}
