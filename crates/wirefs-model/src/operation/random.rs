//! Random operations, with so few names that operations often conflict.

use crate::operation::{
    FileCall, NameCall, ObjectCall, OpenFlags, Operation, Path, Pattern, SLOTS, Slot, TimeToSet,
};
use proptest::prelude::*;
use wirefs_op::Timestamp;
use wirefs_virtual::Dice;

/// None is world-writable with the sticky bit: there Linux has additional rules (`fs.protected_*`).
const MODES: [u32; 9] = [0o644, 0o600, 0o755, 0o777, 0o444, 0o1755, 0o2755, 0o4755, 0o2644];
pub(crate) const XATTRS: [&str; 3] = ["user.a", "user.b", "user.c"];

impl Operation {
    /// Returns a random operation.
    pub fn random(dice: &mut Dice) -> Operation {
        match dice.below(100) {
            0..=47 => file_call(dice),
            48..=79 => Operation::Name(name_call(dice)),
            _ => Operation::Object(path(dice), object_call(dice)),
        }
    }

    /// Returns the sequence of a seed.
    pub fn sequence(seed: u64, operations: usize) -> Vec<Operation> {
        let mut dice = Dice::new(seed);
        (0..operations).map(|_| Operation::random(&mut dice)).collect()
    }

    /// Returns sequences that shrink by omitting operations.
    pub fn sequences(operations_max: usize) -> impl Strategy<Value = Vec<Operation>> {
        let operation = any::<u64>().prop_map(|seed| Operation::random(&mut Dice::new(seed))).no_shrink();
        prop::collection::vec(operation, 1..=operations_max)
    }
}

fn file_call(dice: &mut Dice) -> Operation {
    let slot = slot(dice);
    if dice.chance(1, 4) {
        return Operation::Open { slot, path: path(dice), open_flags: open_flags(dice), mode: mode(dice) };
    }
    Operation::File(
        slot,
        match dice.below(75) {
            0..=1 => FileCall::Close,
            2..=14 => FileCall::Read { offset: offset(dice), count: length(dice) as usize },
            15..=36 => FileCall::Write { offset: offset(dice), data: pattern(dice) },
            37..=44 => FileCall::Stat,
            45..=50 => FileCall::Truncate { size: offset(dice) },
            51..=57 => FileCall::Allocate {
                mode: dice.one_of(&[0, 1, 3, 3, 16, 17]),
                offset: offset(dice),
                length: length(dice),
            },
            58..=65 => FileCall::CopyFrom {
                from: self::slot(dice),
                from_offset: offset(dice),
                to_offset: offset(dice),
                length: length(dice),
            },
            66..=71 => FileCall::Seek { offset: offset(dice), hole: dice.chance(1, 2) },
            _ => FileCall::Sync,
        },
    )
}

fn name_call(dice: &mut Dice) -> NameCall {
    let path = path(dice);
    match dice.below(100) {
        0..=14 => NameCall::Mkdir { path: path_with(dice, 85), mode: mode(dice) },
        15..=21 => NameCall::Symlink { target: target(dice), path },
        22..=31 => NameCall::Link { from: path, to: self::path(dice) },
        32..=61 => NameCall::Rename {
            from: path,
            to: self::path(dice),
            flags: dice.one_of(&[0, 0, 0, 0, 1, 2, 2, 3]),
        },
        62..=76 => NameCall::Unlink { path },
        77..=84 => NameCall::Rmdir { path: path_with(dice, 70) },
        85..=88 => NameCall::Readlink { path },
        89..=90 => NameCall::Mkfifo { path, mode: mode(dice) },
        _ => NameCall::List { path: path_with(dice, 70) },
    }
}

