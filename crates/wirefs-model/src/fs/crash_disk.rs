//! The durable state after a power cut, as with a journaling file system: names become durable in order, contents and
//! attributes of files in any order.

use super::{InodeBody, ModelFs, ModelIno};
use std::collections::{BTreeMap, BTreeSet};

/// All states since the last one that is completely durable.
#[derive(Clone, Debug)]
pub(crate) struct CrashDisk {
    /// INVARIANT: never empty.
    states: Vec<ModelFs>,
    /// The index of the oldest state whose names may be on the disk after a power cut.
    names: usize,
    /// For single files, the index of the oldest state whose contents may be on the disk.
    contents: BTreeMap<ModelIno, usize>,
}

impl CrashDisk {
    pub(crate) fn new(fs: &ModelFs) -> CrashDisk {
        CrashDisk { states: vec![fs.clone()], names: 0, contents: BTreeMap::new() }
    }

    /// Records a change.
    pub(crate) fn changed(&mut self, fs: &ModelFs) {
        self.states.push(fs.clone());
    }

    /// Records a commit of one object, including all names, or of everything.
    pub(crate) fn committed(&mut self, fs: &ModelFs, object: Option<ModelIno>) {
        match object {
            None => *self = CrashDisk::new(fs),
            Some(ino) => {
                self.changed(fs);
                self.names = self.states.len() - 1;
                self.contents.insert(ino, self.names);
            }
        }
    }

    /// Returns a possible state after a power cut. `choose` picks a number below its argument; 0 always picks the
    /// durable state.
    pub(crate) fn after_power_cut(&self, choose: &mut dyn FnMut(u64) -> u64) -> ModelFs {
        let mut pick = |oldest: usize, end: usize| {
            let count = end.saturating_sub(oldest).max(1) as u64;
            oldest + (choose(count).min(count - 1)) as usize
        };
        let at = pick(self.names, self.states.len());
        let (Some(names), Some(now)) = (self.states.get(at), self.states.last()) else {
            return ModelFs::new();
        };
        let mut fs = names.clone();
        // Times are never used twice. Inode numbers are, in any order.
        (fs.ticks, fs.clock) = (now.ticks + 1, now.clock);
        for (ino, inode) in &mut fs.inodes {
            inode.holds = 0;
            if !matches!(inode.body, InodeBody::File(_)) {
                continue;
            }
            let is_there = |state: &ModelFs| state.inodes.contains_key(ino);
            let first = self.states.iter().position(is_there).unwrap_or(at);
            let end = self.states.iter().rposition(is_there).map_or(at, |last| last + 1);
            let oldest = self.contents.get(ino).map_or(first, |oldest| first.max(*oldest));
            let chosen = self.states.get(pick(oldest, end)).and_then(|state| state.inodes.get(ino));
            if let Some(chosen) = chosen {
                let nlink = inode.nlink;
                *inode = chosen.clone();
                (inode.nlink, inode.holds) = (nlink, 0);
            }
        }
        let made = self.states.iter().skip(at).flat_map(|state| state.inodes.keys()).map(|ino| ino.0);
        fs.lost.extend(made.filter(|ino| *ino > names.ticks).collect::<BTreeSet<u64>>());
        for last in (1..fs.lost.len()).rev() {
            fs.lost.swap(last, (choose(last as u64 + 1) as usize).min(last));
        }
        fs.inodes.retain(|ino, inode| inode.nlink > 0 || *ino == super::ROOT);
        fs
    }
}
