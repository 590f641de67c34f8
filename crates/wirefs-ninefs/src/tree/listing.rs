//! Listings: names with their attributes, asked for side by side.

use super::{At, Failure};
use crate::remote::{Dialect, OwnFid, WRONG_REPLY};
use std::sync::Arc;
use wirefs_ninep::plan_stat::PlanStat;
use wirefs_ninep::text::{Few, NineEntry};
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::listing::ListingWriter;
use wirefs_op::message::get::{GotMode, Tget};
use wirefs_op::path::is_name;
use wirefs_op::wire::{Reader, Wire};
use wirefs_op::{DirEntry, Errno};
use wirefs_server::GetReplies;

/// The entries whose attributes are asked for at a time.
const BATCH: usize = 64;
/// How much longer an entry of Op is than one of Rreaddir, about.
const EXPANSION: usize = 4;
/// The bytes of a Treaddir, at least: an entry with the longest name fits.
const READDIR_BYTES_MIN: usize = 1024;
/// The bytes of one directory of 9P2000, at most: its positions count entries, so each listing reads it from its start.
const PLAN_BYTES_MAX: usize = 64 * 1024 * 1024;

impl At<'_> {
    /// Sends the entries behind the request's offset. The fid stays as it is.
    pub(super) fn list(
        &self,
        request: &Tget,
        dir: &OwnFid,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        let open = self.clone_fid(dir)?;
        self.remote.open(open.fid, 0)?;
        let mut writer = ListingWriter::new(pieces.bytes_max());
        let mut from = request.offset;
        loop {
            let entries = match self.remote.dialect {
                Dialect::Linux => self.entries(dir, &open, &mut from, pieces.bytes_max())?,
                Dialect::Plan => self.plan_entries(&open, &mut from)?,
            };
            let Some(entries) = entries else {
                pieces.send(writer.finish(), true)?;
                return Ok(());
            };
            for entry in &entries {
                if writer.push(entry) {
                    continue;
                }
                if writer.is_empty() {
                    return Err(Errno::Invalid.into());
                }
                if pieces.send(writer.finish(), false)? {
                    return Ok(());
                }
                writer = ListingWriter::new(pieces.bytes_max());
                if !writer.push(entry) {
                    return Ok(pieces.end(GotMode::DATA.and(GotMode::MORE))?);
                }
            }
        }
    }

    fn clone_fid(&self, own: &OwnFid) -> Result<OwnFid, Errno> {
        let newfid = self.remote.new_fid();
        self.remote.ask(&Tmessage::Walk { fid: own.fid, newfid, names: Few(Vec::new()) })?;
        Ok(OwnFid { remote: Arc::clone(self.remote), fid: newfid })
    }

    /// The next entries; `None` at the end. Those that are gone by now are left out.
    fn entries(
        &self,
        dir: &OwnFid,
        open: &OwnFid,
        from: &mut u64,
        bytes_max: usize,
    ) -> Result<Option<Vec<DirEntry>>, Errno> {
        // An entry takes more room with its attributes than without; those that do not fit would be asked for again.
        let fitting = (bytes_max / EXPANSION).max(READDIR_BYTES_MIN) as u32;
        let count = self.remote.data_max().min(fitting);
        let reply = self.remote.ask(&Tmessage::Readdir { fid: open.fid, offset: *from, count })?;
        let Rmessage::Readdir { data } = reply else { return Err(WRONG_REPLY) };
        if data.0.is_empty() {
            return Ok(None);
        }
        let mut reader = Reader::new(data.0);
        let mut names = Vec::new();
        while reader.remaining() > 0 {
            let NineEntry { next, name, .. } = NineEntry::take(&mut reader).map_err(|_| WRONG_REPLY)?;
            if next == 0 {
                return Err(WRONG_REPLY);
            }
            *from = next;
            if is_name(&name.0) {
                names.push((name, next));
            }
        }
        let mut entries = Vec::with_capacity(names.len());
        for batch in names.chunks(BATCH) {
            let fids: Vec<_> = batch.iter().map(|_| self.remote.new_fid()).collect();
            let walks = batch.iter().zip(&fids).map(|((name, _), newfid)| {
                let names = Few(vec![name.clone()]);
                self.remote.send(&Tmessage::Walk { fid: dir.fid, newfid: *newfid, names })
            });
            let walks: Vec<_> = walks.collect::<Result<_, _>>()?;
            let mut owned = Vec::with_capacity(batch.len());
            for (walk, (fid, (name, next))) in walks.into_iter().zip(fids.into_iter().zip(batch)) {
                if walk.wait(&|| false).is_ok() {
                    owned.push((OwnFid { remote: Arc::clone(self.remote), fid }, name, *next));
                }
            }
            let stats = owned.iter().map(|(own, ..)| self.remote.send(&self.remote.stat_request(own.fid)));
            let stats: Vec<_> = stats.collect::<Result<_, _>>()?;
            for (sent, (_, name, next)) in stats.into_iter().zip(&owned) {
                if let Ok(reply) = sent.wait(&|| false) {
                    let stat = self.remote.stat_of(reply)?;
                    entries.push(DirEntry { name: name.0.to_vec(), next: *next, stat });
                }
            }
        }
        Ok(Some(entries))
    }

    /// All entries behind the first `from`; `None` if there are none.
    fn plan_entries(&self, open: &OwnFid, from: &mut u64) -> Result<Option<Vec<DirEntry>>, Errno> {
        let mut bytes = Vec::new();
        loop {
            let offset = bytes.len() as u64;
            let data = self.remote.read(open.fid, offset, DATA_BYTES_MAX as u32, &|| false)?;
            if data.is_empty() {
                break;
            }
            bytes.extend_from_slice(&data);
            if bytes.len() > PLAN_BYTES_MAX {
                return Err(Errno::TooBig);
            }
        }
        let mut reader = Reader::new(bytes.into());
        let (mut entries, mut position) = (Vec::new(), 0);
        while reader.remaining() > 0 {
            let stat = PlanStat::take(&mut reader).map_err(|_| WRONG_REPLY)?;
            position += 1;
            if position > *from && is_name(&stat.name.0) {
                let name = stat.name.0.to_vec();
                entries.push(DirEntry { name, next: position, stat: self.remote.plan_stat(&stat) });
            }
        }
        *from = position.max(*from);
        Ok(Some(entries).filter(|entries| !entries.is_empty()))
    }
}
