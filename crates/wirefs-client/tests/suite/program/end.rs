//! The end of a program: all clients see the same tree, and nothing is left.

use crate::check::{Seen, runs};
use crate::deeds::{READ, data, handle, listing, readdir};
use crate::history::Snapshot;
use crate::program::{NAMES, OpenFile, Play, entry_of};
use std::time::Duration;
use wirefs_client::Fate;
use wirefs_client::call::{Call, Entry};
use wirefs_op::Kind;

impl Play {
    /// Closes and forgets everything; nothing must be left.
    pub(crate) fn clear(&mut self) {
        self.world.settle();
        for seat in 0..self.kernels.len() {
            for (node, handle) in std::mem::take(&mut self.kernels[seat].directories) {
                self.world.ask(seat, Call::Releasedir { node, handle });
            }
            for OpenFile { node, handle, .. } in std::mem::take(&mut self.kernels[seat].handles) {
                self.world.ask(seat, Call::Flush { node, handle, owner: 1 });
                self.world.ask(seat, Call::Release { node, handle, flock_owner: None });
            }
        }
        self.world.settle();
        self.world.pass(self.window + Duration::from_secs(1));
        self.see_the_end();
        for seat in 0..self.kernels.len() {
            for (node, count) in std::mem::take(&mut self.kernels[seat].lookups) {
                self.world.call(seat, Call::Forget { node, count });
            }
        }
        self.world.settle();
        for seat in &self.world.seats {
            let left = seat.client.snapshot();
            // What was fetched ahead may still come to be of use.
            let unused = |fate: Fate| (fate.fetched - fate.used - fate.wasted) as usize;
            let (directories, files) = (unused(left.prefetch.directories), unused(left.prefetch.files));
            assert!(left.cached_bytes <= unused(left.prefetch.contents), "contents are left: {left:?}");
            // The root may be among it, which is always there.
            let kept = directories + files;
            assert!((kept.max(1)..=kept + 1).contains(&left.nodes), "something is left: {left:?}");
            assert_eq!(left.calls_waiting, 0, "{left:?}");
            assert_eq!(seat.hang_ups, 0, "a connection was given up though the server answers");
            assert!(seat.answers.is_empty(), "answers to nobody: {:?}", seat.answers);
        }
    }

    /// Each client sees the tree as it is.
    fn see_the_end(&mut self) {
        let last = self.world.history.last().clone();
        for seat in 0..self.kernels.len() {
            for (dir, nodes) in self.dirs.clone() {
                let parent = nodes[seat];
                let handle = handle(self.world.ask(seat, Call::Opendir { node: parent }));
                let listed = listing(self.world.ask(seat, readdir(parent, handle, 0)));
                self.world.ask(seat, Call::Releasedir { node: parent, handle });
                let mut names: Vec<Vec<u8>> = Vec::new();
                for entry in listed {
                    if let Some(entry) = &entry.entry {
                        self.count(seat, entry);
                    }
                    if entry.name != b"." && entry.name != b".." {
                        names.push(entry.name);
                    }
                }
                names.sort();
                let there: Vec<Vec<u8>> = last.names[&dir].keys().cloned().collect();
                assert_eq!(names, there, "seat {seat} lists {dir:?}");
                for name in NAMES {
                    let answer = self.world.ask(seat, Call::Lookup { parent, name });
                    let found = entry_of(&answer).copied();
                    if let Some(entry) = &found {
                        self.count(seat, entry);
                    }
                    assert_eq!(
                        found.map(|entry| entry.stat.id),
                        last.name(dir, name),
                        "seat {seat}, {name:?}"
                    );
                    if let Some(entry) = found {
                        self.see_file(seat, &entry, &last);
                    }
                }
            }
        }
    }

    fn see_file(&mut self, seat: usize, entry: &Entry, last: &Snapshot) {
        let object = &last.objects[&entry.stat.id];
        let (seen, there) = (Seen::of(&entry.stat), Seen::of(&object.stat));
        assert_eq!(seen, there, "seat {seat} sees attributes of {:?}", entry.stat.id);
        if entry.stat.kind != Kind::File {
            return;
        }
        let node = entry.node;
        let handle = handle(self.world.ask(seat, Call::Open { node, how: READ }));
        let call = Call::Read { node, handle, offset: 0, count: 1024 * 1024 };
        let read = data(self.world.ask(seat, call));
        assert!(
            read == object.data,
            "seat {seat} reads {:?} not {:?} of {entry:?}",
            runs(&read),
            runs(&object.data)
        );
        self.world.ask(seat, Call::Release { node, handle, flock_owner: None });
    }
}
