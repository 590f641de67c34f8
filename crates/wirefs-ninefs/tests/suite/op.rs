//! Requests to a tree, and the replies.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wirefs_ninefs::{NineSource, NineTree};
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, Rget, Tget};
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Reply, Request, SetStat, TreePath};
use wirefs_server::{Replies, SessionKey, Stopped, Tree};

const SESSION: SessionKey = SessionKey(1);

/// Replies that are kept.
#[derive(Default)]
struct Kept {
    replies: Vec<Reply>,
    is_stopped: Arc<AtomicBool>,
}

impl Replies for Kept {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.replies.push(reply);
        Ok(())
    }
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
    fn wait(&mut self) {
        std::thread::yield_now();
    }
}

pub(crate) fn path(text: &str) -> TreePath {
    TreePath::from_bytes(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

pub(crate) fn at(text: &str) -> Target {
    Target::at(path(text))
}

/// An attached tree.
pub(crate) struct Attached(NineTree);

impl Attached {
    pub(crate) fn to(source: &str) -> Attached {
        let source = NineSource::parse(source.as_bytes()).unwrap().unwrap();
        let tree = NineTree::open(source, BootId(1)).unwrap();
        tree.attach(SESSION, &TreePath::root()).unwrap();
        Attached(tree)
    }

    pub(crate) fn all(&self, request: Request) -> Result<Vec<Reply>, Errno> {
        self.all_unless(request, &Arc::default())
    }

    pub(crate) fn all_unless(
        &self,
        request: Request,
        stopped: &Arc<AtomicBool>,
    ) -> Result<Vec<Reply>, Errno> {
        let mut kept = Kept { is_stopped: Arc::clone(stopped), ..Kept::default() };
        self.0.serve(SESSION, request, &mut kept);
        match kept.replies.last() {
            Some(Reply::Error(error)) => Err(error.errno),
            Some(_) => Ok(kept.replies),
            None => panic!("no reply"),
        }
    }

    pub(crate) fn ask(&self, request: Request) -> Result<Reply, Errno> {
        self.all(request).map(|mut replies| replies.pop().unwrap())
    }

    pub(crate) fn get(
        &self,
        target: Target,
        mode: GetMode,
        offset: u64,
        count: u32,
    ) -> Result<Vec<Rget>, Errno> {
        let replies = self.all(Request::Get(Tget { target, mode, nmsgs: 0, offset, count }))?;
        let got = |reply| match reply {
            Reply::Get(got) => got,
            other => panic!("{other:?}"),
        };
        Ok(replies.into_iter().map(got).collect())
    }

    pub(crate) fn read(&self, target: Target, offset: u64, count: u32) -> Result<Vec<u8>, Errno> {
        let mode = GetMode::DATA.and_if(target.fd != NOFD, GetMode::MORE);
        Ok(self.get(target, mode, offset, count)?.iter().flat_map(|got| got.data.0.to_vec()).collect())
    }

    /// Opens a file to read it, as mode strict does: without data.
    pub(crate) fn open(&self, name: &str) -> Target {
        let got = self.get(at(name), GetMode::STAT.and(GetMode::MORE), 0, 0).unwrap();
        assert_ne!(got[0].fd, NOFD);
        Target { fd: got[0].fd, id: got[0].stat.map(|stat| stat.id), ..at(name) }
    }

    pub(crate) fn close(&self, target: Target) {
        self.get(target, GetMode::NONE, 0, 0).unwrap();
    }

    pub(crate) fn put(&self, put: Tput) -> Result<Rput, Errno> {
        match self.ask(Request::Put(put))? {
            Reply::Put(put) => Ok(put),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn write(&self, target: Target, offset: u64, bytes: &[u8]) -> Rput {
        let mode = PutMode::DATA.and_if(target.fd != NOFD, PutMode::MORE);
        let data = Data(Bytes::copy_from_slice(bytes));
        self.put(Tput { target, mode, create: None, set: SetStat::default(), offset, data }).unwrap()
    }

    pub(crate) fn names(&self, dir: &str) -> Vec<String> {
        let got = self.get(at(dir), GetMode::DATA, 0, 1 << 20).unwrap();
        let listed = got.into_iter().flat_map(|got| entries(got.data.0).unwrap());
        let mut names: Vec<_> = listed.map(|entry| String::from_utf8(entry.name).unwrap()).collect();
        names.sort();
        names
    }
}
