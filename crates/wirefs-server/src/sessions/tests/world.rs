//! A server core under test, and short constructors for messages.

use crate::blame::{CloseReason, PeerFault};
use crate::sessions::{ConnectionKey, Job, JobKey, LeaseTerms, ServerInput, ServerOutput, Sessions};
use crate::tree::{Attached, Parked, Touched};
use bytes::Bytes;
use std::time::Duration;
use wirefs_op::message::attach::{Leases, Tattach, Watch};
use wirefs_op::message::commit::{CommitScope, Tcommit};
use wirefs_op::message::flush::Tflush;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::lock::{LockAction, Tlock};
use wirefs_op::message::ping::Tping;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::recall::{RecallItem, Trecalled};
use wirefs_op::message::target::Target;
use wirefs_op::message::version::{BootId, FEATURE_LEASES, FEATURE_LEDGER, SessionId, Tversion, VERSION};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{
    Errno, FileId, Kind, LockFamily, LockKind, LockRange, NOTAG, Reply, Request, SetStat, Stat, Tag, Time,
    TreePath,
};

pub(super) const A: ConnectionKey = ConnectionKey(1);
pub(super) const B: ConnectionKey = ConnectionKey(2);
pub(super) const BOOT: BootId = BootId(42);

pub(super) struct World {
    pub(super) sessions: Sessions,
    pub(super) now: Time,
    /// The number of connections from the start.
    pub(super) before_us: u64,
    /// Whether the last Rattach granted a lease on the root.
    pub(super) is_root_leased: bool,
}

impl World {
    /// Two connections without any message.
    pub(super) fn new() -> World {
        let mut world =
            World { sessions: Sessions::new(BOOT), now: Time(1_000), before_us: 2, is_root_leased: false };
        world.handle(ServerInput::Connected(A));
        world.handle(ServerInput::Connected(B));
        world
    }

    /// Two connections without any message, to a server that grants leases.
    pub(super) fn leasing() -> World {
        World::with(Sessions::leasing(BOOT, LeaseTerms::new(Watch::Filesystem)))
    }

    pub(super) fn with(sessions: Sessions) -> World {
        let mut world = World { sessions, ..World::new() };
        world.handle(ServerInput::Connected(A));
        world.handle(ServerInput::Connected(B));
        world
    }

    /// Connection A attached to session 1.
    pub(super) fn attached() -> World {
        let mut world = World::new();
        world.join(A, 1);
        world
    }

    pub(super) fn handle(&mut self, input: ServerInput) -> Vec<ServerOutput> {
        self.now = self.now + Duration::from_millis(1);
        self.sessions.handle(self.now, input);
        std::iter::from_fn(|| self.sessions.poll()).collect()
    }

    pub(super) fn receive(
        &mut self,
        connection: ConnectionKey,
        tag: Tag,
        request: Request,
    ) -> Vec<ServerOutput> {
        self.handle(ServerInput::Received(connection, request.encode(tag).to_body()))
    }

    /// Connects if necessary, negotiates the version, and attaches. Returns whether the session was resumed.
    pub(super) fn join(&mut self, connection: ConnectionKey, id: u8) -> bool {
        self.join_as(connection, SessionId([id; 16]))
    }

    pub(super) fn join_as(&mut self, connection: ConnectionKey, id: SessionId) -> bool {
        if connection != A && connection != B {
            self.handle(ServerInput::Connected(connection));
        }
        let mut hello = version_body(0, 1 << 20);
        hello.session = id;
        hello.features = FEATURE_LEDGER;
        let outputs = self.receive(connection, NOTAG, Request::Version(hello));
        let resumed = outputs.iter().find_map(|output| match output {
            ServerOutput::Reply { reply: Reply::Version(answer), .. } => Some(answer.resumed),
            _ => None,
        });
        let outputs = self.receive(connection, Tag(0), attach(b""));
        let [ServerOutput::Attach { session, .. }] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        let outputs =
            self.handle(ServerInput::Attached { connection, session: *session, result: Ok(root()) });
        assert!(matches!(outputs.as_slice(), [ServerOutput::Reply { reply: Reply::Attach(_), .. }]));
        resumed.expect("no Rversion")
    }