fn object_call(dice: &mut Dice) -> ObjectCall {
    match dice.below(100) {
        0..=24 => ObjectCall::Stat { follow: dice.chance(1, 3) },
        25..=36 => ObjectCall::Chmod { mode: mode(dice) },
        37..=44 => ObjectCall::Chown { uid: dice.below(3) as u32, gid: dice.below(3) as u32 },
        45..=54 => ObjectCall::SetTimes { atime: time(dice), mtime: time(dice) },
        55..=64 => ObjectCall::Truncate { size: offset(dice) },
        65..=79 => ObjectCall::SetXattr {
            name: dice.one_of(&XATTRS).into(),
            value: Pattern { len: dice.below(100) as usize, seed: dice.word() as u8 },
            flags: dice.one_of(&[0, 0, 1, 2]),
        },
        80..=87 => ObjectCall::ReadXattr { name: dice.one_of(&XATTRS).into() },
        88..=92 => ObjectCall::ListXattrs,
        _ => ObjectCall::RemoveXattr { name: dice.one_of(&XATTRS).into() },
    }
}

pub(crate) fn slot(dice: &mut Dice) -> Slot {
    dice.below(SLOTS as u64) as Slot
}

/// Names used mostly for files, and names used mostly for directories.
const LEAVES: [&str; 3] = ["a", "b", "c"];
const BRANCHES: [&str; 2] = ["d", "e"];

fn name(dice: &mut Dice, branches_percent: u64) -> String {
    match dice.below(100) {
        0 => "n".repeat(255),
        1 => "n".repeat(256),
        2 => " \u{e4}\n".into(),
        _ if dice.chance(branches_percent, 100) => dice.one_of(&BRANCHES).into(),
        _ => dice.one_of(&LEAVES).into(),
    }
}

/// Returns a path of one to three names. The last one is a typical directory name in `branches_percent` of the cases.
pub(crate) fn path_with(dice: &mut Dice, branches_percent: u64) -> Path {
    let mut path = String::new();
    for _ in 0..dice.one_of(&[0, 0, 0, 1, 1, 2]) {
        path.push_str(&name(dice, 85));
        path.push('/');
    }
    path + &name(dice, branches_percent)
}

pub(crate) fn path(dice: &mut Dice) -> Path {
    path_with(dice, 25)
}

/// Returns a symlink target inside the tree.
pub(crate) fn target(dice: &mut Dice) -> String {
    match dice.below(30) {
        0 => String::new(),
        1 => "t".repeat(4095),
        2 => "t".repeat(4096),
        _ => path(dice),
    }
}

fn open_flags(dice: &mut Dice) -> OpenFlags {
    let (read, write) = dice.one_of(&[(true, false), (true, true), (true, true), (false, true)]);
    let directory = dice.chance(1, 20);
    let create = !directory && dice.chance(3, 5);
    OpenFlags {
        read,
        write,
        create,
        exclusive: create && dice.chance(1, 4),
        // Truncation without write access is undefined.
        truncate: write && dice.chance(1, 8),
        append: write && dice.chance(1, 6),
        no_follow: dice.chance(1, 6),
        directory,
    }
}

pub(crate) fn mode(dice: &mut Dice) -> u32 {
    dice.one_of(&MODES)
}

/// Returns an offset mostly near the start and at page boundaries, sometimes above 4 GiB.
pub(crate) fn offset(dice: &mut Dice) -> u64 {
    let near = dice.one_of(&[0_u64, 0, 1, 4095, 4096, 4097, 8192, 16_384, 65_536]);
    match dice.below(20) {
        0 => (5 << 30) + near,
        1..=9 => near,
        _ => dice.below(20_000),
    }
}

pub(crate) fn length(dice: &mut Dice) -> u64 {
    match dice.below(10) {
        0 => dice.one_of(&[0, 1, 4096, 8192, 40_000]),
        _ => 1 + dice.below(10_000),
    }
}

pub(crate) fn pattern(dice: &mut Dice) -> Pattern {
    Pattern { len: length(dice) as usize, seed: dice.word() as u8 }
}

pub(crate) fn time(dice: &mut Dice) -> TimeToSet {
    let secs = dice.one_of(&[None, Some(0), Some(-1), Some(1_000_000_000), Some(1_700_000_001)])?;
    Some(Timestamp { secs, nanos: dice.one_of(&[0, 1, 123_456_789, 999_999_999]) })
}
