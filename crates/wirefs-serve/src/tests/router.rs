//! Several exports of one router.

use super::super::{AccessCheck, ExportRouter, PeerRights};
use super::client::*;
use super::script::{PATIENCE, Script};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use wirefs_carrier::memory;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::version::{FEATURE_DATA, FEATURE_JOIN, Tversion};
use wirefs_op::wire::Text;
use wirefs_op::{Errno, NOTAG, Reply, Request, Tag};

/// Exports `a` and `b`; nobody may use `hidden`.
struct World {
    router: Arc<ExportRouter>,
    scripts: Vec<(&'static str, Arc<Script>)>,
}

impl World {
    fn new() -> World {
        World::with(Arc::new(|_, name| (name != "hidden").then(PeerRights::default)))
    }

    fn with(access: AccessCheck) -> World {
        let router = Arc::new(ExportRouter::new(access));
        let add = |name| {
            let (server, script) = server();
            router.add(name, server);
            (name, script)
        };
        World { scripts: ["a", "b", "hidden"].map(add).into(), router }
    }

    fn connect(&self) -> Client {
        let (near, far) = memory::pair().unwrap();
        let router = Arc::clone(&self.router);
        std::thread::spawn(move || router.serve(far));
        let mut client = Client::over(near);
        client.listen();
        client
    }

    /// Sends the first messages, and returns the first reply.
    fn come(&self, id: u8, features: u64, path: &'static [u8]) -> (Client, Reply) {
        let client = self.connect();
        let Request::Version(hello) = version(id) else { unreachable!("version() is a Tversion") };
        client.send(NOTAG, Request::Version(Tversion { features, ..hello }));
        client.send(Tag(0), attach(path));
        let (tag, reply) = client.receive();
        assert_eq!(tag, NOTAG);
        (client, reply)
    }

    fn attach(&self, id: u8, path: &'static [u8]) -> (Client, Reply) {
        let (client, reply) = self.come(id, FEATURE_DATA, path);
        assert!(matches!(reply, Reply::Version(_)), "{reply:?}");
        let (_, reply) = client.receive();
        (client, reply)
    }

