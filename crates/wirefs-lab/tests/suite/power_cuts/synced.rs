//! Files and names that an `fsync` has acknowledged, and that no call changed since.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::storm::Effect;

/// The file and its contents when it was synced.
#[derive(Clone, Debug)]
struct Contents {
    /// The number of the sync.
    sync: u64,
    bytes: Vec<u8>,
    /// All names that it had then and got since: the disk may have any of those changes.
    names: BTreeSet<String>,
}

/// The promises at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Synced {
    syncs: u64,
    files: BTreeMap<u64, Contents>,
    names: BTreeMap<String, u64>,
}

impl Synced {
    /// A call is about to be made.
    pub(super) fn before(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Changed(file) | Effect::Gone(file) => {
                    self.files.remove(file);
                }
                Effect::Named(file, name) => {
                    if let Some(contents) = self.files.get_mut(file) {
                        contents.names.insert(name.clone());
                    }
                }
                Effect::Unnamed(name) => {
                    self.names.remove(name);
                }
                Effect::SyncedFile(..) | Effect::SyncedNames(_) => {}
            }
        }
    }

    /// The call has returned without error; the reference tree has its result.
    pub(super) fn after(&mut self, effects: &[Effect], reference: &Path) {
        for effect in effects {
            self.syncs += 1;
            match effect {
                Effect::SyncedFile(file, names) => {
                    let bytes = fs::read(reference.join(&names[0])).unwrap();
                    let names = names.iter().cloned().collect();
                    self.files.insert(*file, Contents { sync: self.syncs, bytes, names });
                }
                Effect::SyncedNames(names) => {
                    self.names.extend(names.iter().map(|name| (name.clone(), self.syncs)));
                }
                Effect::Changed(_) | Effect::Gone(_) | Effect::Named(..) | Effect::Unnamed(_) => {}
            }
        }
    }

    /// Files and names promised before the power cut, unchanged after it, and not on the disk.
    pub(super) fn missing(&self, after: &Synced, disk: &Path) -> Vec<String> {
        let mut missing = Vec::new();
        for (file, before) in &self.files {
            let Some(after) = after.files.get(file).filter(|after| after.sync == before.sync) else {
                continue;
            };
            let has_it = |name: &String| fs::read(disk.join(name)).is_ok_and(|bytes| bytes == after.bytes);
            if !after.names.iter().any(has_it) {
                missing.push(format!("synced contents of {:?}", after.names));
            }
        }
        for (name, sync) in &self.names {
            if after.names.get(name) == Some(sync) && fs::symlink_metadata(disk.join(name)).is_err() {
                missing.push(format!("synced name {name}"));
            }
        }
        missing
    }
}
