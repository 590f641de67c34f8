//! For every order of events: no session is served while another has unconfirmed changes, and every attach
//! succeeds.

use super::*;
use crate::sessions::JobKey;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use wirefs_lease::limits::{EXCLUSIVE_RECALL_MAX, TERM};

const CLIENTS: u8 = 3;

#[derive(Clone, Debug)]
enum Event {
    Attach(u8, bool),
    Disconnect(u8),
    /// A client sends Tping.
    Ping(u8),
    /// A client makes an unconfirmed change, if its session is exclusive.
    ChangeUnconfirmed(u8),
    /// A job ends.
    Finish(u8),
    /// A client receives its next message.
    Deliver(u8),
    /// A client without unconfirmed changes releases its leases.
    Release(u8),
    /// A client reads an object and may get a lease.
    Read(u8),
    Later(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let client = || 0..CLIENTS;
    prop_oneof![
        3 => (client(), prop::bool::weighted(0.8)).prop_map(|(client, all)| Event::Attach(client, all)),
        1 => client().prop_map(Event::Disconnect),
        4 => client().prop_map(Event::Ping),
        4 => client().prop_map(Event::ChangeUnconfirmed),
        4 => any::<u8>().prop_map(Event::Finish),
        10 => client().prop_map(Event::Deliver),
        1 => client().prop_map(Event::Release),
        1 => client().prop_map(Event::Read),
        1 => (1_u64..25).prop_map(Event::Later),
    ]
}

/// A message in transit to a client.
enum Message {
    Alone(u64, bool),
    Recall(u64),
    /// The reply to a request that was sent at this time.
    PingReply(Time),
    Done,
}

#[derive(Default)]
struct Client {
    connection: Option<ConnectionKey>,
    /// Its attach went to the tree.
    served: bool,
    inbox: VecDeque<Message>,
    /// Whether the last Ralone of this connection made the session exclusive.
    exclusive: bool,
    /// The serial of a recall that the client answers after its unconfirmed changes.
    pending_recall: Option<u64>,
    /// Changes that programs see as done and the server has not answered.
    unconfirmed: u64,
    /// When the last answered request of this connection was sent.
    answered: Option<Time>,
}

impl Client {
    /// Whether it may make unconfirmed changes.
    fn may_change_unconfirmed(&self, now: Time) -> bool {
        let has_lease = self.answered.is_some_and(|sent| now < sent + TERM);
        self.connection.is_some() && self.exclusive && has_lease
    }
}

struct Scenario {
    world: World,
    clients: Vec<Client>,
    connections: u64,
    tag: u16,
    /// Running jobs with the connections for their replies.
    running: BTreeMap<JobKey, Option<ConnectionKey>>,
}

impl Scenario {
    fn new() -> Scenario {
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        Scenario { world: World::leasing(), clients, connections: 100, tag: 0, running: BTreeMap::new() }
    }

    fn client(&mut self, client: u8) -> &mut Client {
        &mut self.clients[usize::from(client)]
    }

