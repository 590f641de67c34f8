//! A server that says that the client broke the protocol: the client neither repeats what was blamed for ever nor leaves a caller waiting.

use crate::ahead::lone;
use crate::alone::{Alone, stat};
use crate::deeds::{READ_WRITE, handle, write};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Handle, ROOT, TreeNodeId};
use wirefs_op::limits::LEDGER_MAX;
use wirefs_op::message::commit::Rcommit;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::Fd;
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Text;
use wirefs_op::{Errno, Kind, NOTAG, Reply, Request, Tag};

const BOOT: u64 = 1;
const LEDGER: u64 = 70;
const WHY: &str = "change 7 is out of place";

fn put(count: u32) -> Reply {
    let about = Some(stat(9, Kind::File, 10));
    Reply::Put(Rput { fd: Fd(4), count, offset: 0, before: 5, stat: about, dir: None })
}

/// A client at a server with a ledger, and a file that is open for writing.
fn with_file() -> (Alone, TreeNodeId, Handle) {
    let mut alone = Alone::new();
    let (node, _) = alone.open(10);
    alone.lost();
    alone.connected_to_ledger(BOOT, 1);
    alone.asked.clear();
    let call = alone.call(Call::Open { node, how: READ_WRITE });
    // Its number goes before it.
    let (tag, _) = alone.asked.pop_back().unwrap();
    alone.reply(tag, &put(0)).unwrap();
    alone.asked.clear();
    let Some(Answer::Opened(handle, _)) = alone.answer(call).cloned() else { panic!() };
    (alone, node, handle)
}

/// The requests since then, in order.
fn asked(alone: &mut Alone) -> Vec<(Tag, Request)> {
    alone.asked.drain(..).collect()
}

/// A write that nobody waits for, its sync, and a change that must not be done twice.
fn works(alone: &mut Alone, node: TreeNodeId, handle: Handle) -> [CallId; 3] {
    [
        alone.call(write(node, handle, 0, b"hello")),
        alone.call(Call::Fsync { node, handle, data_only: false }),
        alone.call(Call::Unlink { parent: ROOT, name: b"other" }),
    ]
}

fn complaint() -> Reply {
    Reply::Error(Rerror { errno: Errno::Protocol, ename: Text::new(WHY.as_bytes()) })
}

/// The server complains, and closes the connection.
fn blame(alone: &mut Alone) {
    let blamed = alone.reply(NOTAG, &complaint());
    assert!(blamed.is_err(), "the connection is of no use");
    alone.lost();
    alone.asked.clear();
}

// S-81
#[test]
fn what_may_be_done_twice_is_sent_again_under_new_numbers_and_the_rest_fails() {
    let (mut alone, node, handle) = with_file();
    let [written, synced, unlinked] = works(&mut alone, node, handle);
    assert_eq!(alone.answer(written), Some(&Answer::Count(5)));
    blame(&mut alone);
    assert_eq!(alone.blames, [WHY]);
    alone.connected_to_ledger(BOOT, LEDGER);
    assert_eq!(alone.answer(unlinked), Some(&Answer::Fail(Errno::Io)));
    let asked = asked(&mut alone);
    let number = LEDGER + LEDGER_MAX;
    let [(_, Request::Number(told)), (first, Request::Put(_)), (second, Request::Commit(_))] =
        asked.as_slice()
    else {
        panic!("{asked:?}");
    };
    assert_eq!(*told, Tnumber { number, answered: number });
    assert_eq!(alone.answer(synced), None);
    alone.reply(*first, &put(5)).unwrap();
    alone.reply(*second, &Reply::Commit(Rcommit { boot: BootId(BOOT) })).unwrap();
    assert_eq!(alone.answer(synced), Some(&Answer::Done));
}

// S-81
#[test]
fn a_server_that_blames_each_connection_is_sent_nothing_for_a_fourth_time() {
    let (mut alone, node, handle) = with_file();
    let [_, synced, _] = works(&mut alone, node, handle);
    let mut connections = 1;
    while !asked(&mut alone).is_empty() {
        assert!(connections <= 3, "sent over {connections} connections");
        blame(&mut alone);
        alone.connected_to_ledger(BOOT, LEDGER);
        connections += 1;
    }
    assert_eq!(alone.answer(synced), Some(&Answer::Fail(Errno::Io)));
    let again = alone.call(Call::Fsync { node, handle, data_only: false });
    let commit = alone.next();
    alone.reply(commit, &Reply::Commit(Rcommit { boot: BootId(BOOT) })).unwrap();
    assert_eq!(alone.answer(again), Some(&Answer::Fail(Errno::Io)), "what was written is lost");
    alone.tick(Duration::from_secs(60));
    assert!(alone.client.is_settled());
}

// S-81
#[test]
fn with_a_journal_changes_of_unknown_outcome_are_quarantined_and_the_rest_is_journaled_anew() {
    let mut world = lone();
    let node = world.file(0, ROOT, b"f", b"hello");
    let open = handle(world.ask(0, Call::Open { node, how: READ_WRITE }));
    world.settle();
    let journaled = world.seats[0].journal.len();
    let made = world.ask(0, Call::Mkdir { parent: ROOT, name: b"made", mode: 0o755, umask: 0 });
    assert!(matches!(made, Answer::Entry(_)), "{made:?}");
    world.ask(0, write(node, open, 0, b"world"));
    let synced = world.call(0, Call::Fsync { node, handle: open, data_only: false });
    let [mkdir, write] = world.seats[0].journal[journaled..] else { panic!("{:?}", world.seats[0].journal) };
    let now = world.now;
    assert!(world.seats[0].client.receive(now, complaint().encode(NOTAG).to_body()).is_err());
    world.cut(0, Duration::from_millis(10), true);
    assert_eq!(world.wait(0, synced), Answer::Done);
    assert_eq!(world.seats[0].refused, [(mkdir, None)]);
    let again = world.seats[0].journal.last().copied();
    assert!(again.is_some_and(|again| again > write), "{:?}", world.seats[0].journal);
    let read = world.ask(0, Call::Read { node, handle: open, offset: 0, count: 10 });
    assert_eq!(read, Answer::Data(b"world".as_slice().into()));
    world.settle();
}
