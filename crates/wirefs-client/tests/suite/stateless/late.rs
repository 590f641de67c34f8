//! Answers to who reads a directory that come late to the kernel, which meanwhile was told to drop what it has: by a kernel of few lines,
//! as `fs/fuse/readdir.c` has it.

use super::{name, part, readdir, world};
use crate::deeds::{create, entry, handle};
use crate::world::World;
use wirefs_client::call::{Answer, Call, CallId, Invalidate, TreeNodeId};

/// The kernel's listing of one directory, of one page.
#[derive(Debug, Default)]
struct Listing {
    names: Vec<Vec<u8>>,
    position: u64,
    is_whole: bool,
    is_there: bool,
}

impl Listing {
    /// The listing that a program gets from the kernel's cache alone.
    fn read(&mut self) -> Option<Vec<Vec<u8>>> {
        if self.is_whole && !self.is_there {
            *self = Listing::default();
        }
        self.is_whole.then(|| self.names.clone())
    }

    fn takes(&mut self, position: u64, answer: &Answer) {
        let Answer::Listing(listed) = answer else { return };
        if listed.is_empty() {
            self.is_whole |= self.position == position;
        }
        let mut at = position;
        for listed in listed {
            if !self.is_whole && at == self.position && (at == 0 || self.is_there) {
                self.names.push(listed.name.clone());
                (self.position, self.is_there) = (listed.next, true);
            }
            at = listed.next;
        }
    }
}

/// A thread asks; the answer stays on its way.
fn ask(world: &mut World, thread: u32, dir: TreeNodeId, offset: u64) -> Answer {
    let call = world.call_by(thread, 1, readdir(dir, offset));
    world.wait(1, call)
}

fn end(answer: &Answer) -> u64 {
    part(answer.clone()).last().unwrap().next
}

/// Drops what the kernel was told to drop since.
fn drops(world: &mut World, kernel: &mut Listing, dir: TreeNodeId) {
    if world.seats[1].invalidated.contains(&Invalidate::Listing { node: dir }) {
        kernel.is_there = false;
    }
    world.seats[1].invalidated.clear();
}

fn sees(world: &mut World, kernel: &mut Listing, dir: TreeNodeId, thread: u32) -> Vec<Vec<u8>> {
    if let Some(names) = kernel.read() {
        return names;
    }
    let told = ask(world, thread, dir, 0);
    kernel.takes(0, &told);
    let last = ask(world, thread, dir, end(&told));
    drops(world, kernel, dir);
    kernel.takes(end(&told), &last);
    part(told).into_iter().map(|listed| listed.name).collect()
}

fn make(world: &mut World, dir: TreeNodeId, number: usize) {
    let made = world.ask(0, create(dir, &name(number)));
    world.close(0, entry(made.clone()).node, handle(made));
}

// S-34, S-32
#[test]
fn a_beginning_and_an_end_that_come_behind_a_recall_do_not_make_a_listing_whole() {
    for is_asked_once_more in [false, true] {
        let (mut world, theirs, dir) = world("lease", 2);
        let mut kernel = Listing::default();
        let [first, second, third] = [2, 3, 4].map(|thread| ask(&mut world, thread, dir, 0));
        kernel.takes(0, &second);
        kernel.takes(0, &third);
        // The second may come to its end before the first has begun; its answer is late.
        let late = ask(&mut world, 3, dir, end(&second));
        // One more begins while that is on its way.
        let begun = is_asked_once_more.then(|| ask(&mut world, 5, dir, 0));
        let last = ask(&mut world, 4, dir, end(&third));
        drops(&mut world, &mut kernel, dir);
        kernel.takes(end(&third), &last);
        make(&mut world, theirs, 7);
        world.settle();
        drops(&mut world, &mut kernel, dir);
        // Somebody reads anew, and is not told yet.
        let new = kernel.read().is_none().then(|| ask(&mut world, 6, dir, 0));
        kernel.takes(0, &first);
        begun.iter().for_each(|begun| kernel.takes(0, begun));
        kernel.takes(end(&second), &late);
        new.iter().for_each(|new| kernel.takes(0, new));
        for thread in [7, 8] {
            assert!(sees(&mut world, &mut kernel, dir, thread).contains(&name(7)), "{kernel:?}");
        }
    }
}

// S-34
#[test]
fn abandoned_listing_is_kept_once_no_reply_is_in_flight() {
    let (mut world, theirs, dir) = world("lease", 2);
    let mut kernel = Listing::default();
    // All in one answer, and its reader does not ask for more.
    let left = ask(&mut world, 2, dir, 0);
    kernel.takes(0, &left);
    let names = sees(&mut world, &mut kernel, dir, 3);
    assert_eq!(kernel.read(), None);
    let (awaited, until) = world.seats[1].awaited.pop().expect("it is asked whether it has its answer");
    assert_eq!(awaited, dir);
    let now = world.now;
    world.seats[1].client.readers_passed(now, dir, until);
    assert_eq!(sees(&mut world, &mut kernel, dir, 3), names);
    assert_eq!(kernel.read(), Some(names));
    // Its thread asks for something else: that says it too.
    make(&mut world, theirs, 7);
    world.settle();
    drops(&mut world, &mut kernel, dir);
    assert_eq!(kernel.read(), None);
    let left = ask(&mut world, 2, dir, 0);
    kernel.takes(0, &left);
    let asks: CallId = world.call_by(2, 1, Call::Lookup { parent: dir, name: &name(7) });
    world.wait(1, asks);
    sees(&mut world, &mut kernel, dir, 3);
    assert_eq!(kernel.read().map(|names| names.len()), Some(2 + 3));
}
