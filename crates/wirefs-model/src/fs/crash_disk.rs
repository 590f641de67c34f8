//! What of the file system is on its disk, as file systems with a journal have it: changes of names reach the disk in their order,
//! contents and attributes of files in any.

use super::{Body, Fs, Ino};
use std::collections::{BTreeMap, BTreeSet};

/// All states since the last that the disk has whole.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    /// INVARIANT: never empty.
    states: Vec<Fs>,
    /// The disk has the names of this state, or of a later one.
    names: usize,
    /// And of these files what they were in this state, or a later one.
    contents: BTreeMap<Ino, usize>,
}

impl Disk {
    pub(crate) fn new(fs: &Fs) -> Disk {
        Disk { states: vec![fs.clone()], names: 0, contents: BTreeMap::new() }
    }

    /// Something has changed.
    pub(crate) fn changed(&mut self, fs: &Fs) {
        self.states.push(fs.clone());
    }

    /// The disk is told to have one object, and with it all names; or all of it.
    pub(crate) fn committed(&mut self, fs: &Fs, what: Option<Ino>) {
        match what {
            None => *self = Disk::new(fs),
            Some(ino) => {
                self.changed(fs);
                self.names = self.states.len() - 1;
                self.contents.insert(ino, self.names);
            }
        }
    }

    /// What is there after a power cut: `choose` picks a number below its argument, and 0 always is what the disk has for certain.
    pub(crate) fn after_power_cut(&self, choose: &mut dyn FnMut(u64) -> u64) -> Fs {
        let mut pick = |least: usize, past: usize| {
            let count = past.saturating_sub(least).max(1) as u64;
            least + (choose(count).min(count - 1)) as usize
        };
        let at = pick(self.names, self.states.len());
        let (Some(names), Some(now)) = (self.states.get(at), self.states.last()) else { return Fs::new() };
        let mut fs = names.clone();
        // Times are not used twice. Numbers of inodes are, in any order.
        (fs.ticks, fs.clock) = (now.ticks + 1, now.clock);
        for (ino, inode) in &mut fs.inodes {
            inode.holds = 0;
            if !matches!(inode.body, Body::File(_)) {
                continue;
            }
            let is_there = |state: &Fs| state.inodes.contains_key(ino);
            let first = self.states.iter().position(is_there).unwrap_or(at);
            let past = self.states.iter().rposition(is_there).map_or(at, |last| last + 1);
            let least = self.contents.get(ino).map_or(first, |least| first.max(*least));
            let chosen = self.states.get(pick(least, past)).and_then(|state| state.inodes.get(ino));
            if let Some(chosen) = chosen {
                let nlink = inode.nlink;
                *inode = chosen.clone();
                (inode.nlink, inode.holds) = (nlink, 0);
            }
        }
        let made = self.states.iter().skip(at).flat_map(|state| state.inodes.keys()).map(|ino| ino.0);
        fs.lost.extend(made.filter(|ino| *ino > names.ticks).collect::<BTreeSet<u64>>());
        for left in (1..fs.lost.len()).rev() {
            fs.lost.swap(left, (choose(left as u64 + 1) as usize).min(left));
        }
        fs.inodes.retain(|ino, inode| inode.nlink > 0 || *ino == super::ROOT);
        fs
    }
}
