//! Tget: attributes, contents, listings, link targets.

use crate::fs::InodeBody;
use crate::tree::{ModelState, ResolvedObject};
use bytes::Bytes;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::listing::ListingWriter;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::target::{Fd, NOFD, Place};
use wirefs_op::wire::Data;
use wirefs_op::{DirEntry, Errno, Kind, Reply, Stat};
use wirefs_server::{Replies, SessionKey};

/// The minimum bytes of a listing entry.
const ENTRY_BYTES_MIN: usize = 100;

/// The data of one reply, and whether it ends the file or listing.
type GetPiece = (Bytes, bool);

impl ModelState {
    pub(super) fn get(
        &mut self,
        session: SessionKey,
        request: &Tget,
        replies: &mut dyn Replies,
    ) -> Result<Vec<Reply>, Errno> {
        let place = self.place(session, request, replies)?;
        let Some(object) = self.subject(session, request)? else {
            let mode = GotMode::LAST.and(GotMode::ABSENT).and(place);
            return Ok(vec![reply(NOFD, mode, None, Bytes::new())]);
        };
        let opens = matches!(object.kind, Kind::File | Kind::Directory);
        let mut fd = NOFD;
        // Held, because closing may remove the last name.
        self.fs.hold(object.ino);
        if !request.mode.has(GetMode::MORE) {
            self.close(session, object)?;
        } else if opens {
            fd = self.keep(session, object)?;
        }
        let stat = self.stat(object.ino).filter(|_| request.mode.has(GetMode::STAT));
        let outgoing = if request.mode.has(GetMode::DATA) {
            self.data(request, object, fd, stat, replies)
        } else {
            Ok(vec![reply(fd, GotMode::LAST, stat, Bytes::new())])
        };
        self.fs.release(object.ino);
        let mut outgoing = outgoing?;
        if let Some(Reply::Get(first)) = outgoing.first_mut() {
            first.mode = first.mode.and(place);
        }
        Ok(outgoing)
    }

    /// Returns whether the client may cache the name.
    fn place(
        &self,
        session: SessionKey,
        request: &Tget,
        replies: &mut dyn Replies,
    ) -> Result<GotMode, Errno> {
        if !request.mode.has(GetMode::ENTRY) {
            return Ok(GotMode::NONE);
        }
        let place = Place { path: request.target.path.clone(), dir: request.target.id };
        let (dir, _) = self.entry(session, &place)?;
        Ok(GotMode::NONE.and_if(replies.grant_names(dir.id()), GotMode::PLACE))
    }

    /// Returns the requested object; `None` for an absent name in a directory.
    fn subject(&self, session: SessionKey, request: &Tget) -> Result<Option<ResolvedObject>, Errno> {
        if !request.mode.has(GetMode::ENTRY) {
            return self.locate(session, &request.target).map(Some);
        }
        let place = Place { path: request.target.path.clone(), dir: request.target.id };
        let (dir, name) = self.entry(session, &place)?;
        match self.fs.lookup(dir, name) {
            Ok(ino) => Ok(Some(ResolvedObject { ino, kind: self.fs.inode(ino)?.kind(), fd: None })),
            Err(Errno::NotFound) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn data(
        &mut self,
        request: &Tget,
        object: ResolvedObject,
        fd: Fd,
        stat: Option<Stat>,
        replies: &mut dyn Replies,
    ) -> Result<Vec<Reply>, Errno> {
        let pieces = match &self.fs.inode(object.ino)?.body {
            InodeBody::File(_) => self.file_pieces(request, object)?,
            InodeBody::Directory { .. } => self.listing_pieces(request, object, replies)?,
            InodeBody::Symlink(target) => {
                if target.len() > request.count as usize {
                    return Err(Errno::Range);
                }
                vec![(Bytes::from(target.clone()), true)]
            }
            // Opening a pipe or device would have side effects.
            InodeBody::Node(_) => return Ok(vec![reply(fd, GotMode::LAST, stat, Bytes::new())]),
        };
        let is_whole = pieces.len() == 1 && pieces.iter().all(|(_, ends)| *ends);
        if request.mode.has(GetMode::WHOLE) && !is_whole {
            return Ok(vec![reply(fd, GotMode::LAST.and(GotMode::MORE), stat, Bytes::new())]);
        }
        let replies_max = if request.nmsgs == 0 { usize::MAX } else { usize::from(request.nmsgs) };
        let sent = pieces.len().min(replies_max);
        let mut stat = stat;
        let cut = pieces.into_iter().take(sent).enumerate();
        Ok(cut
            .map(|(at, (data, ends))| {
                let mode = GotMode::DATA.and_if(!ends, GotMode::MORE).and_if(at + 1 == sent, GotMode::LAST);
                reply(fd, mode, stat.take(), data)
            })
            .collect())
    }

    fn file_pieces(&mut self, request: &Tget, object: ResolvedObject) -> Result<Vec<GetPiece>, Errno> {
        let size = self.fs.contents(object.ino)?.size();
        let mut pieces = Vec::new();
        let (mut offset, mut left) = (request.offset, u64::from(request.count));
        loop {
            let count = left.min(DATA_BYTES_MAX as u64);
            let bytes = self.fs.read(object.ino, offset, count)?;
            offset += bytes.len() as u64;
            left -= bytes.len() as u64;
            let ends = offset >= size;
            pieces.push((Bytes::from(bytes), ends));
            if ends || left == 0 {
                return Ok(pieces);
            }
        }
    }

    fn listing_pieces(
        &mut self,
        request: &Tget,
        object: ResolvedObject,
        replies: &mut dyn Replies,
    ) -> Result<Vec<GetPiece>, Errno> {
        self.fs.accessed(object.ino)?;
        let mut pieces = Vec::new();
        let mut left = request.count as usize;
        let mut writer = ListingWriter::new(left.min(DATA_BYTES_MAX));
        let mut listed: Vec<DirEntry> = Vec::new();
        for (name, entry) in self.fs.list(object.ino, request.offset)? {
            // More entries cannot fit.
            if listed.len() > request.count as usize / ENTRY_BYTES_MIN {
                break;
            }
            listed.push(DirEntry { name, next: entry.cookie, stat: self.fs.stat(entry.ino)? });
        }
        replies.grant(&mut listed.iter_mut().map(|entry| &mut entry.stat));
        for entry in listed {
            if writer.push(&entry) {
                continue;
            }
            if writer.is_empty() {
                return Err(Errno::Invalid);
            }
            let full = writer.finish();
            left -= full.len();
            pieces.push((full, false));
            writer = ListingWriter::new(left.min(DATA_BYTES_MAX));
            if !writer.push(&entry) {
                return Ok(pieces);
            }
        }
        pieces.push((writer.finish(), true));
        Ok(pieces)
    }
}

fn reply(fd: Fd, mode: GotMode, stat: Option<Stat>, data: Bytes) -> Reply {
    Reply::Get(Rget { fd, mode, stat, data: Data(data) })
}
