//! A random request, before it is known which numbers each tree has given to its files.

use crate::dice::Dice;
use crate::operation::random::{XATTRS, length, offset, path, path_with, pattern, slot, target, time};
use crate::operation::{Pattern, Slot};
use bytes::Bytes;
use wirefs_op::message::commit::CommitScope;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::put::{Create, PutMode};
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Cred, Kind, SetStat, SetTime, TreePath};

/// What a client says about which object it means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ident {
    /// Nothing.
    #[default]
    Whatever,
    /// The id of what is there.
    Right,
    /// Another object's id.
    Wrong,
}

/// How a request names its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// By path.
    At(TreePath, Ident),
    /// As an open file.
    Open(Slot),
    /// As an open file whose fd the server has forgotten.
    Forgotten(Slot),
}

/// A name, and what is said about its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(pub(super) TreePath, pub(super) Ident);

/// One request. `keep` is the slot for an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Get {
        which: Which,
        mode: GetMode,
        nmsgs: u16,
        offset: u64,
        count: u32,
        keep: Slot,
    },
    Put {
        which: Which,
        mode: PutMode,
        create: Option<Create>,
        set: SetStat,
        offset: u64,
        data: Contents,
        keep: Slot,
    },
    Remove {
        name: Name,
        directory: bool,
    },
    Rename {
        from: Name,
        to: Name,
        flags: u32,
    },
    Link {
        which: Which,
        to: Name,
    },
    Xattr {
        which: Which,
        action: XattrAction,
        name: &'static str,
        flags: u32,
        value: Pattern,
    },
    Allocate {
        which: Which,
        mode: u32,
        offset: u64,
        length: u64,
    },
    Copy {
        from: Which,
        from_offset: u64,
        to: Which,
        to_offset: u64,
        length: u64,
    },
    Seek {
        which: Which,
        offset: u64,
        hole: bool,
    },
    Commit {
        which: Which,
        scope: CommitScope,
    },
    Statfs {
        which: Which,
    },
}

/// A Tput's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Bytes(Pattern),
    Target(String),
}

impl Contents {
    pub(super) fn bytes(&self) -> Bytes {
        match self {
            Contents::Bytes(pattern) => Bytes::from(pattern.bytes()),
            Contents::Target(target) => Bytes::copy_from_slice(target.as_bytes()),
        }
    }
}

const NO_DATA: Contents = Contents::Bytes(Pattern { len: 0, seed: 0 });
/// Without set-id bits, which depend on whether a caller's rights are modelled.
const CREATE_MODES: [u32; 5] = [0o644, 0o600, 0o755, 0o666, 0o777];
const MODES: [u32; 6] = [0o644, 0o755, 0o444, 0o1755, 0o2755, 0o4755];

impl Ask {
    /// Changes the attributes of the root.
    pub(super) fn set_root(set: SetStat) -> Ask {
        let which = Which::At(TreePath::root(), Ident::Whatever);
        Ask::Put { which, mode: PutMode::STAT, create: None, set, offset: 0, data: NO_DATA, keep: 0 }
    }

    /// Asks for attributes.
    pub(super) fn stat(path: TreePath) -> Ask {
        let which = Which::At(path, Ident::Whatever);
        Ask::Get { which, mode: GetMode::STAT, nmsgs: 0, offset: 0, count: 0, keep: 0 }
    }

    /// Asks for all data.
    pub(super) fn whole(path: TreePath) -> Ask {
        let which = Which::At(path, Ident::Whatever);
        let mode = GetMode::STAT.and(GetMode::DATA);
        Ask::Get { which, mode, nmsgs: 0, offset: 0, count: 512 * 1024, keep: 0 }
    }

    /// Whether it zeroes a range in place.
    pub(super) fn zeroes(&self) -> bool {
        matches!(self, Ask::Allocate { mode: 16 | 17, .. })
    }

