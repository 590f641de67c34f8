//! Streams of a tree that changes concurrently.

use super::listings::ReceivedStream;
use super::{all, find, grow, list_all, settle};
use crate::harness::{Scratch, World, at};
use rustix::fs::{Mode, OFlags, RenameFlags};
use std::os::unix::fs::{FileExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wirefs_op::message::find::Tfind;
use wirefs_op::{Kind, TreePath};
use wirefs_virtual::Dice;

/// Runs `disturb` repeatedly in a thread while streams are made.
fn while_disturbed<T>(mut disturb: impl FnMut() + Send, streams: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also if a stream fails the test.
        let _over = StopDisturbance(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                disturb();
            }
        });
        streams()
    })
}

/// Ends the disturbance.
struct StopDisturbance<'a>(&'a AtomicBool);

impl Drop for StopDisturbance<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// S-57
#[test]
fn swapping_directories_with_links_never_leads_outside() {
    let outside = Scratch::new();
    grow(outside.path(), 2, 3, 3);
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    std::fs::write(outside.path().join("dir0/secret"), "secret").unwrap();
    let world = World::new();
    grow(&world.host(""), 3, 4, 3);
    for number in 0..4 {
        let target = outside.path().join(if number % 2 == 0 { "." } else { "dir0" });
        symlink(target, world.host(&format!("link{number}"))).unwrap();
    }
    settle();
    let mut dice = Dice::new(1);
    let root = rustix::fs::open(world.host(""), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let swap = || {
        let link = format!("link{}", dice.below(4));
        let (one, other) = (format!("dir{}", dice.below(4)), format!("dir{}", dice.below(4)));
        if dice.below(4) == 0 {
            let _ = rustix::fs::renameat_with(&root, link, &root, one, RenameFlags::EXCHANGE);
            return;
        }
        std::thread::park_timeout(Duration::from_micros(20));
        // There may be a symlink now, and nothing may be moved to its target.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        if let Ok(parent) = rustix::fs::openat(&root, one, flags, Mode::empty()) {
            let _ = rustix::fs::renameat_with(&root, link, parent, other, RenameFlags::EXCHANGE);
        }
    };
    let stream = while_disturbed(swap, || {
        let stream = |_| find(&world, Tfind { inline: 4096, ..all(at("")) }).unwrap();
        (0..150).map(stream).collect::<Vec<ReceivedStream>>()
    });
    let listings = || stream.iter().flat_map(|stream| &stream.listings);
    for entry in listings().flat_map(|listing| &listing.entries) {
        assert_ne!(entry.name, b"secret");
        assert!(entry.stat.kind == Kind::Symlink || entry.contents.as_deref() != Some(b"secret"));
    }
    // The extent of a stream during concurrent renames depends on timing. Afterwards it is complete, since no name
    // changes any more.
    assert!(listings().count() >= 150);
    let after = find(&world, all(at(""))).unwrap();
    assert_eq!(after.listings.len(), 1 + 4 + 16 + 64);
    list_all(&world, &TreePath::root(), &after);
}

/// Moves, removes and creates objects at random places.
fn disturb(world: &World, dice: &mut Dice) {
    let mut place = || {
        let mut path = world.host("");
        for _ in 0..1 + dice.below(3) {
            path.push(format!("dir{}", dice.below(4)));
        }
        path
    };
    let (one, other) = (place(), place());
    // Most operations succeed; the others find no object any more.
    let _ = match dice.below(6) {
        0 => std::fs::create_dir(&one),
        1 => std::fs::remove_dir_all(&one),
        2 => std::fs::write(one.join("file0"), "again"),
        3 => std::fs::create_dir(&one).and_then(|()| std::fs::create_dir(one.join("dir1"))),
        _ => std::fs::rename(&one, &other),
    };
}

#[test]
fn concurrent_moves_and_removals_do_no_harm() {
    let world = World::new();
    grow(&world.host(""), 3, 4, 3);
    let mut dice = Dice::new(2);
    // The stream is checked on arrival: each directory must follow its entry.
    let directories: usize = while_disturbed(
        || disturb(&world, &mut dice),
        || (0..150).map(|_| find(&world, all(at(""))).unwrap().listings.len()).sum(),
    );
    assert!(directories > 150);
    let after = find(&world, all(at(""))).unwrap();
    list_all(&world, &TreePath::root(), &after);
}

/// Contents that a client caches with a version must be those of that version.
#[test]
fn contents_match_their_version() {
    const FILES: u64 = 300;
    const BYTES: usize = 4000;
    let world = World::new();
    let file = |number: u64| world.host(&format!("dir{}/file{number}", number % 10));
    for number in 0..FILES {
        std::fs::create_dir_all(file(number).parent().unwrap()).unwrap();
        std::fs::write(file(number), [0; BYTES]).unwrap();
    }
    settle();
    let mut dice = Dice::new(3);
    let rewrite = || {
        for _ in 0..4 {
            let (path, byte) = (file(dice.below(FILES)), dice.below(256) as u8);
            if dice.below(3) == 0 {
                std::fs::write(world.host("new"), [byte; BYTES]).unwrap();
                std::fs::rename(world.host("new"), path).unwrap();
            } else {
                let written = std::fs::File::options().write(true).open(path).unwrap();
                written.write_all_at(&[byte; BYTES], 0).unwrap();
            }
        }
        std::thread::park_timeout(Duration::from_millis(1));
    };
    let stream = while_disturbed(rewrite, || {
        let stream = |_| find(&world, Tfind { inline: 4096, ..all(at("")) }).unwrap();
        (0..40).map(stream).collect::<Vec<ReceivedStream>>()
    });
    settle();
    let now = find(&world, Tfind { inline: 4096, ..all(at("")) }).unwrap();
    let (mut with_contents, mut present) = (0, 0);
    for listing in stream.iter().flat_map(|stream| &stream.listings) {
        for entry in &listing.entries {
            let Some(contents) = &entry.contents else { continue };
            with_contents += 1;
            assert!(contents.iter().all(|byte| Some(byte) == contents.first()), "a mixture");
            let latest = now.listing(&listing.path).unwrap().entries.iter().find(|it| it.name == entry.name);
            let latest =
                latest.filter(|it| (it.stat.id, it.stat.version) == (entry.stat.id, entry.stat.version));
            if let Some(latest) = latest {
                present += 1;
                assert_eq!(latest.contents.as_ref(), Some(contents));
            }
        }
    }
    assert!(with_contents > 1000 && present > 100, "{with_contents} came along, {present} of them present");
}
