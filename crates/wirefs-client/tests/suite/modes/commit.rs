//! Mode `commit`: who has closed a file has it on the server's disk; until then a server that lost it is sent it again.

use crate::alone::{Alone, got, stat};
use crate::config;
use crate::deeds::{READ_WRITE, handle, write};
use crate::world::{STEADY, World};
use wirefs_client::call::{Answer, Call, Handle, ROOT, TreeNodeId};
use wirefs_op::message::commit::Rcommit;
use wirefs_op::message::get::GotMode;
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::Fd;
use wirefs_op::message::version::BootId;
use wirefs_op::{Kind, Reply, Request, Tag};

/// S-24
#[test]
fn a_close_waits_for_the_servers_disk_and_a_second_one_for_nothing() {
    let mut world = World::of(1, &[config("commit"), config("strict")], STEADY);
    let node = world.file(0, ROOT, b"f", b"hello");
    let sent = &world.seats[0].sent;
    assert_eq!(
        sent.iter().filter(|name| ["Put", "Commit"].contains(*name)).collect::<Vec<_>>(),
        ["Put", "Put", "Commit"].each_ref()
    );
    let open = handle(world.ask(0, Call::Open { node, how: READ_WRITE }));
    let (answer, sent) = world.cost(0, Call::Flush { node, handle: open, owner: 1 });
    assert_eq!((answer, sent.len()), (Answer::Done, 0));
}

/// A file that is open for writing at a server that the test plays.
fn open_for_writing() -> (Alone, TreeNodeId, Handle) {
    let mut alone = Alone::in_mode("commit");
    let call = alone.call(Call::Lookup { parent: ROOT, name: b"f" });
    let tag = alone.next();
    alone.reply(tag, &got(GotMode::LAST, Some(stat(9, Kind::File, 0)), b"")).unwrap();
    let Some(Answer::Entry(entry)) = alone.answer(call) else { panic!() };
    let node = entry.node;
    let call = alone.call(Call::Open { node, how: READ_WRITE });
    let tag = alone.next();
    alone.reply(tag, &put(0)).unwrap();
    let Some(Answer::Opened(handle, _)) = alone.answer(call).cloned() else { panic!() };
    (alone, node, handle)
}

fn put(count: u32) -> Reply {
    let stat = Some(stat(9, Kind::File, u64::from(count)));
    Reply::Put(Rput { fd: Fd(3), count, offset: 0, before: 5, stat, dir: None })
}

/// The data that is asked to be written next, and where.
fn next_write(alone: &mut Alone) -> (Tag, u64, Vec<u8>) {
    match alone.asked.pop_front() {
        Some((tag, Request::Put(put))) => (tag, put.offset, put.data.0.to_vec()),
        other => panic!("{other:?}"),
    }
}

fn commit(alone: &mut Alone, boot: u64) {
    let tag = alone.next();
    alone.reply(tag, &Reply::Commit(Rcommit { boot: BootId(boot) })).unwrap();
}

/// S-25
#[test]
fn what_a_server_lost_is_sent_again_ahead_of_what_it_never_had_and_as_often_as_it_takes() {
    let (mut alone, node, handle) = open_for_writing();
    for (offset, data) in [(0, b"aaaa"), (2, b"bbbb")] {
        alone.call(write(node, handle, offset, data));
        let (tag, ..) = next_write(&mut alone);
        alone.reply(tag, &put(4)).unwrap();
    }
    alone.call(write(node, handle, 3, b"cc"));
    let flush = alone.call(Call::Flush { node, handle, owner: 1 });
    for boot in 2..5 {
        alone.lost();
        alone.asked.clear();
        alone.connected_to(boot);
        let again: Vec<_> = (0..3).map(|_| next_write(&mut alone)).collect();
        let written: Vec<_> = again.iter().map(|(_, offset, data)| (*offset, data.as_slice())).collect();
        assert_eq!(written, [(0, b"aaaa".as_slice()), (2, b"bbbb"), (3, b"cc")]);
        for (tag, _, data) in again {
            alone.reply(tag, &put(data.len() as u32)).unwrap();
        }
        assert!(alone.answer(flush).is_none());
    }
    commit(&mut alone, 4);
    assert_eq!(alone.answer(flush), Some(&Answer::Done));
    alone.lost();
    alone.connected_to(5);
    assert!(alone.asked.is_empty(), "the disk has it");
}

/// S-25
#[test]
fn what_is_sent_again_to_a_server_that_kept_its_ledger_is_numbered_in_the_order_in_which_it_is_sent() {
    let (mut alone, node, handle) = open_for_writing();
    alone.lost();
    alone.connected_to_ledger(1, 1);
    let writes = [(0, b"aa"), (2, b"bb"), (4, b"cc")];
    let sent = writes.map(|(offset, data)| {
        alone.call(write(node, handle, offset, data));
        let asked: Vec<_> = alone.asked.drain(..).collect();
        asked.last().unwrap().0
    });
    alone.reply(sent[0], &put(2)).unwrap();
    alone.lost();
    // It was stopped in order and its machine started again: it has done the first two.
    alone.connected_to_ledger(2, 3);
    let (mut number, mut written) = (0, Vec::new());
    for (_, request) in alone.asked.drain(..) {
        match request {
            Request::Number(told) => {
                assert!(told.number >= number, "{} behind {number}", told.number);
                number = told.number;
            }
            Request::Put(put) => {
                written.push((number, put.offset));
                number += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        written,
        [(2, 2), (4, 0), (5, 4)],
        "one from its ledger, one that its disk may have lost, one new"
    );
}

#[test]
fn data_that_cannot_be_sent_again_is_reported_as_lost() {
    let (mut alone, node, handle) = open_for_writing();
    alone.call(write(node, handle, 0, b"aaaa"));
    let (tag, ..) = next_write(&mut alone);
    alone.reply(tag, &put(4)).unwrap();
    alone.call(Call::Fallocate { node, handle, offset: 0, length: 2, mode: 3 });
    let tag = alone.next();
    let allocated = wirefs_op::message::allocate::Rallocate { stat: Some(stat(9, Kind::File, 4)) };
    alone.reply(tag, &Reply::Allocate(allocated)).unwrap();
    alone.lost();
    alone.connected_to(2);
    assert!(alone.asked.is_empty());
    let flush = alone.call(Call::Flush { node, handle, owner: 1 });
    assert_eq!(alone.answer(flush), Some(&Answer::Fail(wirefs_op::Errno::Io)));
}
