//! Store: a whole file that replaces another at its end, atomically.

use crate::node::{Node, Tree, done};
use crate::open_file::OpenFile;
use crate::proto::StoreRequest;
use crate::service::DATA_BYTES_MAX;
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc::Receiver;
use wirefs_client::call::Call;
use wirefs_op::{Errno, Stat};

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A file that is being stored under another name; the name goes if it is not finished.
pub(crate) struct Storing {
    tree: Tree,
    dir: Node,
    name: Vec<u8>,
    temporary: Vec<u8>,
    node: Node,
    open: Option<OpenFile>,
    bytes: u64,
    is_finished: bool,
}

impl Drop for Storing {
    fn drop(&mut self) {
        if !self.is_finished {
            self.open = None;
            self.tree.call(Call::Unlink { parent: self.dir.id, name: &self.temporary });
        }
    }
}

impl Storing {
    /// Begins with the first message.
    pub(crate) fn begin(tree: &Tree, first: &StoreRequest) -> Result<Storing, Errno> {
        let (dir, name) = tree.above(&first.path)?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let temporary = format!(".wirefs-store-{}-{number}", std::process::id()).into_bytes();
        // A file that is replaced keeps its permissions.
        let mode = tree.child(dir.id, name).map_or(first.mode, |node| node.stat.mode);
        let name = name.to_vec();
        let (node, open) = OpenFile::create(tree, &dir, &temporary, mode, true)?;
        let tree = tree.clone();
        let mut storing =
            Storing { tree, dir, name, temporary, node, open: Some(open), bytes: 0, is_finished: false };
        storing.write(&first.data)?;
        Ok(storing)
    }

    fn write(&mut self, data: &Bytes) -> Result<(), Errno> {
        if data.len() > DATA_BYTES_MAX {
            return Err(Errno::Invalid);
        }
        if let (Some(open), false) = (&self.open, data.is_empty()) {
            open.write(self.bytes, data)?;
            self.bytes += data.len() as u64;
        }
        Ok(())
    }

    /// Takes messages until the last one, then replaces the file. Without that one the client has gone.
    pub(crate) fn take_all(
        mut self,
        mut is_last: bool,
        mut messages: Receiver<StoreRequest>,
    ) -> Result<Stat, Errno> {
        while !is_last {
            let message = messages.blocking_recv().ok_or(Errno::Cancelled)?;
            self.write(&message.data)?;
            is_last = message.is_last;
        }
        self.finish()
    }

    fn finish(mut self) -> Result<Stat, Errno> {
        if let Some(open) = self.open.take() {
            open.flush()?;
        }
        let (parent, to_parent) = (self.dir.id, self.dir.id);
        let call = Call::Rename { parent, name: &self.temporary, to_parent, to_name: &self.name, flags: 0 };
        done(&self.tree.call(call))?;
        self.is_finished = true;
        self.tree.stat(self.node.id)
    }
}
