//! The objects that a change affects, derived from its edits.

use super::Change;
use crate::affected::AffectedObject;
use crate::halt::Halt;
use crate::item::{Entry, Head};
use crate::key::{Ino, Key, Part, ROOT};
use crate::tree::CHECKPOINTS_NAME;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::FileId;

impl Change<'_> {
    /// Returns all existing names and objects that the change modifies. Created objects are not included.
    pub(crate) fn affected(&self) -> Result<Vec<AffectedObject>, Halt> {
        let mut affected = Vec::new();
        let mut dirs = BTreeSet::new();
        for (key, value) in self.edited(Part::Entry) {
            // A new entry may replace an existing one.
            for entry in [&self.view.map.get(*key)?, value].into_iter().flatten() {
                let name = Entry::decode(entry.clone())?.name;
                affected.extend(self.affected_name(key.ino, name)?);
                dirs.insert(key.ino);
            }
        }
        if self.basis.volume.checkpoints.is_empty() != self.checkpoints.is_empty() {
            // Affects the requester, too: its request named another file, or none.
            let entry = self.affected_name(ROOT, Bytes::from_static(CHECKPOINTS_NAME))?;
            affected.extend(entry.map(|entry| AffectedObject { affects_requester: true, ..entry }));
            dirs.insert(ROOT);
        }
        // The attributes of a directory are covered by its names.
        for (key, value) in self.edited(Part::Head).filter(|(key, _)| !dirs.contains(&key.ino)) {
            let Some(before) = self.view.map.get(*key)? else { continue };
            let before = Head::decode(before)?;
            let after = value.clone().map(Head::decode).transpose()?;
            // An unchanged version means that only internal fields changed.
            if after.is_none_or(|after| after.version != before.version) {
                affected.push(self.affected_object(key.ino, &before));
            }
        }
        affected.dedup();
        Ok(affected)
    }

    fn edited(&self, part: Part) -> impl Iterator<Item = (&Key, &Option<Bytes>)> {
        self.view.edits.iter().filter(move |(key, _)| key.part == part)
    }

    fn affected_name(&self, dir: Ino, name: Bytes) -> Result<Option<AffectedObject>, Halt> {
        let head = self.view.map.get(Key::head(dir))?.map(Head::decode).transpose()?;
        Ok(head.map(|head| AffectedObject {
            id: Self::id_of(dir, &head),
            name: Some(name),
            affects_requester: false,
        }))
    }

    fn affected_object(&self, ino: Ino, before: &Head) -> AffectedObject {
        let id: FileId = Self::id_of(ino, before);
        let has_others = !before.is_directory() && before.nlink > 1;
        AffectedObject { id, name: None, affects_requester: has_others && self.renamed.contains(&ino) }
    }
}