    fn at(&mut self, connection: ConnectionKey) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.connection == Some(connection))
    }

    fn follow(&mut self, outputs: Vec<ServerOutput>) {
        let mut attaches = Vec::new();
        for output in outputs {
            match output {
                ServerOutput::Reply { connection, reply, .. } => {
                    let now = self.world.now;
                    let Some(client) = self.at(connection) else { continue };
                    match reply {
                        Reply::Alone(Ralone { serial, alone }) => {
                            client.inbox.push_back(Message::Alone(serial, alone));
                        }
                        Reply::Recall(recall) => client.inbox.push_back(Message::Recall(recall.serial)),
                        Reply::Ping(_) => client.inbox.push_back(Message::PingReply(now)),
                        Reply::Put(_) | Reply::Error(_) => client.inbox.push_back(Message::Done),
                        _ => {}
                    }
                }
                ServerOutput::Execute(job) => {
                    self.running.insert(job.key, job.connection);
                }
                ServerOutput::Attach { connection, session, .. } => attaches.push((connection, session)),
                ServerOutput::Close { connection, .. } => self.remove(connection),
                _ => {}
            }
        }
        for (connection, session) in attaches {
            let now = self.world.now;
            let newcomer = self.clients.iter().position(|client| client.connection == Some(connection));
            for (other, client) in self.clients.iter().enumerate() {
                let is_other = Some(other) != newcomer;
                assert!(
                    !is_other || !client.may_change_unconfirmed(now),
                    "attached while client {other} may have unconfirmed changes"
                );
            }
            if let Some(client) = self.at(connection) {
                client.served = true;
            }
            let result = Ok(root());
            let outputs = self.world.handle(ServerInput::Attached { connection, session, result });
            self.follow(outputs);
        }
    }

    fn remove(&mut self, connection: ConnectionKey) {
        if let Some(client) = self.at(connection) {
            *client = Client { unconfirmed: client.unconfirmed, ..Client::default() };
        }
    }

    fn receive(&mut self, connection: ConnectionKey, tag: Tag, request: Request) {
        let outputs = self.world.receive(connection, tag, request);
        self.follow(outputs);
    }

    fn start_attach(&mut self, client: u8, all: bool) {
        if self.client(client).connection.is_some() {
            return;
        }
        self.connections += 1;
        let connection = ConnectionKey(self.connections);
        self.client(client).connection = Some(connection);
        let features = if all { ALL } else { FEATURE_LEASES };
        let outputs = start_attach(&mut self.world, connection, client + 1, features);
        self.follow(outputs);
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Attach(client, all) => self.start_attach(client, all),
            Event::Disconnect(client) => {
                if let Some(connection) = self.client(client).connection {
                    self.remove(connection);
                    let outputs = self.world.handle(ServerInput::Disconnected(connection));
                    self.follow(outputs);
                }
            }
            Event::Ping(client) => self.with_served(client, |scenario, connection| {
                scenario.tag = scenario.tag % 800 + 1;
                scenario.receive(connection, Tag(scenario.tag), ping());
            }),
            Event::ChangeUnconfirmed(client) => self.with_served(client, |scenario, connection| {
                let now = scenario.world.now;
                if scenario.client(client).may_change_unconfirmed(now) {
                    scenario.client(client).unconfirmed += 1;
                    scenario.tag = scenario.tag % 800 + 1;
                    scenario.receive(connection, Tag(1000 + scenario.tag), put(0));
                }
            }),
            Event::Finish(choice) => self.finish(choice),
            Event::Deliver(client) => self.deliver(client),
            Event::Release(client) => self.with_served(client, |scenario, connection| {
                let state = scenario.client(client);
                if state.unconfirmed == 0 {
                    // Its leases count again once a later request is answered.
                    state.answered = None;
                    state.inbox.retain(|message| !matches!(message, Message::PingReply(_)));
                    scenario.receive(connection, NOTAG, recalled(RELEASE_ALL));
                }
            }),
            Event::Read(client) => self.with_served(client, |scenario, connection| {
                scenario.world.learn(connection, id(7));
            }),
            Event::Later(seconds) => self.later(seconds),
        }
        self.check();
    }

    fn with_served(&mut self, client: u8, act: impl FnOnce(&mut Scenario, ConnectionKey)) {
        if let (Some(connection), true) = (self.client(client).connection, self.client(client).served) {
            act(self, connection);
        }
    }

    fn finish(&mut self, choice: u8) {
        let at = usize::from(choice) % self.running.len().max(1);
        let Some((key, connection)) = self.running.iter().nth(at).map(|(key, at)| (*key, *at)) else {
            return;
        };
        self.running.remove(&key);
        let reply = Reply::Error(wirefs_op::message::error::Rerror::from(Errno::NoSpace));
        let outputs = self.world.handle(ServerInput::Answered(key, reply));
        self.follow(outputs);
        let outputs = self.world.handle(ServerInput::Finished(key));
        self.follow(outputs);
        // The change of a disconnected client is done as well.
        if connection.is_none_or(|connection| self.at(connection).is_none()) {
            self.clients
                .iter_mut()
                .filter(|client| client.connection.is_none())
                .for_each(|client| client.unconfirmed = 0);
        }
    }

    fn deliver(&mut self, client: u8) {
        let state = self.client(client);
        let Some(connection) = state.connection else { return };
        match state.inbox.pop_front() {
            Some(Message::Alone(serial, exclusive)) => {
                state.exclusive = exclusive;
                state.pending_recall = (!exclusive).then_some(serial);
            }
            Some(Message::Recall(serial)) => self.receive(connection, NOTAG, recalled(serial)),
            Some(Message::PingReply(sent)) => state.answered = state.answered.max(Some(sent)),
            Some(Message::Done) => state.unconfirmed = state.unconfirmed.saturating_sub(1),
            None => return,
        }
        let state = self.client(client);
        if state.unconfirmed == 0
            && let Some(serial) = state.pending_recall.take()
        {
            self.receive(connection, NOTAG, recalled(serial));
        }
    }

    fn later(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.world.now = self.world.now + Duration::from_secs(1);
            let outputs = self.world.handle(ServerInput::Tick);
            self.follow(outputs);
            self.check();
        }
    }

    /// A client that may make unconfirmed changes is the only served one.
    fn check(&self) {
        let now = self.world.now;
        let unconfirmed = self.clients.iter().filter(|client| client.may_change_unconfirmed(now)).count();
        let served = self.clients.iter().filter(|client| client.served).count();
        assert!(unconfirmed == 0 || served == 1, "{unconfirmed} with unconfirmed changes, {served} served");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_session_is_served_while_another_has_unconfirmed_changes(events in prop::collection::vec(event(), 1..200), pings: bool) {
        let mut scenario = Scenario::new();
        for event in events {
            scenario.apply(event);
        }
        // Each held attach succeeds in the end, although no client answers recalls.
        for client in 0..CLIENTS {
            scenario.apply(Event::Attach(client, true));
        }
        for _ in 0..(EXCLUSIVE_RECALL_MAX + 2 * RECOVERY_PERIOD).as_secs() {
            scenario.later(1);
            for client in (0..CLIENTS).filter(|_| pings) {
                scenario.apply(Event::Ping(client));
            }
        }
        for client in &scenario.clients {
            prop_assert!(client.connection.is_none() || client.served, "an attach waits forever");
        }
        while !scenario.running.is_empty() {
            scenario.finish(0);
        }
        prop_assert_eq!(scenario.world.sessions.jobs(), 0);
    }
}
