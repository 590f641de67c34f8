//! A machine under test, and short words for messages.

use crate::blame::{Parting, PeerFault};
use crate::sessions::{ConnectionKey, Input, Job, Output, Sessions};
use crate::tree::Attached;
use bytes::Bytes;
use std::time::Duration;
use wirefs_op::message::attach::Tattach;
use wirefs_op::message::commit::{CommitScope, Tcommit};
use wirefs_op::message::flush::Tflush;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::lock::{LockAction, Tlock};
use wirefs_op::message::ping::Tping;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::Target;
use wirefs_op::message::version::{BootId, SessionId, Tversion, VERSION};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{
    Errno, FileId, Kind, LockFamily, LockKind, LockRange, NOTAG, Reply, Request, SetStat, Stat, Tag, Time,
    Timestamp, TreePath,
};

pub(super) const A: ConnectionKey = ConnectionKey(1);
pub(super) const B: ConnectionKey = ConnectionKey(2);
pub(super) const BOOT: BootId = BootId(42);

pub(super) struct World {
    pub(super) sessions: Sessions,
    pub(super) now: Time,
    /// Connections that stand from the start.
    pub(super) before_us: u64,
}

impl World {
    /// Two connections, nothing said.
    pub(super) fn new() -> World {
        let mut world = World { sessions: Sessions::new(BOOT), now: Time(1_000), before_us: 2 };
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
    let at = Timestamp::default();
    Attached {
        root: Stat {
            id: FileId::default(),
            kind: Kind::Directory,
            version: 1,
            mode: 0o755,
            nlink: 2,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            blocks: 0,
            blksize: 4096,
            atime: at,
            mtime: at,
            ctime: at,
            without_xattrs: true,
        },
        uid: 0,
        gid: 0,
        acts_for_callers: false,
        read_only: false,
    }
}
