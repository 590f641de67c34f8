//! Readers beside changes.

use super::world::{Collected, Meanwhile, PAYLOAD_BYTES, World, at, bytes};
use crate::tree::Answers;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::{Reply, Request};

#[test]
fn readers_see_whole_changes_while_blocks_are_collected_under_them() {
    // Without a cache each read goes to the store, where what it wants may just be gone.
    let world = World::of(PAYLOAD_BYTES, 1 << 20, 0);
    let data = |seed| bytes(20_000, seed);
    world.create("f", data(0)).unwrap();
    let (is_over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for session in 10..13 {
            let (world, is_over, reads) = (&world, &is_over, &reads);
            scope.spawn(move || {
                world.tree.attach(session, &wirefs_op::TreePath::root()).unwrap();
                while !is_over.load(Ordering::Relaxed) || reads.load(Ordering::Relaxed) < 50 {
                    let mode = GetMode::DATA.and(GetMode::STAT);
                    let get = Tget { target: at("f"), mode, nmsgs: 0, offset: 0, count: 1 << 20 };
                    let mut collected = Collected::default();
                    world.tree.serve(session, &Request::Get(get), &mut collected);
                    match collected.0.as_slice() {
                        [Reply::Get(got)] => {
                            let seed = got.data.0[0];
                            assert_eq!(got.data.0, data(seed), "a mix of two changes");
                            reads.fetch_add(1, Ordering::Relaxed);
                        }
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        for seed in 1..200 {
            world.write(at("f"), 0, data(seed as u8)).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    world.audit();
}

#[test]
fn what_is_opened_stays_while_its_name_goes() {
    let world = World::of(PAYLOAD_BYTES, 1 << 20, 0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (world, is_over) = (&world, &is_over);
        scope.spawn(move || {
            for seed in 0..150 {
                world.create("f", bytes(5000, seed as u8)).unwrap();
                world.remove("f").unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        for session in 20..22 {
            scope.spawn(move || {
                world.tree.attach(session, &wirefs_op::TreePath::root()).unwrap();
                let ask = |target, mode| {
                    let get = Tget { target, mode, nmsgs: 0, offset: 0, count: 1 << 20 };
                    let mut collected = Collected::default();
                    let answers: &mut dyn Answers = &mut collected;
                    world.tree.serve(session, &Request::Get(get), answers);
                    collected.0.pop().unwrap()
                };
                while !is_over.load(Ordering::Relaxed) {
                    let Reply::Get(opened) = ask(at("f"), GetMode::MORE.and(GetMode::STAT)) else { continue };
                    let id = opened.stat.unwrap().id;
                    let target =
                        wirefs_op::message::target::Target { fd: opened.fd, id: Some(id), ..at("f") };
                    for _ in 0..3 {
                        let again = ask(target.clone(), GetMode::MORE.and(GetMode::DATA).and(GetMode::STAT));
                        let Reply::Get(read) = again else { panic!("{again:?}") };
                        // Between making and writing there is none: both are one change.
                        assert_eq!(read.data.0.len(), 5000);
                    }
                    ask(target, GetMode::NONE);
                }
                world.tree.end(session);
            });
        }
    });
    world.collect();
    world.audit();
    assert_eq!(world.store.all().len(), 2);
}

/// An open that a change overtook waits for the next one; until that is over, another thread answers what comes.
#[test]
fn who_waits_for_a_change_says_so_and_others_are_answered_meanwhile() {
    static SAID: Mutex<Option<Sender<()>>> = Mutex::new(None);
    let world = Arc::new(World::of(PAYLOAD_BYTES, 1 << 20, 0));
    world.create("f", bytes(500, 1)).unwrap();
    world.create("g", bytes(700, 2)).unwrap();
    // What the first look finds is of the tree before the change.
    world.store.keeps_all.store(true, Ordering::Relaxed);
    let (say, said) = channel();
    *SAID.lock().unwrap() = Some(say);
    assert!(world.tree.before_waiting(|| SAID.lock().unwrap().as_ref().unwrap().send(()).unwrap()));
    world.write(at("g"), 0, bytes(10, 3)).unwrap();
    assert!(said.try_recv().is_err(), "nobody waited");
    let (begun, begins) = channel();
    let (end, ends) = channel::<()>();
    let writes = Arc::clone(&world);
    let hold = move || {
        writes.write(at("g"), 0, bytes(10, 4)).unwrap();
        let wait = move || {
            begun.send(()).unwrap();
            ends.recv().unwrap();
        };
        *writes.store.meanwhile.lock().unwrap() = Some(Meanwhile(Box::new(wait)));
        let changes = Arc::clone(&writes);
        std::thread::spawn(move || changes.write(at("g"), 0, bytes(10, 5)));
        begins.recv().unwrap();
    };
    *world.store.meanwhile.lock().unwrap() = Some(Meanwhile(Box::new(hold)));
    let opens = Arc::clone(&world);
    let opening = std::thread::spawn(move || {
        let mode = GetMode::STAT.and(GetMode::MORE);
        let get = Tget { target: at("f"), mode, nmsgs: 0, offset: 0, count: 0 };
        let mut collected = Collected::default();
        opens.tree.serve(super::world::SESSION, &Request::Get(get), &mut collected);
        collected.0
    });
    said.recv_timeout(Duration::from_secs(30)).expect("it waits and has not said so");
    assert_eq!(world.read("f"), Ok(bytes(500, 1)));
    assert!(!opening.is_finished(), "the change still goes on");
    end.send(()).unwrap();
    let replies = opening.join().unwrap();
    assert!(matches!(replies.as_slice(), [Reply::Get(_)]), "{replies:?}");
}
