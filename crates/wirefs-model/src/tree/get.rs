//! Tget: attributes, bytes, listings, link targets.

use crate::fs::Body;
use crate::tree::{Object, State};
use bytes::Bytes;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::listing::ListingWriter;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{DirEntry, Errno, Kind, Reply, Stat};
use wirefs_server::SessionKey;

/// What a piece of the answer holds, and whether nothing follows it in the file or listing.
type Piece = (Bytes, bool);

impl State {
    pub(super) fn get(&mut self, session: SessionKey, request: &Tget) -> Result<Vec<Reply>, Errno> {
        let object = self.locate(session, &request.target)?;
        let opens = matches!(object.kind, Kind::File | Kind::Directory);
        let mut fd = NOFD;
        // Held, since closing may remove its last name.
        self.fs.hold(object.ino);
        if !request.mode.has(GetMode::MORE) {
            self.close(session, object)?;
        } else if opens {
            fd = self.keep(session, object)?;
        }
        let stat = self.stat(object.ino).filter(|_| request.mode.has(GetMode::STAT));
        let replies = if request.mode.has(GetMode::DATA) {
            self.data(request, object, fd, stat)
        } else {
            Ok(vec![reply(fd, GotMode::LAST, stat, Bytes::new())])
        };
        self.fs.release(object.ino);
        replies
    }

    fn data(
        &mut self,
        request: &Tget,
        object: Object,
        fd: Fd,
        stat: Option<Stat>,
    ) -> Result<Vec<Reply>, Errno> {
        let pieces = match &self.fs.inode(object.ino)?.body {
            Body::File(_) => self.file_pieces(request, object)?,
            Body::Directory { .. } => self.listing_pieces(request, object)?,
            Body::Symlink(target) => {
                if target.len() > request.count as usize {
                    return Err(Errno::Range);
                }
                vec![(Bytes::from(target.clone()), true)]
            }
            // Opened, a pipe or device would do things.
            Body::Node(_) => return Ok(vec![reply(fd, GotMode::LAST, stat, Bytes::new())]),
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

    fn file_pieces(&mut self, request: &Tget, object: Object) -> Result<Vec<Piece>, Errno> {
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

    fn listing_pieces(&mut self, request: &Tget, object: Object) -> Result<Vec<Piece>, Errno> {
        self.fs.accessed(object.ino)?;
        let mut pieces = Vec::new();
        let mut left = request.count as usize;
        let mut writer = ListingWriter::new(left.min(DATA_BYTES_MAX));
        for (name, entry) in self.fs.list(object.ino, request.offset)? {
            let entry = DirEntry { name, next: entry.place, stat: self.fs.stat(entry.ino)? };
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
