//! Random requests, independent of the fds and inode ids of a tree.

use crate::operation::random::{XATTRS, length, offset, path, path_with, pattern, slot, target, time};
use crate::operation::{Pattern, Slot};
use bytes::Bytes;
use wirefs_op::message::commit::CommitScope;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::put::{Create, PutMode};
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Cred, Kind, SetStat, SetTime, TreePath};
use wirefs_virtual::Dice;

/// The inode id in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IdChoice {
    /// None.
    #[default]
    Unspecified,
    /// The id of the present object.
    Correct,
    /// The id of another object.
    Wrong,
}

/// The target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TargetChoice {
    /// A path.
    At(TreePath, IdChoice),
    /// An open file.
    Open(Slot),
    /// An open file whose fd the server has dropped.
    UnknownFd(Slot),
}

/// A path of a name, and the inode id of its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameChoice(pub(super) TreePath, pub(super) IdChoice);

/// One request. `keep` is the slot for an opened file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RandomRequest {
    Get {
        which: TargetChoice,
        mode: GetMode,
        nmsgs: u16,
        offset: u64,
        count: u32,
        keep: Slot,
    },
    Put {
        which: TargetChoice,
        mode: PutMode,
        create: Option<Create>,
        set: SetStat,
        offset: u64,
        data: PutData,
        keep: Slot,
    },
    Remove {
        name: NameChoice,
        directory: bool,
    },
    Rename {
        from: NameChoice,
        to: NameChoice,
        flags: u32,
    },
    Link {
        which: TargetChoice,
        to: NameChoice,
    },
    Xattr {
        which: TargetChoice,
        action: XattrAction,
        name: &'static str,
        flags: u32,
        value: Pattern,
    },
    Allocate {
        which: TargetChoice,
        mode: u32,
        offset: u64,
        length: u64,
    },
    Copy {
        from: TargetChoice,
        from_offset: u64,
        to: TargetChoice,
        to_offset: u64,
        length: u64,
    },
    Seek {
        which: TargetChoice,
        offset: u64,
        hole: bool,
    },
    Commit {
        which: TargetChoice,
        scope: CommitScope,
    },
    Statfs {
        which: TargetChoice,
    },
}

/// The data of a Tput.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PutData {
    Bytes(Pattern),
    Target(String),
}

impl PutData {
    pub(super) fn bytes(&self) -> Bytes {
        match self {
            PutData::Bytes(pattern) => Bytes::from(pattern.bytes()),
            PutData::Target(target) => Bytes::copy_from_slice(target.as_bytes()),
        }
    }
}

const NO_DATA: PutData = PutData::Bytes(Pattern { len: 0, seed: 0 });
/// No set-id bits: they would depend on the caller's privileges.
const CREATE_MODES: [u32; 5] = [0o644, 0o600, 0o755, 0o666, 0o777];
const MODES: [u32; 6] = [0o644, 0o755, 0o444, 0o1755, 0o2755, 0o4755];

impl RandomRequest {
    /// Returns a change of the root's attributes.
    pub(super) fn set_root(set: SetStat) -> RandomRequest {
        let which = TargetChoice::At(TreePath::root(), IdChoice::Unspecified);
        RandomRequest::Put {
            which,
            mode: PutMode::STAT,
            create: None,
            set,
            offset: 0,
            data: NO_DATA,
            keep: 0,
        }
    }

    /// Returns a request for attributes.
    pub(super) fn stat(path: TreePath) -> RandomRequest {
        let which = TargetChoice::At(path, IdChoice::Unspecified);
        RandomRequest::Get { which, mode: GetMode::STAT, nmsgs: 0, offset: 0, count: 0, keep: 0 }
    }

    /// Returns a request for all data.
    pub(super) fn whole(path: TreePath) -> RandomRequest {
        let which = TargetChoice::At(path, IdChoice::Unspecified);
        let mode = GetMode::STAT.and(GetMode::DATA);
        RandomRequest::Get { which, mode, nmsgs: 0, offset: 0, count: 512 * 1024, keep: 0 }
    }

