//! Garbage collection.

use super::fixture::{PAYLOAD_BYTES, TreeFixture, at, bytes};
use crate::limits::{REAP_BLOCKS_MAX, RUN_PIECES, RUNS_REMOVED_MAX};
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::wire::Data;
use wirefs_op::{Cred, Errno, Kind, Request, SetStat};

#[test]
fn change_leaves_no_garbage() {
    let fixture = TreeFixture::new();
    for round in 0..50 {
        fixture.create("f", bytes(4000, round)).unwrap();
        fixture.audit();
        fixture.rename("f", "g", 0).unwrap();
        fixture.audit();
        fixture.remove("g").unwrap();
        fixture.audit();
    }
}

#[test]
fn a_small_change_writes_one_path_and_drops_one() {
    let fixture = TreeFixture::new();
    for number in 0..500 {
        fixture.create(&format!("{number}"), bytes(200, 1)).unwrap();
    }
    let before = fixture.tree.statistics();
    fixture.write(at("250"), 0, bytes(10, 2)).unwrap();
    let after = fixture.tree.statistics();
    // Head, two index levels, root.
    assert!(after.registered - before.registered <= 4);
    assert_eq!(after.registered - before.registered, after.deregistered - before.deregistered);
}

#[test]
fn a_file_without_a_name_lives_while_it_is_open() {
    let fixture = TreeFixture::new();
    let data = bytes(30_000, 1);
    fixture.create("f", data.clone()).unwrap();
    let opened = fixture.open_file("f").unwrap();
    fixture.remove("f").unwrap();
    fixture.collect();
    assert_eq!(fixture.read_open(&opened), Ok(data));
    assert!(fixture.store.all().len() > 20);
    fixture.close(&opened).unwrap();
    fixture.collect();
    fixture.audit();
    assert_eq!(fixture.store.all().len(), 2);
}

#[test]
fn file_open_at_a_crash_is_removed_at_the_next_opening() {
    let fixture = TreeFixture::new();
    fixture.create("f", bytes(30_000, 1)).unwrap();
    fixture.open_file("f").unwrap();
    fixture.remove("f").unwrap();
    let fixture = fixture.reopened(0);
    fixture.collect();
    fixture.audit();
    assert_eq!(fixture.store.all().len(), 2);
}

#[test]
fn nameless_file_is_removed_when_it_is_closed() {
    let fixture = TreeFixture::new();
    let create = Create { kind: Kind::File, mode: 0o600, rdev: 0, cred: Cred::default() };
    let nameless = |mode: PutMode| Tput {
        target: at(""),
        mode: mode.and(PutMode::CREATE).and(PutMode::NAMELESS).and(PutMode::DATA),
        create: Some(create.clone()),
        set: SetStat::default(),
        offset: 0,
        data: Data(bytes(9000, 1)),
    };
    fixture.ask(Request::Put(nameless(PutMode::MORE.and(PutMode::WRITE)))).unwrap();
    assert!(fixture.store.all().len() > 2);
    fixture.tree.end(super::fixture::SESSION);
    fixture.collect();
    assert_eq!(fixture.store.all().len(), 2);
    fixture.tree.attach(super::fixture::SESSION, &wirefs_op::TreePath::root()).unwrap();
    fixture.ask(Request::Put(nameless(PutMode::NONE))).unwrap();
    fixture.collect();
    assert_eq!(fixture.store.all().len(), 2);
}

/// A file several times larger than one change removes.
fn large(fixture: &TreeFixture) -> u64 {
    let pieces = RUN_PIECES * RUNS_REMOVED_MAX as u64 * 3;
    let size = pieces * (PAYLOAD_BYTES as u64 - 22);
    fixture.create("f", Bytes::new()).unwrap();
    let part = 128 * 1024;
    for offset in (0..size).step_by(part) {
        fixture.write(at("f"), offset, bytes(part.min((size - offset) as usize), 1)).unwrap();
    }
    size
}

#[test]
fn a_large_file_is_removed_in_bounded_steps() {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 8 << 20);
    large(&fixture);
    let before = fixture.tree.statistics();
    fixture.remove("f").unwrap();
    let step = fixture.tree.statistics().deregistered - before.deregistered;
    let per_change = RUN_PIECES * RUNS_REMOVED_MAX as u64;
    assert!(step < 3 * per_change, "{step} blocks in one change");
    assert!(fixture.tree.statistics().backlog > 0);
    // The removal continues with later changes, or by `collect`.
    for number in 0..8 {
        fixture.create("other", bytes(10, number)).unwrap();
    }
    assert_eq!(fixture.tree.statistics().backlog, 0);
    fixture.audit();
}