    fn attached(&self, name: &str) -> usize {
        let script = &self.scripts.iter().find(|(known, _)| *known == name).unwrap().1;
        script.state(|state| state.attached.len())
    }
}

fn refusal(reply: &Reply) -> String {
    let Reply::Error(error) = reply else { panic!("{reply:?}") };
    assert_eq!(error.errno, Errno::AccessDenied);
    error.ename.to_string()
}

#[test]
fn the_first_component_of_the_path_chooses_the_export() {
    let world = World::new();
    let (_client, reply) = world.attach(1, b"a");
    assert!(matches!(reply, Reply::Attach(_)), "{reply:?}");
    // The rest of the path is below that export, whose tree has no such directory.
    let (_client, reply) = world.attach(2, b"b/nowhere");
    assert!(matches!(&reply, Reply::Error(error) if error.errno == Errno::NotFound), "{reply:?}");
    assert_eq!(["a", "b", "hidden"].map(|name| world.attached(name)), [1, 0, 0]);
}

#[test]
fn a_client_without_an_export_gets_the_names_that_it_may_use() {
    let world = World::new();
    for path in [&b""[..], b"absent", b"hidden"] {
        let (client, reply) = world.come(1, 0, path);
        let text = refusal(&reply);
        assert!(text.contains("/a, /b") && !text.contains("/hidden"), "{text}");
        assert!(client.until_closed().is_empty());
    }
    assert_eq!(world.attached("hidden"), 0);
}

#[test]
fn a_data_connection_belongs_to_the_export_of_its_session() {
    let world = World::new();
    let (_first, _) = world.attach(1, b"a");
    let (second, _) = world.attach(2, b"b");
    second.call(Tag(1), stat(b"f"));
    let join = |id| {
        let client = world.connect();
        let Request::Version(hello) = version(id) else { unreachable!("version() is a Tversion") };
        client.call(NOTAG, Request::Version(Tversion { features: FEATURE_JOIN, ..hello }))
    };
    assert!(matches!(join(2), Reply::Version(answer) if answer.features == FEATURE_JOIN && answer.resumed));
    assert!(matches!(join(9), Reply::Error(error) if error.errno == Errno::Stale));
}

#[test]
fn a_client_of_another_version_may_try_again() {
    let world = World::new();
    let client = world.connect();
    let Request::Version(hello) = version(1) else { unreachable!("version() is a Tversion") };
    let newer = Request::Version(Tversion { version: Text::new(b"op9"), ..hello });
    let reply = client.call(NOTAG, newer);
    assert!(matches!(reply, Reply::Version(answer) if answer.version.as_bytes() == b"unknown"));
    client.send(NOTAG, version(1));
    client.send(Tag(0), attach(b"a"));
    assert!(matches!(client.receive().1, Reply::Version(_)));
    assert!(matches!(client.receive().1, Reply::Attach(_)));
}

#[test]
fn a_review_ends_the_sessions_of_refused_peers_and_of_those_with_other_rights() {
    let rights = Arc::new(Mutex::new([Some(PeerRights { read_only: true }), Some(PeerRights::default())]));
    let current = Arc::clone(&rights);
    let world = World::with(Arc::new(move |_, name| current.lock().unwrap()[usize::from(name == "b")]));
    let (reader, _) = world.attach(1, b"a");
    let (writer, _) = world.attach(2, b"b");
    let refused = reader.call(Tag(1), put(b"f", 0, 1));
    assert!(matches!(refused, Reply::Error(error) if error.errno == Errno::ReadOnly));
    assert!(matches!(reader.call(Tag(1), get(b"f", GetMode::STAT, 0)), Reply::Get(_)));
    assert!(matches!(writer.call(Tag(1), put(b"f", 0, 1)), Reply::Put(_)));
    world.router.review();
    assert!(matches!(writer.call(Tag(2), put(b"f", 0, 1)), Reply::Put(_)), "nothing changed");
    rights.lock().unwrap()[1] = None;
    world.router.review();
    assert!(writer.until_closed().is_empty());
    assert!(matches!(reader.call(Tag(2), stat(b"f")), Reply::Get(_)));
    rights.lock().unwrap()[0] = Some(PeerRights::default());
    world.router.review();
    assert!(reader.until_closed().is_empty(), "its client connects again, with the new rights");
    let servers = world.router.servers();
    let until = Instant::now() + PATIENCE;
    while servers.values().any(|server| server.status().sessions > 0) {
        assert!(Instant::now() < until, "a session is left");
        std::thread::yield_now();
    }
}

#[test]
fn connections_that_send_nothing_are_closed_at_the_stop_and_when_there_are_too_many() {
    let world = World::new();
    let silent: Vec<Client> = (0..=super::super::router::UNROUTED_MAX).map(|_| world.connect()).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // One of them is closed for the last one.
        let is_over = &is_over;
        scope.spawn(move || {
            silent.into_iter().for_each(|client| drop(client.until_closed()));
            is_over.store(true, Ordering::SeqCst);
        });
        let (client, _) = world.attach(1, b"a");
        client.call(Tag(1), stat(b"f"));
        assert!(!is_over.load(Ordering::SeqCst));
        assert!(world.router.stop());
    });
    assert!(is_over.load(Ordering::SeqCst));
}

// S-180
#[test]
fn connection_without_first_messages_is_closed_in_time() {
    let access: AccessCheck = Arc::new(|_, _| Some(PeerRights::default()));
    let router = Arc::new(ExportRouter::with_patience(access, std::time::Duration::from_millis(20)));
    let connect = || {
        let (near, far) = memory::pair().unwrap();
        let router = Arc::clone(&router);
        std::thread::spawn(move || router.serve(far));
        Client::over_and_listening(near)
    };
    let silent = connect();
    assert_eq!(silent.until_closed(), []);
    // The watch begins anew.
    assert_eq!(connect().until_closed(), []);
}
