//! A synthetic server: a file of length 0 whose reads count, and one whose reads wait.

use crate::op::{Attached, at};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use wirefs_lab::synthetic::SyntheticServer;
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::{Errno, Request};

fn start(name: &str) -> SyntheticServer {
    let socket = std::env::temp_dir().join(format!("wirefs-ninefs-{name}-{}", std::process::id()));
    let _old = std::fs::remove_file(&socket);
    SyntheticServer::start(&socket).unwrap()
}

#[test]
fn each_read_of_a_program_is_one_read_of_the_file_and_nothing_else_reads_it() {
    let server = start("counter");
    let tree = Attached::to(&server.source());
    assert_eq!(tree.names(""), ["counter", "never"]);
    // What an open with prefetch asks for, and what a walk of many small files asks for.
    let prefetches = [
        GetMode::STAT.and(GetMode::DATA).and(GetMode::MORE),
        GetMode::STAT.and(GetMode::DATA).and(GetMode::WHOLE),
    ];
    for mode in prefetches {
        let got = tree.get(at("counter"), mode, 0, 128 * 1024).unwrap();
        assert_eq!(got[0].data.0.len(), 0);
    }
    assert_eq!(server.reads(), 0, "nobody has read it");
    let open = tree.open("counter");
    for number in 1..=3 {
        let text = String::from_utf8(tree.read(open.clone(), 0, 128 * 1024).unwrap()).unwrap();
        assert_eq!(text, format!("read {number}\n"));
        assert_eq!(server.reads(), number);
    }
    tree.close(open);
}

#[test]
fn a_read_that_nobody_wants_any_more_is_canceled_at_the_server() {
    let server = start("never");
    let tree = Attached::to(&server.source());
    let target = tree.open("never");
    let stopped = Arc::new(AtomicBool::new(false));
    let request =
        Request::Get(Tget { target, mode: GetMode::DATA.and(GetMode::MORE), nmsgs: 0, offset: 0, count: 10 });
    thread::scope(|scope| {
        let read = scope.spawn(|| tree.all_unless(request, &stopped));
        stopped.store(true, Ordering::SeqCst);
        assert_eq!(read.join().unwrap(), Err(Errno::Interrupted));
    });
    server.await_flush();
    // The connection goes on.
    assert_eq!(tree.names(""), ["counter", "never"]);
}

#[test]
fn names_that_are_not_there_and_errors_in_words_become_numbers() {
    let server = start("errors");
    let tree = Attached::to(&server.source());
    assert_eq!(tree.read(at("none"), 0, 1), Err(Errno::NotFound));
    let absent = tree.get(at("none"), GetMode::STAT.and(GetMode::ENTRY), 0, 0).unwrap();
    assert!(absent[0].mode.has(GotMode::ABSENT));
    let stat = tree.get(at("counter"), GetMode::STAT, 0, 0).unwrap()[0].stat.unwrap();
    assert_eq!((stat.size, stat.mode, stat.uid), (0, 0o644, rustix::process::geteuid().as_raw()));
}
