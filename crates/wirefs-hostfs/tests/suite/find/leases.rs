//! Leases in a stream.

use super::listings::ReceivedStream;
use super::{all, grow};
use crate::harness::{FIRST, World, at, path};
use std::collections::BTreeSet;
use wirefs_hostfs::{DetectionMode, HostOptions, WatchKind};
use wirefs_op::{FileId, Kind, Reply, Request, Stat};
use wirefs_server::{Replies, Stopped, Tree};

/// Grants all leases except for some objects.
#[derive(Default)]
struct SelectiveReplies {
    replies: Vec<Reply>,
    refused: BTreeSet<FileId>,
}

impl Replies for SelectiveReplies {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.replies.push(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        stats.for_each(|stat| stat.leased = !self.refused.contains(&stat.id));
    }

    fn grant_names(&mut self, dir: FileId) -> bool {
        !self.refused.contains(&dir)
    }

    fn wait(&mut self) {}
}

fn world(detection: DetectionMode) -> World {
    let world = World::with(HostOptions { detection, ..HostOptions::all_rights() }, |dir| {
        grow(dir, 2, 6, 3);
        std::fs::hard_link(dir.join("dir1/file0"), dir.join("dir1/again")).unwrap();
    });
    world.tree.observe(Box::new(|_| ()));
    world
}

fn find(world: &World, refused: &[FileId]) -> ReceivedStream {
    let mut granting =
        SelectiveReplies { refused: refused.iter().copied().collect(), ..SelectiveReplies::default() };
    world.tree.serve(FIRST, Request::Find(all(at(""))), &mut granting);
    ReceivedStream::of(granting.replies).unwrap()
}

#[test]
fn no_leases_without_detection() {
    let stream = find(&world(DetectionMode::Nothing), &[]);
    assert!(stream.listings.iter().all(|listing| !listing.stat.leased));
    assert!(stream.listings.iter().flat_map(|listing| &listing.entries).all(|entry| !entry.stat.leased));
}

#[test]
fn every_granted_lease_is_in_the_stream() {
    let mut ensure_watched = vec![DetectionMode::Exclusive];
    if rustix::process::geteuid().is_root() {
        ensure_watched.push(DetectionMode::Watched(WatchKind::Filesystem));
    }
    for notice in ensure_watched {
        let world = world(notice);
        let ids = ["", "dir2", "dir3/file1"].map(|name| world.stat(FIRST, at(name)).unwrap().id);
        for refused in [&ids[..], &[]] {
            let stream = find(&world, refused);
            assert_eq!(stream.listings.len(), 43);
            for listing in &stream.listings {
                assert_eq!(listing.stat.leased, !refused.contains(&listing.stat.id));
                for entry in &listing.entries {
                    assert_eq!(entry.stat.leased, !refused.contains(&entry.stat.id), "{entry:?}");
                }
            }
        }
    }
}

/// Entries are watched through their directory, and a directory by its own watch.
#[test]
fn entries_of_watched_directories_are_leased_with_their_directory() {
    let world = world(DetectionMode::Watched(WatchKind::Directories));
    let refused = world.stat(FIRST, at("dir2")).unwrap().id;
    let stream = find(&world, &[refused]);
    for listing in &stream.listings {
        assert_eq!(listing.stat.leased, listing.stat.id != refused);
        for entry in &listing.entries {
            let is_by_directory = entry.stat.kind != Kind::Directory && entry.stat.nlink == 1;
            assert_eq!(entry.stat.leased, is_by_directory && listing.stat.leased, "{entry:?}");
        }
    }
    assert!(!stream.listing(&path("dir1")).unwrap().entries.iter().all(|entry| entry.stat.nlink == 1));
}