    /// Returns whether the request zeros a range in place.
    pub(super) fn zeros_range(&self) -> bool {
        matches!(self, RandomRequest::Allocate { mode: 16 | 17, .. })
    }

    pub(super) fn random(dice: &mut Dice) -> RandomRequest {
        match dice.below(100) {
            0..=24 => get(dice),
            25..=44 => create(dice),
            45..=59 => change(dice),
            60..=65 => RandomRequest::Remove { name: name(dice, 25), directory: false },
            66..=68 => RandomRequest::Remove { name: name(dice, 70), directory: true },
            69..=78 => RandomRequest::Rename {
                from: name(dice, 40),
                to: name(dice, 40),
                flags: dice.one_of(&[0, 0, 0, 1, 2, 3, 4]),
            },
            79..=82 => RandomRequest::Link { which: which(dice), to: name(dice, 25) },
            83..=88 => xattr(dice),
            89..=91 => RandomRequest::Allocate {
                which: which(dice),
                mode: dice.one_of(&[0, 1, 3, 16, 17]),
                offset: offset(dice),
                length: length(dice),
            },
            92..=94 => copy(dice),
            95..=97 => {
                RandomRequest::Seek { which: which(dice), offset: offset(dice), hole: dice.chance(1, 2) }
            }
            98 => RandomRequest::Commit { which: which(dice), scope: CommitScope::File },
            _ => RandomRequest::Statfs { which: which(dice) },
        }
    }
}

/// Returns a path that decoders accept: its names have at most 255 bytes.
fn tree_path(dice: &mut Dice, branches_percent: u64) -> TreePath {
    let path = if branches_percent == 25 { path(dice) } else { path_with(dice, branches_percent) };
    let names = path.split('/').map(|name| name.as_bytes().get(..255).unwrap_or(name.as_bytes()));
    TreePath::from_names(names).unwrap_or_default()
}

fn ident(dice: &mut Dice) -> IdChoice {
    dice.one_of(&[
        IdChoice::Unspecified,
        IdChoice::Unspecified,
        IdChoice::Unspecified,
        IdChoice::Correct,
        IdChoice::Correct,
        IdChoice::Correct,
        IdChoice::Correct,
        IdChoice::Wrong,
    ])
}

fn name(dice: &mut Dice, branches_percent: u64) -> NameChoice {
    NameChoice(tree_path(dice, branches_percent), ident(dice))
}

fn which(dice: &mut Dice) -> TargetChoice {
    match dice.below(20) {
        0..=9 => TargetChoice::Open(slot(dice)),
        10..=11 => TargetChoice::UnknownFd(slot(dice)),
        12 => TargetChoice::At(TreePath::root(), ident(dice)),
        _ => TargetChoice::At(tree_path(dice, 25), ident(dice)),
    }
}

fn get(dice: &mut Dice) -> RandomRequest {
    let which = which(dice);
    let is_entry = matches!(which, TargetChoice::At(..)) && dice.chance(1, 2);
    let mode = GetMode::NONE
        .and_if(is_entry, GetMode::ENTRY)
        .and_if(dice.chance(3, 4), GetMode::DATA)
        .and_if(dice.chance(3, 4), GetMode::STAT)
        .and_if(dice.chance(3, 4), GetMode::MORE)
        .and_if(dice.chance(1, 8), GetMode::ORDERED)
        .and_if(dice.chance(1, 6), GetMode::WHOLE);
    RandomRequest::Get {
        which,
        mode,
        nmsgs: dice.one_of(&[0, 0, 0, 1, 2]),
        offset: offset(dice),
        // A link's target either fits or is rejected; a listing needs room for an entry.
        count: dice.one_of(&[5000, 5000, 65_536, 131_072, 300_000]),
        keep: slot(dice),
    }
}