#[test]
fn truncated_data_is_invisible_at_once_and_collected_in_steps() {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 8 << 20);
    let size = large(&fixture);
    fixture.resize("f", 5000).unwrap();
    assert!(fixture.tree.statistics().backlog > 0);
    // The file grows again before the truncation is complete.
    fixture.resize("f", size).unwrap();
    let whole = fixture.read("f").unwrap();
    assert!(whole.slice(5000..).iter().all(|byte| *byte == 0), "truncated data reappeared");
    fixture.collect();
    fixture.audit();
    fixture.write(at("f"), size - 10, bytes(10, 3)).unwrap();
    fixture.resize("f", 100).unwrap();
    // The rest is removed after the tree is opened again.
    let fixture = fixture.reopened(0);
    fixture.collect();
    fixture.audit();
}

#[test]
fn dropped_checkpoint_is_destroyed_in_bounded_steps() {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 8 << 20);
    for number in 0..2000 {
        fixture.create(&format!("{number}"), bytes(600, 1)).unwrap();
    }
    fixture.tree.create_checkpoint(b"one").unwrap();
    for number in 0..2000 {
        fixture.remove(&format!("{number}")).unwrap();
    }
    fixture.collect();
    fixture.audit();
    assert!(fixture.store.all().len() > 1000);
    let before = fixture.tree.statistics();
    fixture.tree.drop_checkpoint(b"one").unwrap();
    let step = fixture.tree.statistics().deregistered - before.deregistered;
    assert!(step <= REAP_BLOCKS_MAX as u64 + 8, "{step} blocks in one change");
    fixture.collect();
    fixture.audit();
    assert_eq!(fixture.store.all().len(), 2);
}

#[test]
fn destruction_continues_after_reopening() {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 8 << 20);
    for number in 0..1000 {
        fixture.create(&format!("{number}"), bytes(600, 1)).unwrap();
    }
    fixture.tree.create_checkpoint(b"one").unwrap();
    for number in 0..1000 {
        fixture.remove(&format!("{number}")).unwrap();
    }
    fixture.tree.drop_checkpoint(b"one").unwrap();
    fixture.tree.collect(2);
    assert!(fixture.tree.statistics().backlog > 0);
    let fixture = fixture.reopened(0);
    fixture.collect();
    fixture.audit();
    assert_eq!(fixture.store.all().len(), 2);
}

#[test]
fn full_store_rejects_writes_and_removal_frees_space() {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 600, 1 << 20);
    let mut made = 0;
    let errno = loop {
        match fixture.create(&format!("{made}"), bytes(10_000, 1)) {
            Ok(_) => made += 1,
            Err(errno) => break errno,
        }
    };
    assert_eq!(errno, Errno::NoSpace);
    assert!(made > 20);
    fixture.audit();
    let room = fixture.store.inner.clone();
    for number in 0..made {
        fixture.remove(&format!("{number}")).unwrap();
    }
    fixture.audit();
    drop(room);
    fixture.create("again", bytes(10_000, 2)).unwrap();
}

#[test]
fn full_store_collects_garbage_before_it_rejects_a_write() {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 12_000, 8 << 20);
    let size = large(&fixture);
    fixture.remove("f").unwrap();
    assert!(fixture.tree.statistics().backlog > 0);
    // As large as the store: it fits only if everything else was collected.
    fixture.create("g", Bytes::new()).unwrap();
    for offset in (0..size).step_by(128 * 1024) {
        fixture.write(at("g"), offset, bytes(128 * 1024, 2)).unwrap();
    }
    fixture.collect();
    fixture.audit();
}

#[test]
fn a_directory_that_is_open_lives_until_it_is_closed() {
    let fixture = TreeFixture::new();
    fixture.mkdir("d").unwrap();
    let opened = fixture.open_file("d").unwrap();
    fixture.rmdir("d").unwrap();
    assert_eq!(fixture.read_open(&opened), Ok(Bytes::new()));
    fixture.close(&opened).unwrap();
    fixture.collect();
    assert_eq!(fixture.store.all().len(), 2);
}

#[test]
fn ids_are_never_used_twice() {
    let fixture = TreeFixture::new();
    let mut seen: BTreeSet<crate::id::BlockId> = fixture.store.all();
    let mut fixture = fixture;
    for round in 0..30 {
        let before = fixture.store.all();
        fixture.create("f", bytes(5000, round)).unwrap();
        let new: BTreeSet<_> = fixture.store.all().difference(&before).copied().collect();
        assert!(new.is_disjoint(&seen));
        let oldest = new.first().copied().unwrap();
        assert!(seen.iter().all(|id| *id < oldest));
        seen.extend(new);
        if round % 7 == 0 {
            fixture = fixture.reopened(0);
        }
    }
}