    /// Connects if necessary, and attaches with leases. Returns whether the session was resumed, the terms of the
    /// leases, and the other outputs.
    pub(super) fn join_leasing(
        &mut self,
        connection: ConnectionKey,
        id: u8,
    ) -> (bool, Option<Leases>, Vec<ServerOutput>) {
        self.try_to_join_leasing(connection, id).expect("a session that is ending")
    }

    /// The same; `None` if the server refuses because the session is ending.
    pub(super) fn try_to_join_leasing(
        &mut self,
        connection: ConnectionKey,
        id: u8,
    ) -> Option<(bool, Option<Leases>, Vec<ServerOutput>)> {
        if connection != A && connection != B {
            self.handle(ServerInput::Connected(connection));
        }
        let hello = Tversion { features: FEATURE_LEASES, ..version_body(id, 1 << 20) };
        let outputs = self.receive(connection, NOTAG, Request::Version(hello));
        if outputs.contains(&ServerOutput::Close { connection, why: CloseReason::SessionBusy }) {
            return None;
        }
        let resumed = outputs.iter().find_map(|output| match output {
            ServerOutput::Reply { reply: Reply::Version(answer), .. } => Some(answer.resumed),
            _ => None,
        });
        let outputs = self.receive(connection, Tag(0), attach(b""));
        let [ServerOutput::Attach { session, .. }] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        let mut attached = root();
        attached.root.leased = true;
        let result = Ok(attached);
        let mut outputs = self.handle(ServerInput::Attached { connection, session: *session, result });
        let ServerOutput::Reply { reply: Reply::Attach(answer), .. } = outputs.remove(0) else {
            panic!("{outputs:?}");
        };
        self.is_root_leased = answer.root.leased;
        Some((resumed.expect("no Rversion"), answer.leases, outputs))
    }

    /// A job states the objects that it is about to change. Returns the result and the outputs.
    pub(super) fn touch(
        &mut self,
        job: JobKey,
        touched: &[Touched],
    ) -> (Result<(), Parked>, Vec<ServerOutput>) {
        let outcome = self.sessions.touch(self.now, job, touched);
        (outcome, std::iter::from_fn(|| self.sessions.poll()).collect())
    }

    /// Whether the job's reply grants a lease on this object.
    pub(super) fn grant(&mut self, job: JobKey, id: FileId) -> bool {
        let mut stat = Stat { id, ..root().root };
        self.sessions.grant(self.now, job, &mut std::iter::once(&mut stat));
        stat.leased
    }

    /// A complete request that reads this object. Returns whether it got a lease.
    pub(super) fn learn(&mut self, connection: ConnectionKey, id: FileId) -> bool {
        let job = self.execute(connection, Tag(900), stat());
        let is_leased = self.grant(job.key, id);
        self.handle(ServerInput::Finished(job.key));
        is_leased
    }

    /// Sends a request that starts at once.
    pub(super) fn execute(&mut self, connection: ConnectionKey, tag: Tag, request: Request) -> Job {
        let outputs = self.receive(connection, tag, request);
        executed(&outputs).unwrap_or_else(|| panic!("{outputs:?}"))
    }
}

/// The job that these outputs start.
pub(super) fn executed(outputs: &[ServerOutput]) -> Option<Job> {
    let mut jobs = outputs.iter().filter_map(|output| match output {
        ServerOutput::Execute(job) => Some(job.clone()),
        _ => None,
    });
    let job = jobs.next();
    assert!(jobs.next().is_none(), "more than one job started: {outputs:?}");
    job
}

/// The reason for which these outputs close a connection.
pub(super) fn closed(outputs: &[ServerOutput], whose: ConnectionKey) -> Option<CloseReason> {
    outputs.iter().find_map(|output| match output {
        ServerOutput::Close { connection, why } if *connection == whose => Some(*why),
        _ => None,
    })
}

