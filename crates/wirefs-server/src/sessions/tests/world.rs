//! A machine under test, and short words for messages.

use crate::blame::{Parting, PeerFault};
use crate::sessions::{ConnectionKey, Input, Job, JobKey, Output, Sessions, Terms};
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
    /// Connections that stand from the start.
    pub(super) before_us: u64,
    /// Whether the last Rattach told the root under a lease.
    pub(super) is_root_leased: bool,
}

impl World {
    /// Two connections, nothing said.
    pub(super) fn new() -> World {
        let mut world =
            World { sessions: Sessions::new(BOOT), now: Time(1_000), before_us: 2, is_root_leased: false };
        world.handle(Input::Connected(A));
        world.handle(Input::Connected(B));
        world
    }

    /// Two connections to a server that leases, nothing said.
    pub(super) fn leasing() -> World {
        World::with(Sessions::leasing(BOOT, Terms::new(Watch::Filesystem)))
    }

    pub(super) fn with(sessions: Sessions) -> World {
        let mut world = World { sessions, ..World::new() };
        world.handle(Input::Connected(A));
        world.handle(Input::Connected(B));
        world
    }

    /// Connection A attached to session 1.
    pub(super) fn attached() -> World {
        let mut world = World::new();
        world.join(A, 1);
        world
    }

    pub(super) fn handle(&mut self, input: Input) -> Vec<Output> {
        self.now = self.now + Duration::from_millis(1);
        self.sessions.handle(self.now, input);
        std::iter::from_fn(|| self.sessions.poll()).collect()
    }

    pub(super) fn receive(&mut self, connection: ConnectionKey, tag: Tag, request: Request) -> Vec<Output> {
        self.handle(Input::Received(connection, request.encode(tag).to_body()))
    }

    /// Connects if need be, agrees on the version, attaches to the root. Returns whether the session was resumed.
    pub(super) fn join(&mut self, connection: ConnectionKey, id: u8) -> bool {
        self.join_as(connection, SessionId([id; 16]))
    }

    pub(super) fn join_as(&mut self, connection: ConnectionKey, id: SessionId) -> bool {
        if connection != A && connection != B {
            self.handle(Input::Connected(connection));
        }
        let mut hello = version_body(0, 1 << 20);
        hello.session = id;
        hello.features = FEATURE_LEDGER;
        let outputs = self.receive(connection, NOTAG, Request::Version(hello));
        let resumed = outputs.iter().find_map(|output| match output {
            Output::Reply { reply: Reply::Version(answer), .. } => Some(answer.resumed),
            _ => None,
        });
        let outputs = self.receive(connection, Tag(0), attach(b""));
        let [Output::Attach { session, .. }] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        let outputs = self.handle(Input::Attached { connection, session: *session, result: Ok(root()) });
        assert!(matches!(outputs.as_slice(), [Output::Reply { reply: Reply::Attach(_), .. }]));
        resumed.expect("no Rversion")
    }

    /// Connects if need be and attaches, asking for leases. Returns whether the session was resumed, what was said of
    /// leases, and what else was sent.
    pub(super) fn join_leasing(
        &mut self,
        connection: ConnectionKey,
        id: u8,
    ) -> (bool, Option<Leases>, Vec<Output>) {
        self.try_to_join_leasing(connection, id).expect("a session that is ending")
    }

    /// The same. None: refused, since changes of the session's life before are still carried out.
    pub(super) fn try_to_join_leasing(
        &mut self,
        connection: ConnectionKey,
        id: u8,
    ) -> Option<(bool, Option<Leases>, Vec<Output>)> {
        if connection != A && connection != B {
            self.handle(Input::Connected(connection));
        }
        let hello = Tversion { features: FEATURE_LEASES, ..version_body(id, 1 << 20) };
        let outputs = self.receive(connection, NOTAG, Request::Version(hello));
        if outputs.contains(&Output::Close { connection, why: Parting::SessionBusy }) {
            return None;
        }
        let resumed = outputs.iter().find_map(|output| match output {
            Output::Reply { reply: Reply::Version(answer), .. } => Some(answer.resumed),
            _ => None,
        });
        let outputs = self.receive(connection, Tag(0), attach(b""));
        let [Output::Attach { session, .. }] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        let mut attached = root();
        attached.root.leased = true;
        let result = Ok(attached);
        let mut outputs = self.handle(Input::Attached { connection, session: *session, result });
        let Output::Reply { reply: Reply::Attach(answer), .. } = outputs.remove(0) else {
            panic!("{outputs:?}");
        };
        self.is_root_leased = answer.root.leased;
        Some((resumed.expect("no Rversion"), answer.leases, outputs))
    }