fn create(dice: &mut Dice) -> RandomRequest {
    use Kind::{Directory, Fifo, File, Socket, Symlink};
    let kind = KINDS.get(dice.below(KINDS.len() as u64) as usize).copied().unwrap_or(File);
    const KINDS: [Kind; 12] =
        [File, File, File, File, File, File, Directory, Directory, Directory, Symlink, Fifo, Socket];
    let is_file = kind == File;
    let mode = PutMode::CREATE
        .and_if(is_file && dice.chance(1, 2), PutMode::DATA)
        .and_if(is_file && dice.chance(1, 6), PutMode::STAT)
        .and_if(dice.chance(1, 3), PutMode::EXCLUSIVE)
        .and_if(is_file && dice.chance(1, 6), PutMode::APPEND)
        .and_if(is_file && dice.chance(2, 3), PutMode::MORE.and(PutMode::READ).and(PutMode::WRITE))
        .and_if(is_file && dice.chance(1, 12), PutMode::REMOVE)
        .and_if(is_file && dice.chance(1, 12), PutMode::NAMELESS)
        .and_if(dice.chance(1, 20), PutMode::SYNC);
    let owner = dice.one_of(&[0, 0, 1000]);
    let cred = Cred { uid: owner, gid: owner, umask: dice.one_of(&[0o022, 0o077, 0]) };
    let create = Create { kind, mode: dice.one_of(&CREATE_MODES), rdev: 0, cred };
    let branches = if kind == Directory { 85 } else { 25 };
    let data = match kind {
        Symlink => PutData::Target(target(dice)),
        File if mode.has(PutMode::DATA) => PutData::Bytes(pattern(dice)),
        _ => NO_DATA,
    };
    let which = TargetChoice::At(tree_path(dice, branches), ident(dice));
    RandomRequest::Put {
        which,
        mode,
        create: Some(create),
        set: set(dice),
        offset: offset(dice),
        data,
        keep: slot(dice),
    }
}

fn change(dice: &mut Dice) -> RandomRequest {
    let writes = dice.chance(2, 3);
    let mode = PutMode::NONE
        .and_if(writes, PutMode::DATA)
        .and_if(!writes || dice.chance(1, 6), PutMode::STAT)
        .and_if(dice.chance(4, 5), PutMode::MORE.and(PutMode::WRITE))
        .and_if(dice.chance(1, 2), PutMode::READ)
        .and_if(writes && dice.chance(1, 5), PutMode::APPEND)
        .and_if(dice.chance(1, 30), PutMode::REMOVE)
        .and_if(dice.chance(1, 10), PutMode::KILL_PRIVILEGES)
        .and_if(dice.chance(1, 20), PutMode::SYNC);
    let data = if writes { PutData::Bytes(pattern(dice)) } else { NO_DATA };
    RandomRequest::Put {
        which: which(dice),
        mode,
        create: None,
        set: set(dice),
        offset: offset(dice),
        data,
        keep: slot(dice),
    }
}

/// Returns the attributes that a Tput with STAT changes.
fn set(dice: &mut Dice) -> SetStat {
    let owner = |dice: &mut Dice| dice.chance(1, 5).then(|| dice.below(3) as u32);
    let when =
        |dice: &mut Dice| if dice.chance(1, 5) { Some(SetTime::Now) } else { time(dice).map(SetTime::At) };
    SetStat {
        mode: dice.chance(1, 3).then(|| dice.one_of(&MODES)),
        uid: owner(dice),
        gid: owner(dice),
        size: dice.chance(1, 3).then(|| offset(dice)),
        atime: if dice.chance(1, 3) { when(dice) } else { None },
        mtime: if dice.chance(1, 3) { when(dice) } else { None },
    }
}

fn xattr(dice: &mut Dice) -> RandomRequest {
    let action = match dice.below(6) {
        0 => XattrAction::Read,
        1 => XattrAction::List,
        2 => XattrAction::Remove,
        _ => XattrAction::Set,
    };
    RandomRequest::Xattr {
        which: which(dice),
        action,
        name: dice.one_of(&XATTRS),
        flags: dice.one_of(&[0, 0, 1, 2]),
        value: Pattern { len: dice.below(100) as usize, seed: dice.word() as u8 },
    }
}

fn copy(dice: &mut Dice) -> RandomRequest {
    RandomRequest::Copy {
        from: which(dice),
        from_offset: offset(dice),
        to: which(dice),
        to_offset: offset(dice),
        length: length(dice),
    }
}
