//! Choosing an operation: over so few names that operations meet all the time.

use crate::dice::Dice;
use crate::operation::{How, Operation, Path, Pattern, SLOTS, SetTo, Slot};
use proptest::prelude::*;
use wirefs_op::Timestamp;

/// Not world-writable where sticky: there Linux adds rules of its own (`fs.protected_*`).
const MODES: [u32; 9] = [0o644, 0o600, 0o755, 0o777, 0o444, 0o1755, 0o2755, 0o4755, 0o2644];
const XATTRS: [&str; 3] = ["user.a", "user.b", "user.c"];

impl Operation {
    /// A random operation.
    pub fn random(dice: &mut Dice) -> Operation {
        match dice.below(100) {
            0..=47 => on_open_file(dice),
            48..=79 => on_names(dice),
            _ => on_attributes(dice),
        }
    }

    /// The sequence that a seed determines.
    pub fn sequence(seed: u64, operations: usize) -> Vec<Operation> {
        let mut dice = Dice::new(seed);
        (0..operations).map(|_| Operation::random(&mut dice)).collect()
    }

    /// Sequences that shrink by leaving operations out.
    pub fn sequences(operations_max: usize) -> impl Strategy<Value = Vec<Operation>> {
        let operation = any::<u64>().prop_map(|seed| Operation::random(&mut Dice::new(seed))).no_shrink();
        prop::collection::vec(operation, 1..=operations_max)
    }
}

fn on_open_file(dice: &mut Dice) -> Operation {
    let slot = slot(dice);
    match dice.below(100) {
        0..=29 => Operation::Open { slot, path: path(dice), how: how(dice), mode: mode(dice) },
        30..=35 => Operation::Close { slot },
        36..=47 => Operation::Read { slot, offset: offset(dice), count: length(dice) as usize },
        48..=69 => Operation::Write { slot, offset: offset(dice), data: pattern(dice) },
        70..=74 => Operation::StatOpen { slot },
        75..=79 => Operation::TruncateOpen { slot, size: offset(dice) },
        80..=85 => Operation::Allocate {
            slot,
            mode: dice.one_of(&[0, 1, 3, 3, 16, 17]),
            offset: offset(dice),
            length: length(dice),
        },
        86..=91 => Operation::Copy {
            from: slot,
            from_offset: offset(dice),
            to: self::slot(dice),
            to_offset: offset(dice),
            length: length(dice),
        },
        92..=96 => Operation::Seek { slot, offset: offset(dice), hole: dice.chance(1, 2) },
        _ => Operation::Sync { slot },
    }
}

fn on_names(dice: &mut Dice) -> Operation {
    let path = path(dice);
    match dice.below(100) {
        0..=14 => Operation::Mkdir { path, mode: mode(dice) },
        15..=21 => Operation::Symlink { target: target(dice), path },
        22..=31 => Operation::Link { from: path, to: self::path(dice) },
        32..=61 => Operation::Rename {
            from: path,
            to: self::path(dice),
            flags: dice.one_of(&[0, 0, 0, 0, 1, 2, 2, 3]),
        },
        62..=76 => Operation::Unlink { path },
        77..=84 => Operation::Rmdir { path },
        85..=88 => Operation::Readlink { path },
        89..=90 => Operation::Mkfifo { path, mode: mode(dice) },
        _ => Operation::List { path },
    }
}

fn on_attributes(dice: &mut Dice) -> Operation {
    let path = path(dice);
    match dice.below(100) {
        0..=24 => Operation::Stat { path, follow: dice.chance(1, 3) },
        25..=36 => Operation::Chmod { path, mode: mode(dice) },
        37..=44 => Operation::Chown { path, uid: dice.below(3) as u32, gid: dice.below(3) as u32 },
        45..=54 => Operation::SetTimes { path, atime: time(dice), mtime: time(dice) },
        55..=64 => Operation::Truncate { path, size: offset(dice) },
        65..=79 => Operation::SetXattr {
            path,
            name: dice.one_of(&XATTRS).into(),
            value: Pattern { len: dice.below(100) as usize, seed: dice.word() as u8 },
            flags: dice.one_of(&[0, 0, 1, 2]),
        },
        80..=87 => Operation::ReadXattr { path, name: dice.one_of(&XATTRS).into() },
        88..=92 => Operation::ListXattrs { path },
        _ => Operation::RemoveXattr { path, name: dice.one_of(&XATTRS).into() },
    }
}

fn slot(dice: &mut Dice) -> Slot {
    dice.below(SLOTS as u64) as Slot
}

fn name(dice: &mut Dice) -> String {
    match dice.below(100) {
        0 => "n".repeat(255),
        1 => "n".repeat(256),
        2 => " \u{e4}\n".into(),
        _ => dice.one_of(&["a", "b", "c", "d", "e"]).into(),
    }
}

/// A path of one to three names.
pub(crate) fn path(dice: &mut Dice) -> Path {
    let mut path = name(dice);
    while path.matches('/').count() < 2 && dice.chance(2, 5) {
        path.push('/');
        path.push_str(&name(dice));
    }
    path
}

/// What a link says; never out of the tree.
fn target(dice: &mut Dice) -> String {
    match dice.below(30) {
        0 => String::new(),
        1 => "t".repeat(4095),
        2 => "t".repeat(4096),
        _ => path(dice),
    }
}

fn how(dice: &mut Dice) -> How {
    let (read, write) = dice.one_of(&[(true, false), (true, true), (true, true), (false, true)]);
    let directory = dice.chance(1, 20);
    let create = !directory && dice.chance(3, 5);
    How {
        read,
        write,
        create,
        exclusive: create && dice.chance(1, 4),
        // Truncating without writing is not defined.
        truncate: write && dice.chance(1, 8),
        append: write && dice.chance(1, 6),
        no_follow: dice.chance(1, 6),
        directory,
    }
}

fn mode(dice: &mut Dice) -> u32 {
    dice.one_of(&MODES)
}

/// Mostly near the start and at the borders of pages, now and then past 4 GiB.
fn offset(dice: &mut Dice) -> u64 {
    let near = dice.one_of(&[0_u64, 0, 1, 4095, 4096, 4097, 8192, 16_384, 65_536]);
    match dice.below(20) {
        0 => (5 << 30) + near,
        1..=9 => near,
        _ => dice.below(20_000),
    }
}

fn length(dice: &mut Dice) -> u64 {
    match dice.below(10) {
        0 => dice.one_of(&[0, 1, 4096, 8192, 40_000]),
        _ => 1 + dice.below(10_000),
    }
}

fn pattern(dice: &mut Dice) -> Pattern {
    Pattern { len: length(dice) as usize, seed: dice.word() as u8 }
}

fn time(dice: &mut Dice) -> SetTo {
    let secs = dice.one_of(&[None, Some(0), Some(-1), Some(1_000_000_000), Some(1_700_000_001)])?;
    Some(Timestamp { secs, nanos: dice.one_of(&[0, 1, 123_456_789, 999_999_999]) })
}
