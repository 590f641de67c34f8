//! Treaddir, and the reading of directories in 9P2000.

use super::open::{OpenKind, Opened};
use super::{NineConversation, answers};
use crate::limits::ENTRY_HEAD_BYTES;
use crate::message::{Fid, Rmessage};
use crate::plan_stat::PlanStat;
use crate::qid::Qid;
use crate::text::{NineEntry, NineString};
use bytes::Bytes;
use std::sync::{Mutex, PoisonError};
use wirefs_client::call::{Call, Caller, Listed};
use wirefs_op::limits::NAME_BYTES_MAX;
use wirefs_op::wire::{Data, Wire, Writer};
use wirefs_op::{Errno, Kind};

/// The bytes of a stat of 9P2000 besides its name, at most: with three users as numbers.
const STAT_HEAD_BYTES: u32 = 2 + 47 + 3 * 10;

/// How far a directory is read in 9P2000, whose offsets count bytes.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The bytes that were read.
    bytes: u64,
    /// The position in the listing behind them.
    next: u64,
}

impl NineConversation {
    pub(super) fn readdir(&self, fid: Fid, offset: u64, count: u32) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        let opened = entry.opened()?;
        if !matches!(opened.kind, OpenKind::Directory(_)) {
            return Err(Errno::NotDirectory);
        }
        let count = count.min(self.data_max());
        let listed = self.list(opened, entry.caller, offset, count, ENTRY_HEAD_BYTES, false)?;
        let mut writer = Writer::bare();
        for entry in &listed {
            let kind = Kind::from_mode(entry.st_mode).unwrap_or(Kind::File);
            let packed = NineEntry {
                qid: Qid::listed(kind, entry.ino),
                next: entry.next,
                kind: (kind.mode_bits() >> 12) as u8,
                name: NineString::new(&entry.name),
            };
            let before = writer.len();
            packed.put(&mut writer);
            if writer.len() > count as usize {
                writer.truncate(before);
                break;
            }
        }
        if writer.is_empty() && !listed.is_empty() {
            return Err(Errno::Invalid);
        }
        Ok(Rmessage::Readdir { data: Data(Bytes::from(writer.into_bytes())) })
    }

    /// Reads on where the last read of this fid ended, or from the start.
    pub(super) fn read_directory(
        &self,
        opened: &Opened,
        cursor: &Mutex<Cursor>,
        caller: Caller,
        offset: u64,
        count: u32,
    ) -> Result<Bytes, Errno> {
        let mut cursor = cursor.lock().unwrap_or_else(PoisonError::into_inner);
        if offset == 0 {
            *cursor = Cursor::default();
        }
        if offset != cursor.bytes {
            return Err(Errno::Invalid);
        }
        let mut writer = Writer::bare();
        loop {
            let listed = self.list(opened, caller, cursor.next, count, STAT_HEAD_BYTES, true)?;
            if listed.is_empty() {
                return Ok(Bytes::new());
            }
            let mut is_full = false;
            for Listed { name, next, entry, .. } in &listed {
                // One with a lookup to give back, whether it fits or not.
                let Some(entry) = entry else {
                    cursor.next = if is_full { cursor.next } else { *next };
                    continue;
                };
                self.files.call(caller, Call::Forget { node: entry.node, count: 1 });
                let stat = PlanStat::of(&entry.stat, name);
                is_full |= writer.len() + stat.wire_len() > count as usize;
                if !is_full {
                    stat.put(&mut writer);
                    cursor.next = *next;
                }
            }
            match writer.is_empty() {
                true if is_full => return Err(Errno::Invalid),
                // Nothing but `.` and `..`.
                true => {}
                false => break,
            }
        }
        cursor.bytes += writer.len() as u64;
        Ok(Bytes::from(writer.into_bytes()))
    }

    fn list(
        &self,
        opened: &Opened,
        caller: Caller,
        offset: u64,
        count: u32,
        entry_bytes: u32,
        with_stats: bool,
    ) -> Result<Vec<Listed>, Errno> {
        let (node, handle) = (opened.place.node, opened.handle);
        // At least one, or an end would be told that is none.
        let bytes_max = count.max(entry_bytes + NAME_BYTES_MAX as u32 + 8);
        let call = Call::Readdir { node, handle, offset, bytes_max, entry_bytes, with_stats };
        answers::listing(self.files.call(caller, call))
    }
}
