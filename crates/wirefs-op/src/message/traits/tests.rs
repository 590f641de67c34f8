use super::{Change, Order, Weight};
use crate::message::commit::{CommitScope, Tcommit};
use crate::message::get::{GetMode, Tget};
use crate::message::lock::{LockAction, Tlock};
use crate::message::ping::Tping;
use crate::message::put::{PutMode, Tput};
use crate::message::remove::Tremove;
use crate::message::target::{Fd, Place, Target};
use crate::message::xattr::{Txattr, XattrAction};
use crate::wire::{Data, Text};
use crate::{LockFamily, LockKind, LockRange, Request, SetStat, TreePath};

fn get(mode: GetMode, count: u32) -> Request {
    Request::Get(Tget { target: Target::at(TreePath::root()), mode, nmsgs: 0, offset: 0, count })
}

fn put(mode: PutMode) -> Request {
    let target = Target { fd: Fd(3), ..Target::at(TreePath::root()) };
    let (set, data) = (SetStat::default(), Data::default());
    Request::Put(Tput { target, mode, offset: 0, set, create: None, data })
}

fn lock(action: LockAction, kind: LockKind) -> Request {
    let range = LockRange { kind, start: 0, end: 9, pid: 1 };
    let (target, family) = (Target::at(TreePath::root()), LockFamily::Posix);
    Request::Lock(Tlock { target, action, family, owner: 1, range })
}

#[test]
fn changes_are_ordered_and_queries_are_not() {
    let remove =
        Request::Remove(Tremove { place: Place { path: TreePath::root(), dir: None }, directory: false });
    assert_eq!(remove.order(), Order::Change);
    assert!(matches!(remove.change(), Some(Change::Remove(_))));
    assert!(!remove.traits().is_repeatable);
    assert_eq!(get(GetMode::STAT, 0).order(), Order::Free);
    assert_eq!(get(GetMode::STAT.and(GetMode::ORDERED), 0).order(), Order::Ordered);
    let commit =
        Request::Commit(Tcommit { target: Target::at(TreePath::root()), scope: CommitScope::Filesystem });
    assert_eq!((commit.order(), commit.change()), (Order::Ordered, None));
    assert_eq!(Request::Ping(Tping {}).change(), None);
}

#[test]
fn extended_attributes_are_changes_if_they_are_set() {
    let xattr = |action| {
        let target = Target::at(TreePath::root());
        Request::Xattr(Txattr {
            target,
            action,
            flags: 0,
            kill_sgid: false,
            name: Text::new(b"user.a"),
            value: Data::default(),
        })
    };
    assert!(xattr(XattrAction::Set).change().is_some() && xattr(XattrAction::Remove).is_change());
    assert!(xattr(XattrAction::Read).change().is_none() && xattr(XattrAction::List).traits().is_repeatable);
}

#[test]
fn writes_are_repeatable_unless_they_create_append_or_remove() {
    assert!(put(PutMode::DATA).traits().is_repeatable);
    for mode in [PutMode::CREATE, PutMode::APPEND, PutMode::REMOVE] {
        assert!(!put(mode).traits().is_repeatable, "{mode:?}");
    }
    assert_eq!(put(PutMode::DATA.and(PutMode::SYNC)).traits().weight, Weight::Long);
}

#[test]
fn closing_and_unlocking_may_release_what_others_wait_for() {
    assert!(put(PutMode::DATA).traits().may_release);
    assert!(!put(PutMode::DATA.and(PutMode::MORE)).traits().may_release);
    assert!(lock(LockAction::Set, LockKind::Unlock).traits().may_release);
    assert!(!lock(LockAction::Set, LockKind::Write).traits().may_release);
}

#[test]
fn only_locks_that_are_waited_for_block() {
    assert_eq!(lock(LockAction::Wait, LockKind::Write).traits().weight, Weight::Blocking);
    assert_eq!(lock(LockAction::Wait, LockKind::Unlock).traits().weight, Weight::Quick);
    assert_eq!(lock(LockAction::Set, LockKind::Write).order(), Order::Change);
    assert_eq!(lock(LockAction::Test, LockKind::Write).order(), Order::Ordered);
    assert_eq!(get(GetMode::DATA, 1 << 20).traits().weight, Weight::Long);
}
