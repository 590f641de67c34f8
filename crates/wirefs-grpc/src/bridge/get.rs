//! Tget: attributes, data, listings, link targets.

use super::tree::{At, Failure, lock};
use crate::convert::{identity, stat_of};
use crate::proto;
use crate::service::DATA_BYTES_MAX;
use std::sync::Arc;
use wirefs_op::listing::ListingWriter;
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::path::is_name;
use wirefs_op::{DirEntry, Errno, FileId, Kind, TreePath};
use wirefs_server::{GetReplies, Replies};

/// The entries of one directory, at most.
const ENTRIES_MAX: usize = 8 * 1024 * 1024;

impl At<'_> {
    /// # Cost
    /// One round trip for attributes, and for each MiB of a file; two for a listing or a link target.
    pub(super) fn get(&self, request: &Tget, replies: &mut dyn Replies) -> Result<(), Failure> {
        let is_entry = request.mode.has(GetMode::ENTRY);
        // Of an entry, the id is the directory's.
        let object = request.target.id.filter(|_| !is_entry);
        let mut pieces = GetReplies::new(request, replies);
        match self.answer(request, object, &mut pieces) {
            Err(Failure::Errno(Errno::NotFound)) if is_entry => Ok(pieces.end(GotMode::ABSENT)?),
            answered => answered,
        }
    }

    fn answer(
        &self,
        request: &Tget,
        object: Option<FileId>,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        let path = &request.target.path;
        if request.mode.has(GetMode::DATA) {
            let listing = object.filter(|_| request.offset > 0).and_then(|id| self.kept_listing(id));
            match listing {
                Some(listing) => return self.send_listing(request, &listing, object, pieces),
                None => match self.read(request, object, pieces) {
                    Err(Failure::Errno(Errno::IsDirectory | Errno::Loop | Errno::NoSuchDevice)) => {}
                    read => return read,
                },
            }
        }
        let stat = self.stat(path, object)?;
        pieces.stat = request.mode.has(GetMode::STAT).then_some(stat);
        match stat.kind {
            Kind::Directory if request.mode.has(GetMode::DATA) => {
                let listing = Arc::new(self.listing(path, object)?);
                self.send_listing(request, &listing, Some(stat.id), pieces)
            }
            Kind::Symlink if request.mode.has(GetMode::DATA) => {
                let path = self.named(path, object);
                let found = self.remote.ask(|mut client| async move { client.read_link(path).await })?;
                pieces.send(found.target, true)?;
                Ok(())
            }
            _ => Ok(pieces.end(GotMode::NONE)?),
        }
    }

    /// Reads a file until it ends or the request has enough.
    fn read(
        &self,
        request: &Tget,
        object: Option<FileId>,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        let path = self.full(&request.target.path);
        let (mut offset, mut is_first) = (request.offset, true);
        loop {
            let is_whole = request.mode.has(GetMode::WHOLE);
            let most = if is_whole { pieces.bytes_max() as u64 } else { pieces.all_bytes_max() };
            let count = most.min(DATA_BYTES_MAX as u64) as u32;
            let object = object.map(identity);
            let ask = proto::ReadRequest { path: path.clone().into(), offset, count, object };
            let reply = self.remote.ask(|mut client| async move { client.read(ask).await })?;
            let stat = stat_of(&reply.attributes.ok_or(Errno::Protocol)?);
            if std::mem::take(&mut is_first) && request.mode.has(GetMode::STAT) {
                pieces.stat = Some(stat);
            }
            let mut data = reply.data;
            if data.len() > count as usize {
                return Err(Errno::Protocol.into());
            }
            let is_end = data.len() < count as usize || offset + data.len() as u64 >= stat.size;
            if is_whole && !is_end {
                return Ok(pieces.end(GotMode::MORE)?);
            }
            offset += data.len() as u64;
            loop {
                let piece = data.split_to(data.len().min(pieces.bytes_max()));
                if pieces.send(piece, is_end && data.is_empty())? {
                    return Ok(());
                }
                if data.is_empty() {
                    break;
                }
            }
        }
    }

    fn kept_listing(&self, directory: FileId) -> Option<Arc<Vec<DirEntry>>> {
        lock(&self.session.listings).of(directory)
    }

    /// Reads a whole listing; positions count entries.
    fn listing(&self, path: &TreePath, object: Option<FileId>) -> Result<Vec<DirEntry>, Failure> {
        let path = self.named(path, object);
        let mut stream = self.remote.ask(|mut client| async move { client.read_directory(path).await })?;
        let mut entries = Vec::new();
        while let Some(entry) = self.remote.runtime.block_on(stream.message())? {
            let stat = stat_of(&entry.attributes.ok_or(Errno::Protocol)?);
            if is_name(&entry.name) {
                let next = entries.len() as u64 + 1;
                entries.push(DirEntry { name: entry.name.to_vec(), next, stat });
            }
            if entries.len() > ENTRIES_MAX {
                return Err(Errno::TooBig.into());
            }
        }
        Ok(entries)
    }

    /// Sends the entries behind the request's offset. A listing that goes on is as it was at its beginning.
    fn send_listing(
        &self,
        request: &Tget,
        entries: &Arc<Vec<DirEntry>>,
        directory: Option<FileId>,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        let mut writer = ListingWriter::new(pieces.bytes_max());
        let first = usize::try_from(request.offset).unwrap_or(usize::MAX);
        for entry in entries.get(first..).unwrap_or_default() {
            if writer.push(entry) {
                continue;
            }
            if writer.is_empty() {
                return Err(Errno::Invalid.into());
            }
            if let Some(directory) = directory {
                lock(&self.session.listings).keep(directory, entries);
            }
            if pieces.send(writer.finish(), false)? {
                return Ok(());
            }
            writer = ListingWriter::new(pieces.bytes_max());
            if !writer.push(entry) {
                return Ok(pieces.end(GotMode::DATA.and(GotMode::MORE))?);
            }
        }
        if let Some(directory) = directory {
            lock(&self.session.listings).end(directory);
        }
        pieces.send(writer.finish(), true)?;
        Ok(())
    }
}
