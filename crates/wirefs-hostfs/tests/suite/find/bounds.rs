//! Limits of a stream, and its cancellation.

use super::{all, find, grow, settle};
use crate::harness::{FIRST, World, at};
use wirefs_op::message::find::Tfind;
use wirefs_op::{Reply, Request};
use wirefs_server::{Replies, Stopped, Tree};

#[test]
fn depth_is_bounded_as_requested() {
    let world = World::new();
    grow(&world.host(""), 4, 2, 1);
    for depth in 0..6 {
        let stream = find(&world, Tfind { depth, ..all(at("")) }).unwrap();
        let levels = usize::from(depth).min(4);
        assert_eq!(stream.listings.len(), (2 << levels) - 1);
        assert!(stream.listings.iter().all(|listing| listing.ended));
        assert!(!stream.has_more, "depth is no bound that ends a stream");
    }
}

#[test]
fn entries_are_bounded_as_requested() {
    let world = World::new();
    grow(&world.host(""), 3, 5, 3);
    let everything = find(&world, all(at(""))).unwrap().entries();
    for entries in [0, 1, 2, 8, 9, 50, everything - 1, everything, everything + 1] {
        let request = Tfind { entries: u32::try_from(entries).unwrap(), ..all(at("")) };
        let stream = find(&world, request).unwrap();
        assert_eq!(stream.entries(), entries.min(everything));
        assert_eq!(stream.has_more, entries < everything, "{entries} of {everything}");
    }
}

#[test]
fn bytes_are_bounded_as_requested() {
    let world = World::new();
    grow(&world.host(""), 3, 5, 3);
    settle();
    for inline in [0, 4096] {
        let everything = find(&world, Tfind { inline, ..all(at("")) }).unwrap();
        // Other message boundaries take other bytes.
        let enough = everything.bytes + 400 * everything.messages.max(20);
        for bytes in [0, 1, 50, 100, 200, 500, 1000, 2000, 5000, enough] {
            let request = Tfind { bytes: u32::try_from(bytes).unwrap(), inline, ..all(at("")) };
            let stream = find(&world, request).unwrap();
            assert!(stream.bytes <= bytes);
            let is_all = stream.listings.len() == everything.listings.len()
                && stream.listings.iter().all(|listing| listing.ended);
            assert_eq!(stream.has_more, !is_all);
            assert_eq!(is_all, bytes == enough, "{} of {bytes} bytes", stream.bytes);
            // No record here is larger.
            assert!(is_all || stream.bytes + 400 > bytes, "{} of {bytes} bytes", stream.bytes);
        }
    }
}

#[test]
fn contents_without_room_are_left_out() {
    let world = World::new();
    std::fs::write(world.host("file"), vec![b'c'; 5000]).unwrap();
    settle();
    let request = |bytes| Tfind { bytes, inline: 8192, ..all(at("")) };
    let stream = find(&world, request(1000)).unwrap();
    assert_eq!((stream.entries(), &stream.entry("", "file").contents, stream.has_more), (1, &None, false));
    let stream = find(&world, request(6000)).unwrap();
    assert!(stream.entry("", "file").contents.is_some());
}

/// Cancels the request after so many replies.
struct CancelingReplies {
    replies: Vec<Reply>,
    wanted: usize,
    /// Sends after the cancellation.
    refused: usize,
}

impl Replies for CancelingReplies {
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
fn a_canceled_stream_ends() {
    let world = World::new();
    for number in 0..240 {
        let dir = world.host(&format!("dir{}", number % 20));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("file{number}")), [b'c'; 4000]).unwrap();
    }
    settle();
    for wanted in [0, 1, 2, 3] {
        let mut impatient = CancelingReplies { replies: Vec::new(), wanted, refused: 0 };
        let request = Tfind { inline: 4096, ..all(at("")) };
        world.tree.serve(FIRST, Request::Find(request), &mut impatient);
        let is_last = |reply: &Reply| matches!(reply, Reply::Find(found) if found.mode.0 & 32 != 0);
        assert_eq!(impatient.replies.len(), wanted);
        assert!(impatient.refused <= 1, "one reply may have been on its way");
        assert!(!impatient.replies.iter().any(is_last), "the tree is larger than {wanted} replies");
    }
}
