//! How much a stream tells, and that it ends when nobody wants it.

use super::{all, find, grow, settle};
use crate::harness::{FIRST, World, at};
use wirefs_op::message::find::Tfind;
use wirefs_op::{Reply, Request};
use wirefs_server::{Replies, Stopped, Tree};

#[test]
fn so_many_levels_are_told_as_were_asked_for() {
    let world = World::new();
    grow(&world.host(""), 4, 2, 1);
    for depth in 0..6 {
        let told = find(&world, Tfind { depth, ..all(at("")) }).unwrap();
        let levels = usize::from(depth).min(4);
        assert_eq!(told.listings.len(), (2 << levels) - 1);
        assert!(told.listings.iter().all(|listing| listing.ended));
        assert!(!told.has_more, "depth is no bound that ends a stream");
    }
}

#[test]
fn so_many_entries_are_told_as_were_asked_for() {
    let world = World::new();
    grow(&world.host(""), 3, 5, 3);
    let everything = find(&world, all(at(""))).unwrap().entries();
    for entries in [0, 1, 2, 8, 9, 50, everything - 1, everything, everything + 1] {
        let request = Tfind { entries: u32::try_from(entries).unwrap(), ..all(at("")) };
        let told = find(&world, request).unwrap();
        assert_eq!(told.entries(), entries.min(everything));
        assert_eq!(told.has_more, entries < everything, "{entries} of {everything}");
    }
}

#[test]
fn no_more_bytes_are_told_than_were_asked_for() {
    let world = World::new();
    grow(&world.host(""), 3, 5, 3);
    settle();
    for inline in [0, 4096] {
        let everything = find(&world, Tfind { inline, ..all(at("")) }).unwrap();
        // Another cut into messages takes other bytes.
        let enough = everything.bytes + 400 * everything.messages.max(20);
        for bytes in [0, 1, 50, 100, 200, 500, 1000, 2000, 5000, enough] {
            let request = Tfind { bytes: u32::try_from(bytes).unwrap(), inline, ..all(at("")) };
            let told = find(&world, request).unwrap();
            assert!(told.bytes <= bytes);
            let is_all = told.listings.len() == everything.listings.len()
                && told.listings.iter().all(|listing| listing.ended);
            assert_eq!(told.has_more, !is_all);
            assert_eq!(is_all, bytes == enough, "{} of {bytes} bytes", told.bytes);
            // No record here takes more.
            assert!(is_all || told.bytes + 400 > bytes, "{} of {bytes} bytes", told.bytes);
        }
    }
}

#[test]
fn contents_for_which_there_is_no_room_are_left_out() {
    let world = World::new();
    std::fs::write(world.host("file"), vec![b'c'; 5000]).unwrap();
    settle();
    let request = |bytes| Tfind { bytes, inline: 8192, ..all(at("")) };
    let told = find(&world, request(1000)).unwrap();
    assert_eq!((told.entries(), &told.entry("", "file").contents, told.has_more), (1, &None, false));
    let told = find(&world, request(6000)).unwrap();
    assert!(told.entry("", "file").contents.is_some());
}

/// Wants no more after so many replies.
struct Impatient {
    replies: Vec<Reply>,
    wanted: usize,
    /// Sent in vain.
    refused: usize,
}

impl Replies for Impatient {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        if self.is_stopped() {
            self.refused += 1;
            return Err(Stopped);
        }
        self.replies.push(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.replies.len() >= self.wanted
    }

    fn wait(&mut self) {}
}

#[test]
fn a_stream_that_nobody_wants_any_more_ends() {
    let world = World::new();
    for number in 0..240 {
        let dir = world.host(&format!("dir{}", number % 20));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("file{number}")), [b'c'; 4000]).unwrap();
    }
    settle();
    for wanted in [0, 1, 2, 3] {
        let mut impatient = Impatient { replies: Vec::new(), wanted, refused: 0 };
        let request = Tfind { inline: 4096, ..all(at("")) };
        world.tree.serve(FIRST, Request::Find(request), &mut impatient);
        let is_last = |reply: &Reply| matches!(reply, Reply::Find(found) if found.mode.0 & 32 != 0);
        assert_eq!(impatient.replies.len(), wanted);
        assert!(impatient.refused <= 1, "one reply may have been on its way");
        assert!(!impatient.replies.iter().any(is_last), "the tree is larger than {wanted} replies");
    }
}
