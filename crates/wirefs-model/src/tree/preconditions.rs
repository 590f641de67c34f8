//! The state before a change that is not idempotent.

use crate::fs::ModelIno;
use crate::tree::ModelState;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::Place;
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Change, Request};
use wirefs_server::{PriorState, SessionKey};

impl ModelState {
    /// Returns the state before the change; `None` if the change is idempotent, or will fail.
    pub(super) fn state_before(&self, session: SessionKey, request: &Request) -> Option<PriorState> {
        match request.change()? {
            Change::Put(put) => self.put_state_before(session, put),
            Change::Remove(remove) => Some(PriorState {
                named: Some(self.named(session, &remove.place)?.id()),
                ..PriorState::default()
            }),
            Change::Rename(rename) => {
                let moved = self.named(session, &rename.from)?;
                let at = self.named(session, &rename.to).map(ModelIno::id);
                Some(PriorState { named: at, object: Some(moved.id()), size: 0 })
            }
            Change::Link(link) => {
                let linked = self.locate(session, &link.target).ok()?;
                Some(PriorState { object: Some(linked.ino.id()), ..PriorState::default() })
            }
            Change::Xattr(xattr) => match xattr.action {
                XattrAction::Set => (xattr.flags != 0).then(PriorState::default),
                XattrAction::Remove => Some(PriorState::default()),
                XattrAction::Read | XattrAction::List => None,
            },
            Change::Lock(_) | Change::Allocate(_) | Change::Copy(_) => None,
        }
    }

    fn put_state_before(&self, session: SessionKey, put: &Tput) -> Option<PriorState> {
        let (mode, path) = (put.mode, &put.target.path);
        if mode.has(PutMode::NAMELESS) {
            return None;
        }
        let creates = mode.has(PutMode::CREATE);
        let place = Place { path: path.clone(), dir: put.target.id.filter(|_| creates) };
        let at = self.named(session, &place);
        if creates && at.is_none() {
            return Some(PriorState::default());
        }
        if mode.has(PutMode::APPEND) && mode.has(PutMode::DATA) {
            let file = if creates { at? } else { self.locate(session, &put.target).ok()?.ino };
            let size = self.fs.contents(file).ok()?.size();
            return Some(PriorState { named: Some(file.id()), object: None, size });
        }
        mode.has(PutMode::REMOVE)
            .then_some(PriorState { named: at.map(ModelIno::id), ..PriorState::default() })
    }

    fn named(&self, session: SessionKey, place: &Place) -> Option<ModelIno> {
        let (dir, name) = self.entry(session, place).ok()?;
        self.fs.lookup(dir, name).ok()
    }
}
