//! Short words for calls.

use crate::world::{World, serve};
use bytes::Bytes;
use wirefs_client::call::{Answer, Call, Entry, Handle, Listed, OpenHow, TreeNodeId, WriteData};
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::message::target::Target;
use wirefs_op::wire::Data;
use wirefs_op::{Cred, Errno, Kind, Reply, Request, SetStat, TreePath};
use wirefs_server::{SessionKey, Tree as _};

/// The creator of the tree before the first mount.
const MAKER: SessionKey = SessionKey(900);

pub(crate) const READ: OpenHow = OpenHow {
    read: true,
    write: false,
    append: false,
    truncate: false,
    exclusive: false,
    direct: false,
    sync: false,
};
pub(crate) const READ_WRITE: OpenHow = OpenHow { write: true, ..READ };
pub(crate) const NEW: OpenHow = OpenHow { exclusive: true, ..READ_WRITE };

pub(crate) fn create(parent: TreeNodeId, name: &[u8]) -> Call<'_> {
    Call::Create { parent, name, mode: 0o644, umask: 0, how: NEW }
}

pub(crate) fn write(node: TreeNodeId, handle: Handle, offset: u64, data: &[u8]) -> Call<'_> {
    Call::Write { node, handle, offset, data: WriteData::Lent(data), cached: false, kill_privileges: false }
}

pub(crate) fn readdir(node: TreeNodeId, handle: Handle, offset: u64) -> Call<'static> {
    Call::Readdir { node, handle, offset, bytes_max: 64 * 1024, entry_bytes: 152, with_stats: true }
}

pub(crate) fn getattr(node: TreeNodeId) -> Call<'static> {
    Call::Getattr { node, handle: None }
}

pub(crate) fn entry(answer: Answer) -> Entry {
    match answer {
        Answer::Entry(entry) | Answer::Created(entry, ..) => entry,
        other => panic!("not an entry: {other:?}"),
    }
}

pub(crate) fn handle(answer: Answer) -> Handle {
    match answer {
        Answer::Opened(handle, _) | Answer::Created(_, handle, _) => handle,
        other => panic!("not opened: {other:?}"),
    }
}

pub(crate) fn data(answer: Answer) -> Bytes {
    match answer {
        Answer::Data(data) => data,
        other => panic!("no data: {other:?}"),
    }
}

pub(crate) fn listing(answer: Answer) -> Vec<Listed> {
    match answer {
        Answer::Listing(entries) => entries,
        other => panic!("no listing: {other:?}"),
    }
}

pub(crate) fn is_absent(answer: &Answer) -> bool {
    matches!(answer, Answer::NoEntry(_) | Answer::Fail(Errno::NotFound))
}

impl World {
    /// Objects that no client has made or seen.
    pub(crate) fn make(&self, path: &str, kind: Kind, contents: &[u8]) {
        self.tree.attach(MAKER, &TreePath::root()).unwrap();
        let put = |mode, create, offset, data: &[u8]| Tput {
            target: Target::at(TreePath::from_bytes(path.to_owned().into()).unwrap()),
            mode,
            create,
            set: SetStat::default(),
            offset,
            data: Data(data.to_vec().into()),
        };
        let create = Create { kind, mode: 0o755, rdev: 0, cred: Cred::default() };
        let mut puts = vec![put(PutMode::CREATE.and(PutMode::EXCLUSIVE), Some(create), 0, b"")];
        let piece = |(index, piece): (usize, &[u8])| put(PutMode::DATA, None, (index << 20) as u64, piece);
        puts.extend(contents.chunks(1 << 20).enumerate().map(piece));
        for put in puts {
            let made = serve(&self.tree, MAKER, Request::Put(put));
            assert!(matches!(made[..], [Reply::Put(_)]), "{path}: {made:?}");
        }
    }

    /// A file with this contents, made and closed by a client.
    pub(crate) fn file(
        &mut self,
        seat: usize,
        parent: TreeNodeId,
        name: &[u8],
        contents: &[u8],
    ) -> TreeNodeId {
        let created = self.ask(seat, create(parent, name));
        let (node, handle) = (entry(created.clone()).node, handle(created));
        for (index, piece) in contents.chunks(1024 * 1024).enumerate() {
            let answer = self.ask(seat, write(node, handle, index as u64 * 1024 * 1024, piece));
            assert_eq!(answer, Answer::Count(piece.len() as u32));
        }
        self.close(seat, node, handle);
        node
    }

    pub(crate) fn close(&mut self, seat: usize, node: TreeNodeId, handle: Handle) {
        assert_eq!(self.ask(seat, Call::Flush { node, handle, owner: 1 }), Answer::Done);
        assert_eq!(self.ask(seat, Call::Release { node, handle, flock_owner: None }), Answer::Done);
    }

    pub(crate) fn directory(&mut self, seat: usize, parent: TreeNodeId, name: &[u8]) -> TreeNodeId {
        entry(self.ask(seat, Call::Mkdir { parent, name, mode: 0o755, umask: 0 })).node
    }

    pub(crate) fn lookup(&mut self, seat: usize, parent: TreeNodeId, name: &[u8]) -> TreeNodeId {
        entry(self.ask(seat, Call::Lookup { parent, name })).node
    }
}