    pub(super) fn random(dice: &mut Dice) -> Ask {
        match dice.below(100) {
            0..=24 => get(dice),
            25..=44 => create(dice),
            45..=59 => change(dice),
            60..=65 => Ask::Remove { name: name(dice, 25), directory: false },
            66..=68 => Ask::Remove { name: name(dice, 70), directory: true },
            69..=78 => Ask::Rename {
                from: name(dice, 40),
                to: name(dice, 40),
                flags: dice.one_of(&[0, 0, 0, 1, 2, 3, 4]),
            },
            79..=82 => Ask::Link { which: which(dice), to: name(dice, 25) },
            83..=88 => xattr(dice),
            89..=91 => Ask::Allocate {
                which: which(dice),
                mode: dice.one_of(&[0, 1, 3, 16, 17]),
                offset: offset(dice),
                length: length(dice),
            },
            92..=94 => copy(dice),
            95..=97 => Ask::Seek { which: which(dice), offset: offset(dice), hole: dice.chance(1, 2) },
            98 => Ask::Commit { which: which(dice), scope: CommitScope::File },
            _ => Ask::Statfs { which: which(dice) },
        }
    }
}

/// Paths that a decoder accepts: names are at most 255 bytes.
fn tree_path(dice: &mut Dice, branches_percent: u64) -> TreePath {
    let path = if branches_percent == 25 { path(dice) } else { path_with(dice, branches_percent) };
    let names = path.split('/').map(|name| name.as_bytes().get(..255).unwrap_or(name.as_bytes()));
    TreePath::from_names(names).unwrap_or_default()
}

fn ident(dice: &mut Dice) -> Ident {
    dice.one_of(&[
        Ident::Whatever,
        Ident::Whatever,
        Ident::Whatever,
        Ident::Right,
        Ident::Right,
        Ident::Right,
        Ident::Right,
        Ident::Wrong,
    ])
}

fn name(dice: &mut Dice, branches_percent: u64) -> Name {
    Name(tree_path(dice, branches_percent), ident(dice))
}

fn which(dice: &mut Dice) -> Which {
    match dice.below(20) {
        0..=9 => Which::Open(slot(dice)),
        10..=11 => Which::Forgotten(slot(dice)),
        12 => Which::At(TreePath::root(), ident(dice)),
        _ => Which::At(tree_path(dice, 25), ident(dice)),
    }
}

fn get(dice: &mut Dice) -> Ask {
    let which = which(dice);
    let is_entry = matches!(which, Which::At(..)) && dice.chance(1, 2);
    let mode = GetMode::NONE
        .and_if(is_entry, GetMode::ENTRY)
        .and_if(dice.chance(3, 4), GetMode::DATA)
        .and_if(dice.chance(3, 4), GetMode::STAT)
        .and_if(dice.chance(3, 4), GetMode::MORE)
        .and_if(dice.chance(1, 8), GetMode::ORDERED)
        .and_if(dice.chance(1, 6), GetMode::WHOLE);
    Ask::Get {
        which,
        mode,
        nmsgs: dice.one_of(&[0, 0, 0, 1, 2]),
        offset: offset(dice),
        // A link's target either fits or is refused; a listing needs room for an entry.
        count: dice.one_of(&[5000, 5000, 65_536, 131_072, 300_000]),
        keep: slot(dice),
    }
}

fn create(dice: &mut Dice) -> Ask {
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
        Symlink => Contents::Target(target(dice)),
        File if mode.has(PutMode::DATA) => Contents::Bytes(pattern(dice)),
        _ => NO_DATA,
    };
    let which = Which::At(tree_path(dice, branches), ident(dice));
    Ask::Put {
        which,
        mode,
        create: Some(create),
        set: set(dice),
        offset: offset(dice),
        data,
        keep: slot(dice),
    }
}

fn change(dice: &mut Dice) -> Ask {
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
    let data = if writes { Contents::Bytes(pattern(dice)) } else { NO_DATA };
    Ask::Put {
        which: which(dice),
        mode,
        create: None,
        set: set(dice),
        offset: offset(dice),
        data,
        keep: slot(dice),
    }
}

/// What a Tput would change if it carried STAT.
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

fn xattr(dice: &mut Dice) -> Ask {
    let action = match dice.below(6) {
        0 => XattrAction::Read,
        1 => XattrAction::List,
        2 => XattrAction::Remove,
        _ => XattrAction::Set,
    };
    Ask::Xattr {
        which: which(dice),
        action,
        name: dice.one_of(&XATTRS),
        flags: dice.one_of(&[0, 0, 1, 2]),
        value: Pattern { len: dice.below(100) as usize, seed: dice.word() as u8 },
    }
}

fn copy(dice: &mut Dice) -> Ask {
    Ask::Copy {
        from: which(dice),
        from_offset: offset(dice),
        to: which(dice),
        to_offset: offset(dice),
        length: length(dice),
    }
}
