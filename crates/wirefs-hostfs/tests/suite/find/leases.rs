//! What a stream promises.

use super::told::Told;
use super::{all, grow};
use crate::harness::{FIRST, World, at, path};
use std::collections::BTreeSet;
use wirefs_hostfs::{HostOptions, Notice, WatchKind};
use wirefs_op::{FileId, Kind, Reply, Request, Stat};
use wirefs_server::{Replies, Stopped, Tree};

/// Grants all but some.
#[derive(Default)]
struct Granting {
    replies: Vec<Reply>,
    refused: BTreeSet<FileId>,
}

impl Replies for Granting {
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

fn world(notice: Notice) -> World {
    let world = World::with(HostOptions { notice, ..HostOptions::default() }, |dir| {
        grow(dir, 2, 6, 3);
        std::fs::hard_link(dir.join("dir1/file0"), dir.join("dir1/again")).unwrap();
    });
    world.tree.observe(Box::new(|_| ()));
    world
}

fn find(world: &World, refused: &[FileId]) -> Told {
    let mut granting = Granting { refused: refused.iter().copied().collect(), ..Granting::default() };
    world.tree.serve(FIRST, Request::Find(all(at(""))), &mut granting);
    Told::of(granting.replies).unwrap()
}

#[test]
fn nothing_is_promised_where_nothing_is_noticed() {
    let told = find(&world(Notice::Nothing), &[]);
    assert!(told.listings.iter().all(|listing| !listing.stat.leased));
    assert!(told.listings.iter().flat_map(|listing| &listing.entries).all(|entry| !entry.stat.leased));
}

#[test]
fn all_is_promised_that_is_granted() {
    let mut notices = vec![Notice::Exclusive];
    if rustix::process::geteuid().is_root() {
        notices.push(Notice::Watched(WatchKind::Filesystem));
    }
    for notice in notices {
        let world = world(notice);
        let ids = ["", "dir2", "dir3/file1"].map(|name| world.stat(FIRST, at(name)).unwrap().id);
        for refused in [&ids[..], &[]] {
            let told = find(&world, refused);
            assert_eq!(told.listings.len(), 43);
            for listing in &told.listings {
                assert_eq!(listing.stat.leased, !refused.contains(&listing.stat.id));
                for entry in &listing.entries {
                    assert_eq!(entry.stat.leased, !refused.contains(&entry.stat.id), "{entry:?}");
                }
            }
        }
    }
}

/// Then an entry's changes are noticed by its directory, those of a directory by itself.
#[test]
fn entries_of_watched_directories_are_promised_with_their_directory() {
    let world = world(Notice::Watched(WatchKind::Directories));
    let refused = world.stat(FIRST, at("dir2")).unwrap().id;
    let told = find(&world, &[refused]);
    for listing in &told.listings {
        assert_eq!(listing.stat.leased, listing.stat.id != refused);
        for entry in &listing.entries {
            let is_by_directory = entry.stat.kind != Kind::Directory && entry.stat.nlink == 1;
            assert_eq!(entry.stat.leased, is_by_directory && listing.stat.leased, "{entry:?}");
        }
    }
    assert!(!told.listing(&path("dir1")).unwrap().entries.iter().all(|entry| entry.stat.nlink == 1));
}
