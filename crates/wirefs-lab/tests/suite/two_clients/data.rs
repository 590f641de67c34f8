//! File contents: random changes by both clients alternately, with system calls and mappings, compared with a byte
//! vector.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{FallocateFlags, copy_file_range, fallocate};
use wirefs_virtual::Dice;

use super::TwoMounts;
use crate::sys::with_mapped;

/// Rounds of change and check, per seed.
const ROUNDS: u64 = 250;
const SEEDS: [u64; 3] = [1, 2, 3];
/// The maximum size of the file, in bytes.
const SIZE_MAX: u64 = 400_000;

#[derive(Debug)]
enum FileChange {
    Write { at: u64, length: usize },
    Map { at: u64, length: usize },
    Append { length: usize },
    Truncate { size: u64 },
    Punch { at: u64, length: u64 },
    Copy { from: u64, to: u64, length: usize },
}

fn random(dice: &mut Dice, size: u64) -> FileChange {
    let at = dice.below(SIZE_MAX - 70_000);
    let length = 1 + dice.below(60_000) as usize;
    let inside = dice.below(size.max(1));
    let rest = (size - inside.min(size)) as usize;
    match dice.below(6) {
        0 => FileChange::Write { at, length },
        1 if rest > 0 => FileChange::Map { at: inside, length: length.min(rest) },
        2 if size + 60_000 < SIZE_MAX => FileChange::Append { length },
        3 => FileChange::Truncate { size: at },
        4 if size > 0 => FileChange::Punch { at: inside, length: length as u64 },
        5 if rest > 0 => {
            // copy_file_range rejects overlapping ranges.
            let half = size / 2;
            let length = length.min(half as usize);
            FileChange::Copy {
                from: dice.below(half + 1 - length as u64),
                to: half + dice.below(half + 1),
                length,
            }
        }
        _ => FileChange::Write { at, length },
    }
}

fn put(contents: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    contents.resize(contents.len().max(end), 0);
    contents[at..end].copy_from_slice(bytes);
}

/// Applies the change to the file and to the expected contents.
fn perform(change: &FileChange, path: &Path, fill: u8, expected: &mut Vec<u8>) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    match *change {
        FileChange::Write { at, length } => {
            file.write_all_at(&vec![fill; length], at).unwrap();
            put(expected, at as usize, &vec![fill; length]);
        }
        FileChange::Map { at, length } => {
            let end = at as usize + length;
            with_mapped(&file, end, |bytes| bytes[at as usize..].fill(fill));
            put(expected, at as usize, &vec![fill; length]);
        }
        FileChange::Append { length } => {
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, &vec![fill; length]).unwrap();
            expected.resize(expected.len() + length, fill);
        }
        FileChange::Truncate { size } => {
            file.set_len(size).unwrap();
            expected.resize(size as usize, 0);
        }
        FileChange::Punch { at, length } => {
            fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, length).unwrap();
            let end = expected.len().min((at + length) as usize);
            expected[at as usize..end].fill(0);
        }
        FileChange::Copy { from, to, length } => {
            let (mut offset_in, mut offset_out) = (from, to);
            let mut copied = 0;
            while copied < length {
                let part = copy_file_range(
                    &file,
                    Some(&mut offset_in),
                    &file,
                    Some(&mut offset_out),
                    length - copied,
                )
                .unwrap();
                assert!(part > 0, "{change:?} ended after {copied}");
                copied += part;
            }
            let bytes = expected[from as usize..from as usize + length].to_vec();
            put(expected, to as usize, &bytes);
        }
    }
}

fn check(path: &Path, expected: &[u8], through_memory: bool, context: &str) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    assert_eq!(file.metadata().unwrap().len(), expected.len() as u64, "size after {context}");
    let read = if through_memory && !expected.is_empty() {
        with_mapped(&file, expected.len(), |bytes| bytes.to_vec())
    } else {
        std::fs::read(path).unwrap()
    };
    let wrong = read.iter().zip(expected).position(|(read, expected)| read != expected);
    assert!(
        wrong.is_none() && read.len() == expected.len(),
        "byte {wrong:?} of {} after {context}",
        read.len()
    );
}

#[test]
fn both_clients_see_the_same_contents_after_any_change() {
    let mounts = TwoMounts::new("data", "strict");
    for seed in SEEDS {
        let mut dice = Dice::new(seed);
        let name = format!("f{seed}");
        let mut expected = Vec::new();
        File::create(mounts.a.join(&name)).unwrap();
        for round in 0..ROUNDS {
            let (writer, reader) =
                if dice.below(2) == 0 { (&mounts.a, &mounts.b) } else { (&mounts.b, &mounts.a) };
            let change = random(&mut dice, expected.len() as u64);
            perform(&change, &writer.join(&name), 1 + (round % 255) as u8, &mut expected);
            let context = format!("seed {seed}, round {round}, {change:?}");
            check(&reader.join(&name), &expected, dice.below(3) == 0, &context);
        }
        assert_eq!(std::fs::read(mounts.site.export().join(&name)).unwrap(), expected);
    }
}

#[test]
fn closed_file_is_visible_to_the_other_client_after_the_window() {
    let mounts = TwoMounts::new("close-open", "window=10ms");
    for round in 0..30_u8 {
        let contents = vec![round; 1 + 9_999 * usize::from(round)];
        std::fs::write(mounts.a.join("f"), &contents).unwrap();
        crate::site::wait_for("the other's contents", || {
            std::fs::read(mounts.b.join("f")).is_ok_and(|read| read == contents)
        });
    }
}
