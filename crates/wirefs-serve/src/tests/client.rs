//! A scripted client, and constructors of requests.

use super::super::{ServeOptions, ServeStatus, Server};
use super::script::{PATIENCE, Script};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Instant;
use wirefs_carrier::tls::PublicKey;
use wirefs_carrier::{Carrier, Class, FrameSource, SendQueue, memory};
use wirefs_op::message::alone::Ralone;
use wirefs_op::message::attach::Tattach;
use wirefs_op::message::commit::{CommitScope, Tcommit};
use wirefs_op::message::flush::Tflush;
use wirefs_op::message::get::{GetMode, Rget, Tget};
use wirefs_op::message::lock::{LockAction, Tlock};
use wirefs_op::message::ping::Tping;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::recall::{Rrecall, Trecalled};
use wirefs_op::message::target::{Fd, Target};
use wirefs_op::message::version::{BootId, FEATURE_LEASES, SessionId, Tversion, VERSION};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{Frame, LockFamily, LockKind, LockRange, NOTAG, Reply, Request, SetStat, Tag, TreePath};

/// A server of a scripted tree.
pub(super) fn server() -> (Server, Arc<Script>) {
    server_with(ServeOptions::new(BootId(5)))
}

pub(super) fn server_with(options: ServeOptions) -> (Server, Arc<Script>) {
    let script = Arc::new(Script::default());
    let server = Server::start(script.clone(), options).unwrap();
    (server, script)
}

/// Waits until the server's status satisfies a condition.
pub(super) fn await_status(server: &Server, holds: impl Fn(&ServeStatus) -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds(&server.status()) {
        assert!(Instant::now() < until, "never came: {:?}", server.status());
        std::thread::yield_now();
    }
}

/// One end of a connection to a server.
pub(super) struct Client {
    send_queue: SendQueue,
    source: Option<Box<dyn FrameSource>>,
    replies: Option<Receiver<(Tag, Reply)>>,
}

impl Client {
    /// Connects, sends nothing and reads nothing.
    pub(super) fn silent(server: &Server) -> Client {
        let (near, far) = memory::pair().unwrap();
        server.connect(far).unwrap();
        Client::over(near)
    }

    /// Connects with this proved key, and reads.
    pub(super) fn with_key(server: &Server, key: [u8; 32]) -> Client {
        let (near, mut far) = memory::pair().unwrap();
        far.peer.identity = Some(PublicKey::from_raw(key));
        server.connect(far).unwrap();
        Client::over_and_listening(near)
    }

    pub(super) fn over(carrier: Carrier) -> Client {
        Client {
            send_queue: SendQueue::start(carrier.sink, carrier.closer, |_| {}),
            source: Some(carrier.source),
            replies: None,
        }
    }

    pub(super) fn over_and_listening(carrier: Carrier) -> Client {
        let mut client = Client::over(carrier);
        client.listen();
        client
    }

    /// Connects and reads.
    pub(super) fn connect(server: &Server) -> Client {
        let mut client = Client::silent(server);
        client.listen();
        client
    }

    /// Connects, negotiates the version and attaches.
    pub(super) fn attached(server: &Server, id: u8) -> Client {
        let client = Client::connect(server);
        client.join(id);
        client
    }

    /// Connects, negotiates the version and leases, and attaches.
    pub(super) fn leasing(server: &Server, id: u8) -> Client {
        let client = Client::connect(server);
        let Request::Version(hello) = version(id) else { unreachable!("version() is a Tversion") };
        let features = FEATURE_LEASES;
        let reply = client.call(NOTAG, Request::Version(Tversion { features, ..hello }));
        assert!(matches!(reply, Reply::Version(answer) if answer.features == FEATURE_LEASES));
        let reply = client.call(Tag(0), attach(b""));
        assert!(matches!(reply, Reply::Attach(answer) if answer.leases.is_some() && answer.root.leased));
        client
    }

    /// Connects, negotiates these features and requests to attach, without waiting for the reply.
    pub(super) fn coming(server: &Server, id: u8, features: u64) -> Client {
        let client = Client::connect(server);
        let Request::Version(hello) = version(id) else { unreachable!("version() is a Tversion") };
        assert!(matches!(
            client.call(NOTAG, Request::Version(Tversion { features, ..hello })),
            Reply::Version(_)
        ));
        client.send(Tag(0), attach(b""));
        client
    }

    /// Receives the reply to the attach.
    pub(super) fn enters(&self) {
        let reply = self.receive();
        assert!(matches!(reply, (Tag(0), Reply::Attach(_))), "{reply:?}");
    }

    /// Receives a message about exclusivity.
    pub(super) fn receive_alone(&self) -> Ralone {
        let (tag, reply) = self.receive();
        let Reply::Alone(alone) = reply else { panic!("{reply:?}") };
        assert_eq!(tag, NOTAG);
        alone
    }

    /// Yields exclusivity.
    pub(super) fn yield_exclusivity(&self, told: &Ralone) {
        self.send(NOTAG, Request::Recalled(Trecalled { serial: told.serial }));
    }

    /// Requests an object's attributes; returns whether they are leased.
    pub(super) fn learn(&self, tag: Tag, path: &'static [u8]) -> bool {
        let reply = self.call(tag, stat(path));
        let Reply::Get(Rget { stat: Some(stat), .. }) = reply else { panic!("{reply:?}") };
        stat.leased
    }