    /// What a job says before it changes something; what follows from that.
    pub(super) fn touch(&mut self, job: JobKey, touched: &[Touched]) -> (Result<(), Parked>, Vec<Output>) {
        let outcome = self.sessions.touch(self.now, job, touched);
        (outcome, std::iter::from_fn(|| self.sessions.poll()).collect())
    }

    /// Whether a reply of this job may tell of this object under a lease.
    pub(super) fn grant(&mut self, job: JobKey, id: FileId) -> bool {
        let mut stat = Stat { id, ..root().root };
        self.sessions.grant(self.now, job, &mut std::iter::once(&mut stat));
        stat.leased
    }

    /// A request that tells of this object under a lease, from beginning to end.
    pub(super) fn learn(&mut self, connection: ConnectionKey, id: FileId) -> bool {
        let job = self.execute(connection, Tag(900), stat());
        let is_leased = self.grant(job.key, id);
        self.handle(Input::Finished(job.key));
        is_leased
    }

    /// Sends a request that is carried out at once.
    pub(super) fn execute(&mut self, connection: ConnectionKey, tag: Tag, request: Request) -> Job {
        let outputs = self.receive(connection, tag, request);
        executed(&outputs).unwrap_or_else(|| panic!("{outputs:?}"))
    }
}

/// The job that these outputs start, if it is one.
pub(super) fn executed(outputs: &[Output]) -> Option<Job> {
    let mut jobs = outputs.iter().filter_map(|output| match output {
        Output::Execute(job) => Some(job.clone()),
        _ => None,
    });
    let job = jobs.next();
    assert!(jobs.next().is_none(), "more than one job started: {outputs:?}");
    job
}

/// Why these outputs close a connection, if they do.
pub(super) fn closed(outputs: &[Output], whose: ConnectionKey) -> Option<Parting> {
    outputs.iter().find_map(|output| match output {
        Output::Close { connection, why } if *connection == whose => Some(*why),
        _ => None,
    })
}

/// The outputs tell the peer what it did and close its connection, in this order.
pub(super) fn assert_blamed(outputs: &[Output], whose: ConnectionKey, fault: PeerFault) {
    let told = outputs.iter().position(|output| {
        matches!(output, Output::Reply { connection, tag: NOTAG, reply: Reply::Error(error) }
            if *connection == whose && error.errno == Errno::Protocol)
    });
    let close = Output::Close { connection: whose, why: Parting::Fault(fault) };
    let closed = outputs.iter().position(|output| *output == close);
    assert!(told.is_some() && told < closed, "{outputs:?}");
}

/// The recalls among these outputs: to whom, their serial, what.
pub(super) fn recalls(outputs: &[Output]) -> Vec<(ConnectionKey, u64, Vec<RecallItem>)> {
    let recall = |output: &Output| match output {
        Output::Reply { connection, tag: NOTAG, reply: Reply::Recall(recall) } => {
            Some((*connection, recall.serial, recall.items.clone()))
        }
        _ => None,
    };
    outputs.iter().filter_map(recall).collect()
}

pub(super) fn recalled(serial: u64) -> Request {
    Request::Recalled(Trecalled { serial })
}

/// An object.
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

/// A write, told from others by its offset.
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

/// A Tput that does nothing but wait for stable storage.
pub(super) fn barrier() -> Request {
    let Request::Put(put) = put_bytes(0, 0) else { unreachable!("it is one") };
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
