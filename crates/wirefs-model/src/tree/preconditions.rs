//! The state before a change that is not idempotent.

use crate::fs::ModelIno;
use crate::tree::ModelState;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::Place;
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Change, Request};
use wirefs_server::{Found, SessionKey};

impl ModelState {
    /// Returns the state before the change; `None` if the change is idempotent, or will fail.
    pub(super) fn state_before(&self, session: SessionKey, request: &Request) -> Option<Found> {
        match request.change()? {
            Change::Put(put) => self.put_state_before(session, put),
            Change::Remove(remove) => {
                Some(Found { at: Some(self.named(session, &remove.place)?.id()), ..Found::default() })
            }
            Change::Rename(rename) => {
                let moved = self.named(session, &rename.from)?;
                let at = self.named(session, &rename.to).map(ModelIno::id);
                Some(Found { at, of: Some(moved.id()), size: 0 })
            }
            Change::Link(link) => {
                let linked = self.locate(session, &link.target).ok()?;
                Some(Found { of: Some(linked.ino.id()), ..Found::default() })
            }
            Change::Xattr(xattr) => match xattr.action {
                XattrAction::Set => (xattr.flags != 0).then(Found::default),
                XattrAction::Remove => Some(Found::default()),
                XattrAction::Read | XattrAction::List => None,
            },
            Change::Lock(_) | Change::Allocate(_) | Change::Copy(_) => None,
        }
    }

    fn put_state_before(&self, session: SessionKey, put: &Tput) -> Option<Found> {
        let (mode, path) = (put.mode, &put.target.path);
        if mode.has(PutMode::NAMELESS) {
            return None;
        }
        let creates = mode.has(PutMode::CREATE);
        let place = Place { path: path.clone(), dir: put.target.id.filter(|_| creates) };
        let at = self.named(session, &place);
        if creates && at.is_none() {
            return Some(Found::default());
        }
        if mode.has(PutMode::APPEND) && mode.has(PutMode::DATA) {
            let file = if creates { at? } else { self.locate(session, &put.target).ok()?.ino };
            let size = self.fs.contents(file).ok()?.size();
            return Some(Found { at: Some(file.id()), of: None, size });
        }
        mode.has(PutMode::REMOVE).then_some(Found { at: at.map(ModelIno::id), ..Found::default() })
    }

    fn named(&self, session: SessionKey, place: &Place) -> Option<ModelIno> {
        let (dir, name) = self.entry(session, place).ok()?;
        self.fs.lookup(dir, name).ok()
    }
}