    /// Receives a recall.
    pub(super) fn receive_recall(&self) -> Rrecall {
        let (tag, reply) = self.receive();
        let Reply::Recall(recall) = reply else { panic!("{reply:?}") };
        assert_eq!(tag, NOTAG);
        recall
    }

    /// Acknowledges a recall.
    pub(super) fn forget(&self, recall: &Rrecall) {
        self.send(NOTAG, Request::Recalled(Trecalled { serial: recall.serial }));
    }

    /// Returns whether no message has arrived.
    pub(super) fn has_nothing(&self) -> bool {
        matches!(self.replies.as_ref().unwrap().try_recv(), Err(TryRecvError::Empty))
    }

    /// Starts to receive.
    pub(super) fn listen(&mut self) {
        let mut source = self.source.take().unwrap();
        let (sender, replies) = channel();
        self.replies = Some(replies);
        std::thread::spawn(move || {
            while let Ok(Some(body)) = source.receive() {
                if sender.send(Reply::decode(body).unwrap()).is_err() {
                    return;
                }
            }
        });
    }

    /// Returns whether the session was resumed.
    pub(super) fn join(&self, id: u8) -> bool {
        self.send(NOTAG, version(id));
        let (_, reply) = self.receive();
        let Reply::Version(answer) = reply else { panic!("{reply:?}") };
        self.send(Tag(0), attach(b""));
        assert!(matches!(self.receive(), (Tag(0), Reply::Attach(_))));
        answer.resumed
    }

    pub(super) fn send(&self, tag: Tag, request: Request) {
        self.push(tag, request);
        self.send_queue.flush();
    }

    /// Queues without sending, so that several arrive together.
    pub(super) fn push(&self, tag: Tag, request: Request) {
        self.send_queue.push(request.encode(tag), Class::Urgent);
    }

    pub(super) fn send_raw(&self, bytes: &[u8]) {
        let frame = Frame { head: bytes.to_vec(), data: Bytes::new() };
        self.send_queue.push(frame, Class::Urgent);
        self.send_queue.flush();
    }

    pub(super) fn receive(&self) -> (Tag, Reply) {
        self.replies.as_ref().unwrap().recv_timeout(PATIENCE).expect("no reply")
    }

    /// Receives the reply to this request, and expects no other.
    pub(super) fn call(&self, tag: Tag, request: Request) -> Reply {
        self.send(tag, request);
        let (replied, reply) = self.receive();
        assert_eq!(replied, tag, "{reply:?}");
        reply
    }

    /// Sends and receives in this thread, for a client without a receiver.
    pub(super) fn exchange(&mut self, tag: Tag, request: Request) -> Reply {
        self.send(tag, request);
        let body = self.source.as_mut().unwrap().receive().unwrap().unwrap();
        let (replied, reply) = Reply::decode(body).unwrap();
        assert_eq!(replied, tag);
        reply
    }

    /// Receives all messages until the server closes the connection.
    pub(super) fn until_closed(&self) -> Vec<(Tag, Reply)> {
        let replies = self.replies.as_ref().unwrap();
        let mut rest = Vec::new();
        loop {
            match replies.recv_timeout(PATIENCE) {
                Ok(reply) => rest.push(reply),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("the connection stays open"),
            }
        }
    }

    pub(super) fn close(&self) {
        self.send_queue.close();
    }
}

fn at(path: &'static [u8]) -> Target {
    Target::at(TreePath::from_bytes(Bytes::from_static(path)).unwrap())
}

pub(super) fn version(id: u8) -> Request {
    Request::Version(Tversion {
        msize: 1 << 20,
        version: Text::new(VERSION),
        features: 0,
        session: SessionId([id; 16]),
    })
}

pub(super) fn attach(path: &'static [u8]) -> Request {
    Request::Attach(Tattach {
        uname: Text::new(b"test"),
        path: TreePath::from_bytes(Bytes::from_static(path)).unwrap(),
    })
}

pub(super) fn get(path: &'static [u8], mode: GetMode, count: u32) -> Request {
    Request::Get(Tget { target: at(path), mode, nmsgs: 0, offset: 0, count })
}

pub(super) fn stat(path: &'static [u8]) -> Request {
    get(path, GetMode::STAT, 0)
}

pub(super) fn stat_fd(fd: u16) -> Request {
    let Request::Get(mut get) = stat(b"f") else { unreachable!("stat() is a Tget") };
    get.target.fd = Fd(fd);
    get.mode = get.mode.and(GetMode::MORE);
    Request::Get(get)
}

pub(super) fn put(path: &'static [u8], offset: u64, bytes: usize) -> Request {
    Request::Put(Tput {
        target: at(path),
        mode: PutMode::DATA,
        create: None,
        set: SetStat::default(),
        offset,
        data: Data(vec![1; bytes].into()),
    })
}

pub(super) fn commit(path: &'static [u8]) -> Request {
    Request::Commit(Tcommit { target: at(path), scope: CommitScope::File })
}

pub(super) fn lock(action: LockAction, kind: LockKind, owner: u64) -> Request {
    Request::Lock(Tlock {
        target: at(b"f"),
        action,
        family: LockFamily::Posix,
        owner,
        range: LockRange { kind, start: 0, end: u64::MAX, pid: 1 },
    })
}

pub(super) fn flush(oldtag: Tag) -> Request {
    Request::Flush(Tflush { oldtag })
}

pub(super) fn ping() -> Request {
    Request::Ping(Tping {})
}
