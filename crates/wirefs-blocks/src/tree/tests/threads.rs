//! Concurrent readers and changes.

use super::fixture::{CollectedReplies, Meanwhile, PAYLOAD_BYTES, TreeFixture, at, bytes};
use crate::tree::ReplySink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::{Reply, Request};

#[test]
fn readers_see_atomic_changes_despite_garbage_collection() {
    // Without a cache, each read goes to the store, where a block may just have been deregistered.
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 0);
    let data = |seed| bytes(20_000, seed);
    fixture.create("f", data(0)).unwrap();
    let (is_over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for session in 10..13 {
            let (fixture, is_over, reads) = (&fixture, &is_over, &reads);
            scope.spawn(move || {
                fixture.tree.attach(session, &wirefs_op::TreePath::root()).unwrap();
                while !is_over.load(Ordering::Relaxed) || reads.load(Ordering::Relaxed) < 50 {
                    let mode = GetMode::DATA.and(GetMode::STAT);
                    let get = Tget { target: at("f"), mode, nmsgs: 0, offset: 0, count: 1 << 20 };
                    let mut collected = CollectedReplies::default();
                    fixture.tree.serve(session, &Request::Get(get), &mut collected);
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
            fixture.write(at("f"), 0, data(seed as u8)).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    fixture.audit();
}

#[test]
fn open_file_outlives_its_name() {
    let fixture = TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (fixture, is_over) = (&fixture, &is_over);
        scope.spawn(move || {
            for seed in 0..150 {
                fixture.create("f", bytes(5000, seed as u8)).unwrap();
                fixture.remove("f").unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        for session in 20..22 {
            scope.spawn(move || {
                fixture.tree.attach(session, &wirefs_op::TreePath::root()).unwrap();
                let ask = |target, mode| {
                    let get = Tget { target, mode, nmsgs: 0, offset: 0, count: 1 << 20 };
                    let mut collected = CollectedReplies::default();
                    let replies: &mut dyn ReplySink = &mut collected;
                    fixture.tree.serve(session, &Request::Get(get), replies);
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
                        // Creation and write are one change, so no reader sees an empty file.
                        assert_eq!(read.data.0.len(), 5000);
                    }
                    ask(target, GetMode::NONE);
                }
                fixture.tree.end(session);
            });
        }
    });
    fixture.collect();
    fixture.audit();
    assert_eq!(fixture.store.all().len(), 2);
}

/// An open that a change overtakes waits for the next change; meanwhile another thread answers requests.
#[test]
fn blocked_reader_calls_before_waiting_and_others_are_served() {
    static NOTIFY: Mutex<Option<Sender<()>>> = Mutex::new(None);
    let fixture = Arc::new(TreeFixture::of(PAYLOAD_BYTES, 1 << 20, 0));
    fixture.create("f", bytes(500, 1)).unwrap();
    fixture.create("g", bytes(700, 2)).unwrap();
    // The first lookup finds the tree before the change.
    fixture.store.keeps_all.store(true, Ordering::Relaxed);
    let (notify, notified) = channel();
    *NOTIFY.lock().unwrap() = Some(notify);
    assert!(fixture.tree.before_waiting(|| NOTIFY.lock().unwrap().as_ref().unwrap().send(()).unwrap()));
    fixture.write(at("g"), 0, bytes(10, 3)).unwrap();
    assert!(notified.try_recv().is_err(), "no reader blocked");
    let (begun, begins) = channel();
    let (end, ends) = channel::<()>();
    let writes = Arc::clone(&fixture);
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
    *fixture.store.meanwhile.lock().unwrap() = Some(Meanwhile(Box::new(hold)));
    let opens = Arc::clone(&fixture);
    let opening = std::thread::spawn(move || {
        let mode = GetMode::STAT.and(GetMode::MORE);
        let get = Tget { target: at("f"), mode, nmsgs: 0, offset: 0, count: 0 };
        let mut collected = CollectedReplies::default();
        opens.tree.serve(super::fixture::SESSION, &Request::Get(get), &mut collected);
        collected.0
    });
    notified.recv_timeout(Duration::from_secs(30)).expect("before_waiting was not called");
    assert_eq!(fixture.read("f"), Ok(bytes(500, 1)));
    assert!(!opening.is_finished(), "the change is still running");
    end.send(()).unwrap();
    let replies = opening.join().unwrap();
    assert!(matches!(replies.as_slice(), [Reply::Get(_)]), "{replies:?}");
}
