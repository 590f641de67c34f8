//! What a change changes, read from what it has edited.

use super::Change;
use crate::halt::Halt;
use crate::item::{Entry, Head};
use crate::key::{Ino, Key, Part, ROOT};
use crate::touch::Touch;
use crate::tree::CHECKPOINTS_NAME;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::FileId;

impl Change<'_> {
    /// All that was there before and will be another: names, and objects as a whole. What is made is not among it.
    pub(crate) fn touched(&self) -> Result<Vec<Touch>, Halt> {
        let mut touched = Vec::new();
        let mut dirs = BTreeSet::new();
        for (key, value) in self.edited(Part::Entry) {
            // A name that comes takes the place of one that goes, or of none.
            for entry in [&self.view.map.get(*key)?, value].into_iter().flatten() {
                let name = Entry::decode(entry.clone())?.name;
                touched.extend(self.name_touch(key.ino, name)?);
                dirs.insert(key.ino);
            }
        }
        if self.basis.volume.checkpoints.is_empty() != self.checkpoints.is_empty() {
            // Also for whoever makes the change: it named another file, or none.
            let touch = self.name_touch(ROOT, Bytes::from_static(CHECKPOINTS_NAME))?;
            touched.extend(touch.map(|touch| Touch { is_surprise: true, ..touch }));
            dirs.insert(ROOT);
        }
        // A directory's own attributes go with its names.
        for (key, value) in self.edited(Part::Head).filter(|(key, _)| !dirs.contains(&key.ino)) {
            let Some(before) = self.view.map.get(*key)? else { continue };
            let before = Head::decode(before)?;
            let after = value.clone().map(Head::decode).transpose()?;
            // What only the tree itself knows of an object is nobody's business.
            if after.is_none_or(|after| after.version != before.version) {
                touched.push(self.object_touch(key.ino, &before));
            }
        }
        touched.dedup();
        Ok(touched)
    }

    fn edited(&self, part: Part) -> impl Iterator<Item = (&Key, &Option<Bytes>)> {
        self.view.edits.iter().filter(move |(key, _)| key.part == part)
    }

    fn name_touch(&self, dir: Ino, name: Bytes) -> Result<Option<Touch>, Halt> {
        let head = self.view.map.get(Key::head(dir))?.map(Head::decode).transpose()?;
        Ok(head.map(|head| Touch { id: Self::id_of(dir, &head), name: Some(name), is_surprise: false }))
    }

    fn object_touch(&self, ino: Ino, before: &Head) -> Touch {
        let id: FileId = Self::id_of(ino, before);
        let has_others = !before.is_directory() && before.nlink > 1;
        Touch { id, name: None, is_surprise: has_others && self.renamed.contains(&ino) }
    }
}