/// Asserts that the outputs report the fault to the peer and then close its connection.
pub(super) fn assert_blamed(outputs: &[ServerOutput], whose: ConnectionKey, fault: PeerFault) {
    let reported = outputs.iter().position(|output| {
        matches!(output, ServerOutput::Reply { connection, tag: NOTAG, reply: Reply::Error(error) }
            if *connection == whose && error.errno == Errno::Protocol)
    });
    let close = ServerOutput::Close { connection: whose, why: CloseReason::Fault(fault) };
    let closed = outputs.iter().position(|output| *output == close);
    assert!(reported.is_some() && reported < closed, "{outputs:?}");
}

/// The recalls in these outputs: connection, serial, items.
pub(super) fn recalls(outputs: &[ServerOutput]) -> Vec<(ConnectionKey, u64, Vec<RecallItem>)> {
    let recall = |output: &ServerOutput| match output {
        ServerOutput::Reply { connection, tag: NOTAG, reply: Reply::Recall(recall) } => {
            Some((*connection, recall.serial, recall.items.clone()))
        }
        _ => None,
    };
    outputs.iter().filter_map(recall).collect()
}

pub(super) fn recalled(serial: u64) -> Request {
    Request::Recalled(Trecalled { serial })
}

/// An object id.
pub(super) fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

pub(super) fn version_body(id: u8, msize: u32) -> Tversion {
    Tversion { msize, version: Text::new(VERSION), features: 0, session: SessionId([id; 16]) }
}

pub(super) fn version(id: u8, msize: u32) -> Request {
    Request::Version(version_body(id, msize))
}

pub(super) fn attach(path: &'static [u8]) -> Request {
    Request::Attach(Tattach {
        uname: Text::new(b"test"),
        path: TreePath::from_bytes(Bytes::from_static(path)).unwrap(),
    })
}

pub(super) fn stat() -> Request {
    stat_at(b"a/b")
}

pub(super) fn stat_at(path: &[u8]) -> Request {
    Request::Get(Tget {
        target: Target::at(TreePath::from_bytes(Bytes::copy_from_slice(path)).unwrap()),
        mode: GetMode::STAT,
        nmsgs: 1,
        offset: 0,
        count: 0,
    })
}

pub(super) fn ordered_stat() -> Request {
    let Request::Get(mut get) = stat() else { unreachable!("stat() is a Tget") };
    get.mode = get.mode.and(GetMode::ORDERED);
    Request::Get(get)
}

/// A write, identified by its offset.
pub(super) fn put(offset: u64) -> Request {
    put_bytes(offset, 4)
}

pub(super) fn put_bytes(offset: u64, count: usize) -> Request {
    Request::Put(Tput {
        target: Target::at(TreePath::from_bytes(Bytes::from_static(b"f")).unwrap()),
        mode: PutMode::DATA,
        create: None,
        set: SetStat::default(),
        offset,
        data: Data(vec![7; count].into()),
    })
}

/// A Tput that only waits for stable storage.
pub(super) fn barrier() -> Request {
    let Request::Put(put) = put_bytes(0, 0) else { unreachable!("put_bytes() is a Tput") };
    Request::Put(Tput { mode: PutMode::SYNC, ..put })
}

pub(super) fn commit() -> Request {
    Request::Commit(Tcommit { target: Target::at(TreePath::root()), scope: CommitScope::File })
}

pub(super) fn lock() -> Request {
    Request::Lock(Tlock {
        target: Target::at(TreePath::root()),
        action: LockAction::Wait,
        family: LockFamily::Posix,
        owner: 1,
        range: LockRange { kind: LockKind::Write, start: 0, end: u64::MAX, pid: 1 },
    })
}

pub(super) fn flush(oldtag: Tag) -> Request {
    Request::Flush(Tflush { oldtag })
}

pub(super) fn ping() -> Request {
    Request::Ping(Tping {})
}

pub(super) fn root() -> Attached {
    Attached {
        root: Stat {
            version: 1,
            mode: 0o755,
            nlink: 2,
            blksize: 4096,
            without_xattrs: true,
            ..Stat::blank(FileId::default(), Kind::Directory)
        },
        uid: 0,
        gid: 0,
        acts_for_callers: false,
        read_only: false,
    }
}
