//! Whatever happens in whatever order: nobody is served while another goes ahead, and whoever comes is let in.

use super::*;
use crate::sessions::JobKey;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use wirefs_lease::limits::{EXCLUSIVE_RECALL_MAX, TERM};

const CLIENTS: u8 = 3;

#[derive(Clone, Debug)]
enum Event {
    Come(u8, bool),
    Disconnect(u8),
    /// Asks for a sign of life.
    Ping(u8),
    /// Goes ahead by one change, if it may.
    GoAhead(u8),
    /// What runs ends.
    Finish(u8),
    /// The next message reaches its client.
    Deliver(u8),
    /// The client says that it goes ahead of nothing, if so it is.
    Rest(u8),
    /// A client asks about something that it may believe.
    Learn(u8),
    Later(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let client = || 0..CLIENTS;
    prop_oneof![
        3 => (client(), prop::bool::weighted(0.8)).prop_map(|(client, all)| Event::Come(client, all)),
        1 => client().prop_map(Event::Disconnect),
        4 => client().prop_map(Event::Ping),
        4 => client().prop_map(Event::GoAhead),
        4 => any::<u8>().prop_map(Event::Finish),
        10 => client().prop_map(Event::Deliver),
        1 => client().prop_map(Event::Rest),
        1 => client().prop_map(Event::Learn),
        1 => (1_u64..25).prop_map(Event::Later),
    ]
}

/// What is on its way to a client.
enum Message {
    Alone(u64, bool),
    Recall(u64),
    /// To a request that was sent then.
    Pong(Time),
    Done,
}

#[derive(Default)]
struct Client {
    connection: Option<ConnectionKey>,
    /// The tree was asked for it, so that it is served.
    served: bool,
    inbox: VecDeque<Message>,
    /// What it was told last over this connection.
    alone: bool,
    /// It has to say that all is there that it went ahead of.
    owes: Option<u64>,
    /// Changes that were answered to programs and not by the server.
    ahead: u64,
    /// When the last request was sent over this connection that was answered.
    answered: Option<Time>,
}

impl Client {
    /// Whether it may answer its programs before the server.
    fn goes_ahead(&self, now: Time) -> bool {
        let believes = self.answered.is_some_and(|sent| now < sent + TERM);
        self.connection.is_some() && self.alone && believes
    }
}

struct Play {
    world: World,
    clients: Vec<Client>,
    connections: u64,
    tag: u16,
    /// With the connection that the reply goes to.
    running: BTreeMap<JobKey, Option<ConnectionKey>>,
}

impl Play {
    fn new() -> Play {
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        Play { world: World::leasing(), clients, connections: 100, tag: 0, running: BTreeMap::new() }
    }

    fn client(&mut self, client: u8) -> &mut Client {
        &mut self.clients[usize::from(client)]
    }

