//! Tests of directory locks.

use super::{DirectoryLocks, Ticket};
use crate::grantor::JobKey;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::FileId;
use wirefs_virtual::Dice;

fn set(inos: &[u64]) -> BTreeSet<FileId> {
    inos.iter().map(|ino| FileId { fs: 0, ino: *ino, generation: 1 }).collect()
}

fn take(directory_locks: &mut DirectoryLocks, job: u64, inos: &[u64]) -> bool {
    directory_locks.take(Ticket(job), JobKey(job), set(inos))
}

#[test]
fn directories_are_locked_all_together_or_not_at_all() {
    let mut directory_locks = DirectoryLocks::default();
    assert!(take(&mut directory_locks, 1, &[1]));
    assert!(!take(&mut directory_locks, 2, &[1, 2]));
    assert!(take(&mut directory_locks, 3, &[3]), "it needs none of their directories");
    directory_locks.release(Ticket(1), JobKey(1));
    directory_locks.advance();
    assert!(!directory_locks.is_waiting(Ticket(2)) && take(&mut directory_locks, 2, &[1, 2]));
}

#[test]
fn no_job_overtakes_an_older_one_with_a_common_directory() {
    let mut directory_locks = DirectoryLocks::default();
    assert!(take(&mut directory_locks, 1, &[1]));
    assert!(!take(&mut directory_locks, 2, &[1, 2]));
    assert!(!take(&mut directory_locks, 3, &[2]), "2 is free, but the older one waits for it");
    directory_locks.release(Ticket(1), JobKey(1));
    directory_locks.advance();
    assert!(!directory_locks.is_waiting(Ticket(2)) && directory_locks.is_waiting(Ticket(3)));
}

#[test]
fn a_job_that_needs_an_unavailable_lock_releases_its_own() {
    let mut directory_locks = DirectoryLocks::default();
    assert!(take(&mut directory_locks, 1, &[1]) && take(&mut directory_locks, 2, &[2]));
    assert!(!take(&mut directory_locks, 2, &[1, 2]));
    assert!(!take(&mut directory_locks, 1, &[1, 2]) || !directory_locks.is_waiting(Ticket(1)));
    // Each job wanted the other's directory; the older one has both now.
    assert!(!directory_locks.is_waiting(Ticket(1)) && directory_locks.is_waiting(Ticket(2)));
}

#[test]
fn locks_that_are_no_longer_requested_are_released() {
    let mut directory_locks = DirectoryLocks::default();
    assert!(take(&mut directory_locks, 1, &[1, 2]));
    assert!(!take(&mut directory_locks, 2, &[2]));
    assert!(take(&mut directory_locks, 1, &[1]));
    assert!(!directory_locks.is_waiting(Ticket(2)));
    assert!(take(&mut directory_locks, 1, &[]) && take(&mut directory_locks, 3, &[1]));
}

#[test]
fn each_waiting_job_gets_its_locks_exclusively() {
    let mut dice = Dice::new(7);
    let mut directory_locks = DirectoryLocks::default();
    let mut wanted: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut having: BTreeSet<u64> = BTreeSet::new();
    for job in 1..=5000u64 {
        let count = dice.below(3) + 1;
        let inos: Vec<u64> = (0..count).map(|_| dice.below(6)).collect();
        if take(&mut directory_locks, job, &inos) {
            having.insert(job);
        }
        wanted.insert(job, inos);
        while having.len() + 20 < wanted.len() || job == 5000 && !having.is_empty() {
            let ending = having.iter().nth(dice.below(having.len() as u64) as usize).copied().unwrap();
            having.remove(&ending);
            wanted.remove(&ending);
            directory_locks.release(Ticket(ending), JobKey(ending));
            directory_locks.advance();
            having.extend(wanted.keys().filter(|job| !directory_locks.is_waiting(Ticket(**job))));
            let oldest = wanted.keys().next();
            let free = oldest.is_none_or(|oldest| {
                having.contains(oldest)
                    || wanted[oldest].iter().any(|ino| having.iter().any(|job| wanted[job].contains(ino)))
            });
            assert!(free, "{oldest:?} waits for no other job");
            let mut taken: Vec<FileId> = having.iter().flat_map(|job| set(&wanted[job])).collect();
            let count = taken.len();
            taken.sort();
            taken.dedup();
            assert_eq!(taken.len(), count, "two have one directory");
        }
    }
    assert!(wanted.is_empty(), "{} wait for ever", wanted.len());
}
