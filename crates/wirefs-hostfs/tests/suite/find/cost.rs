//! The cost of a stream: printed, not asserted. `WIREFS_FIND_DIRECTORIES=5000` makes a tree of 100,000 files.

use super::{all, listings::ReceivedStream, settle};
use crate::harness::{Collected, FIRST, World, at};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use wirefs_op::message::find::Tfind;
use wirefs_op::{Reply, Request};
use wirefs_server::{Replies, Stopped, Tree};

const FILES: usize = 20;

/// Notes the arrival times of replies.
struct TimedReplies {
    collected: Collected,
    started: Instant,
    times: Vec<Duration>,
}

impl Replies for TimedReplies {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.times.push(self.started.elapsed());
        self.collected.send(reply)
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn wait(&mut self) {}
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_warm_tree_costs_little() {
    let wanted = std::env::var("WIREFS_FIND_DIRECTORIES").ok();
    let directories: usize = wanted.map_or(200, |count| count.parse().expect("a number of directories"));
    let world = World::new();
    for number in 0..directories {
        let dir = world.host(&format!("part{}/section{}/module{number}", number % 7, number % 41));
        std::fs::create_dir_all(&dir).unwrap();
        for file in 0..FILES {
            let text = "0123456789".repeat(file * 13);
            std::fs::write(dir.join(format!("source_file_{file}.rs")), text).unwrap();
        }
    }
    settle();
    for inline in [0, 0, 4096] {
        let (started, before) = (Instant::now(), processor_time());
        let mut timed = TimedReplies { collected: Collected::default(), started, times: Vec::new() };
        world.tree.serve(FIRST, Request::Find(Tfind { inline, ..all(at("")) }), &mut timed);
        let (took, processor) = (started.elapsed(), processor_time() - before);
        let stream = ReceivedStream::of(timed.collected.replies).unwrap();
        assert_eq!(stream.entries(), directories * (FILES + 1) + stream.listings.len() - directories - 1);
        let contents = stream.listings.iter().flat_map(|listing| &listing.entries);
        let contents: usize = contents.filter_map(|entry| Some(entry.contents.as_ref()?.len())).sum();
        println!(
            "inline {inline}: {} entries in {} directories, {took:?}, processor {processor:?}, first after {:?}, \
             {} replies, {:.1} bytes an entry",
            stream.entries(),
            stream.listings.len(),
            timed.times[0],
            stream.messages,
            (stream.bytes - contents) as f64 / stream.entries() as f64,
        );
    }
}