    fn at(&mut self, connection: ConnectionKey) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.connection == Some(connection))
    }

    fn follow(&mut self, outputs: Vec<Output>) {
        let mut asked = Vec::new();
        for output in outputs {
            match output {
                Output::Reply { connection, reply, .. } => {
                    let now = self.world.now;
                    let Some(client) = self.at(connection) else { continue };
                    match reply {
                        Reply::Alone(Ralone { serial, alone }) => {
                            client.inbox.push_back(Message::Alone(serial, alone));
                        }
                        Reply::Recall(recall) => client.inbox.push_back(Message::Recall(recall.serial)),
                        Reply::Ping(_) => client.inbox.push_back(Message::Pong(now)),
                        Reply::Put(_) | Reply::Error(_) => client.inbox.push_back(Message::Done),
                        _ => {}
                    }
                }
                Output::Execute(job) => {
                    self.running.insert(job.key, job.connection);
                }
                Output::Attach { connection, session, .. } => asked.push((connection, session)),
                Output::Close { connection, .. } => self.forget(connection),
                _ => {}
            }
        }
        for (connection, session) in asked {
            let now = self.world.now;
            let newcomer = self.clients.iter().position(|client| client.connection == Some(connection));
            for (other, client) in self.clients.iter().enumerate() {
                let is_other = Some(other) != newcomer;
                assert!(!is_other || !client.goes_ahead(now), "let in while client {other} goes ahead");
            }
            if let Some(client) = self.at(connection) {
                client.served = true;
            }
            let result = Ok(root());
            let outputs = self.world.handle(Input::Attached { connection, session, result });
            self.follow(outputs);
        }
    }

    fn forget(&mut self, connection: ConnectionKey) {
        if let Some(client) = self.at(connection) {
            *client = Client { ahead: client.ahead, ..Client::default() };
        }
    }

    fn receive(&mut self, connection: ConnectionKey, tag: Tag, request: Request) {
        let outputs = self.world.receive(connection, tag, request);
        self.follow(outputs);
    }

    fn come(&mut self, client: u8, all: bool) {
        if self.client(client).connection.is_some() {
            return;
        }
        self.connections += 1;
        let connection = ConnectionKey(self.connections);
        self.client(client).connection = Some(connection);
        let features = if all { ALL } else { FEATURE_LEASES };
        let outputs = come(&mut self.world, connection, client + 1, features);
        self.follow(outputs);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Come(client, all) => self.come(client, all),
            Event::Disconnect(client) => {
                if let Some(connection) = self.client(client).connection {
                    self.forget(connection);
                    let outputs = self.world.handle(Input::Disconnected(connection));
                    self.follow(outputs);
                }
            }
            Event::Ping(client) => self.with_served(client, |play, connection| {
                play.tag = play.tag % 800 + 1;
                play.receive(connection, Tag(play.tag), ping());
            }),
            Event::GoAhead(client) => self.with_served(client, |play, connection| {
                let now = play.world.now;
                if play.client(client).goes_ahead(now) {
                    play.client(client).ahead += 1;
                    play.tag = play.tag % 800 + 1;
                    play.receive(connection, Tag(1000 + play.tag), put(0));
                }
            }),
            Event::Finish(choice) => self.finish(choice),
            Event::Deliver(client) => self.deliver(client),
            Event::Rest(client) => self.with_served(client, |play, connection| {
                let state = play.client(client);
                if state.ahead == 0 {
                    // It believes nothing until a request that it sends later is answered.
                    state.answered = None;
                    state.inbox.retain(|message| !matches!(message, Message::Pong(_)));
                    play.receive(connection, NOTAG, recalled(RELEASE_ALL));
                }
            }),
            Event::Learn(client) => self.with_served(client, |play, connection| {
                play.world.learn(connection, id(7));
            }),
            Event::Later(seconds) => self.later(seconds),
        }
        self.check();
    }

    fn with_served(&mut self, client: u8, act: impl FnOnce(&mut Play, ConnectionKey)) {
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
        let outputs = self.world.handle(Input::Answered(key, reply));
        self.follow(outputs);
        let outputs = self.world.handle(Input::Finished(key));
        self.follow(outputs);
        // One whose connection is gone is done as well, and heard of later.
        if connection.is_none_or(|connection| self.at(connection).is_none()) {
            self.clients
                .iter_mut()
                .filter(|client| client.connection.is_none())
                .for_each(|client| client.ahead = 0);
        }
    }

    fn deliver(&mut self, client: u8) {
        let state = self.client(client);
        let Some(connection) = state.connection else { return };
        match state.inbox.pop_front() {
            Some(Message::Alone(serial, alone)) => {
                state.alone = alone;
                state.owes = (!alone).then_some(serial);
            }
            Some(Message::Recall(serial)) => self.receive(connection, NOTAG, recalled(serial)),
            Some(Message::Pong(sent)) => state.answered = state.answered.max(Some(sent)),
            Some(Message::Done) => state.ahead = state.ahead.saturating_sub(1),
            None => return,
        }
        let state = self.client(client);
        if state.ahead == 0
            && let Some(serial) = state.owes.take()
        {
            self.receive(connection, NOTAG, recalled(serial));
        }
    }

    fn later(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.world.now = self.world.now + Duration::from_secs(1);
            let outputs = self.world.handle(Input::Tick);
            self.follow(outputs);
            self.check();
        }
    }

    /// Who goes ahead is the only one that is served.
    fn check(&self) {
        let now = self.world.now;
        let ahead = self.clients.iter().filter(|client| client.goes_ahead(now)).count();
        let served = self.clients.iter().filter(|client| client.served).count();
        assert!(ahead == 0 || served == 1, "{ahead} go ahead, {served} are served");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_served_while_another_goes_ahead(events in prop::collection::vec(event(), 1..200), pings: bool) {
        let mut play = Play::new();
        for event in events {
            play.happen(event);
        }
        // Whoever waits is let in in the end, though nobody answers, be they heard or not.
        for client in 0..CLIENTS {
            play.happen(Event::Come(client, true));
        }
        for _ in 0..(EXCLUSIVE_RECALL_MAX + 2 * RECOVERY).as_secs() {
            play.later(1);
            for client in (0..CLIENTS).filter(|_| pings) {
                play.happen(Event::Ping(client));
            }
        }
        for client in &play.clients {
            prop_assert!(client.connection.is_none() || client.served, "somebody waits for ever");
        }
        while !play.running.is_empty() {
            play.finish(0);
        }
        prop_assert_eq!(play.world.sessions.jobs(), 0);
    }
}
