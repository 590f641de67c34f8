//! Requests in progress when the connection breaks, and replies that own changes overtook.

use crate::alone::{Alone, got, stat};
use crate::config;
use crate::deeds::{READ_WRITE, create, getattr, handle, write};
use crate::failures::opened_in;
use crate::world::{Delays, STEADY, World};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Handle, OpenHow, ROOT, TreeNodeId};
use wirefs_op::message::commit::Rcommit;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::get::GotMode;
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::NOFD;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Kind, LockFamily, LockKind, LockRange, Reply, Request, SetStat, Tag};

/// The requests of client 0 after its connection broke with the close of a file in transit.
fn sent_after_a_release(resumed: bool) -> Vec<&'static str> {
    let mut world = World::new(1, config("window"), 1, STEADY);
    let node = world.file(0, ROOT, b"f", b"hello");
    let opened = handle(world.ask(0, Call::Open { node, how: READ_WRITE }));
    world.settle();
    world.ask(0, Call::Release { node, handle: opened, flock_owner: None });
    let before = world.seats[0].sent.len();
    world.cut(0, Duration::from_millis(10), resumed);
    world.settle();
    world.seats[0].sent[before..].to_vec()
}

#[test]
fn the_closing_of_a_file_that_was_lost_with_the_connection_is_sent_again() {
    assert_eq!(sent_after_a_release(true), ["Get"]);
}

#[test]
fn the_closing_of_a_file_is_not_sent_to_a_session_that_did_not_open_it() {
    assert_eq!(sent_after_a_release(false), [""; 0]);
}

fn set_lock(node: TreeNodeId, handle: Handle, kind: LockKind, wait: bool) -> Call<'static> {
    let range = LockRange { kind, start: 0, end: u64::MAX, pid: 1 };
    Call::Setlk { node, handle, owner: 7, family: LockFamily::Posix, range, wait }
}

/// The requests about locks, in order.
fn locks_asked(alone: &mut Alone) -> Vec<LockKind> {
    let asked = std::mem::take(&mut alone.asked);
    let kind = |(_, request): (Tag, Request)| match request {
        Request::Lock(lock) => Some(lock.range.kind),
        _ => None,
    };
    asked.into_iter().filter_map(kind).collect()
}

#[test]
fn the_release_of_a_lock_is_sent_however_late_the_connection_comes_back() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(10);
    alone.lost();
    let call = alone.call(set_lock(node, handle, LockKind::Unlock, false));
    assert_eq!(alone.answer(call), Some(&Answer::Done));
    alone.tick(Duration::from_secs(60));
    alone.connected_to(1);
    assert_eq!(locks_asked(&mut alone), [LockKind::Unlock], "or the server would hold it for ever");
}

// S-70
#[test]
fn callers_do_not_wait_while_the_machine_sleeps() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(10);
    alone.lost();
    let read = || Call::Read { node, handle, offset: 0, count: 10 };
    let early = alone.call(read());
    alone.sleep(Duration::from_secs(300));
    let late = alone.call(read());
    alone.tick(Duration::from_secs(29));
    assert_eq!((alone.answer(early), alone.answer(late)), (None, None));
    alone.tick(Duration::from_secs(2));
    for call in [early, late] {
        assert_eq!(alone.answer(call), Some(&Answer::Fail(Errno::HostDown)));
    }
}

#[test]
fn call_before_a_suspend_is_noticed_waits_as_well() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(10);
    alone.lost();
    alone.now = alone.now + Duration::from_secs(300);
    let read = alone.call(Call::Read { node, handle, offset: 0, count: 10 });
    assert_eq!(alone.answer(read), None);
    alone.tick(Duration::from_secs(31));
    assert_eq!(alone.answer(read), Some(&Answer::Fail(Errno::HostDown)));
}

#[test]
fn a_lock_whose_caller_is_interrupted_before_it_is_sent_is_not_taken() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(10);
    alone.lost();
    let call = alone.call(set_lock(node, handle, LockKind::Write, true));
    alone.call(Call::Interrupt { call });
    assert_eq!(alone.answer(call), Some(&Answer::Fail(Errno::Interrupted)));
    alone.connected_to(1);
    assert_eq!(locks_asked(&mut alone), [LockKind::Unlock], "it may have been sent before, and had");
}

#[test]
fn a_lookup_that_was_asked_before_an_own_creation_does_not_take_the_name_away() {
    let delays = Delays { wire: (1_000, 60_000), server: (0, 30_000), kernel: (0, 0) };
    for seed in 0..40 {
        let mut world = World::new(seed, config("window"), 1, delays);
        let looking = world.call(0, Call::Lookup { parent: ROOT, name: b"f" });
        let made = world.ask(0, create(ROOT, b"f"));
        let Answer::Created(entry, opened, _) = made else { panic!("{made:?}") };
        world.wait(0, looking);
        world.cut(0, Duration::from_millis(10), false);
        world.pass(Duration::from_secs(2));
        // Without an fd, and by its name then.
        let read = Call::Read { node: entry.node, handle: opened, offset: 0, count: 10 };
        let read = world.ask(0, read);
        assert!(matches!(read, Answer::Data(_)), "seed {seed}: {read:?}");
    }
}

/// Changes that cannot be done twice: their replies are lost with the connection, at each moment of their way.
#[test]
fn changes_whose_replies_were_lost_are_answered_by_the_session_as_if_nothing_had_been() {
    for late in (0..130).step_by(5) {
        let mut world = World::new(late, config("window"), 1, STEADY);
        let appended = world.file(0, ROOT, b"appended", b"one");
        let removed = world.file(0, ROOT, b"removed", b"");
        world.file(0, ROOT, b"old", b"");
        let how = OpenHow { append: true, ..READ_WRITE };
        let file = handle(world.ask(0, Call::Open { node: appended, how }));
        world.settle();
        let changes = [
            Call::Mkdir { parent: ROOT, name: b"made", mode: 0o755, umask: 0 },
            Call::Unlink { parent: ROOT, name: b"removed" },
            Call::Rename { parent: ROOT, name: b"old", to_parent: ROOT, to_name: b"new", flags: 0 },
            Call::Link { node: removed, parent: ROOT, name: b"linked" },
            create(ROOT, b"created"),
            Call::Fsync { node: appended, handle: file, data_only: false },
        ];
        world.ask(0, write(appended, file, 3, b"two"));
        let calls = changes.map(|call| world.call(0, call));
        world.pass(Duration::from_millis(late));
        world.cut(0, Duration::from_secs(1), true);
        for (index, call) in calls.into_iter().enumerate() {
            let answer = world.wait(0, call);
            // The file to link is gone by then, whoever is asked.
            assert_eq!(
                matches!(answer, Answer::Fail(_)),
                index == 3,
                "after {late} ms, change {index}: {answer:?}"
            );
        }
        let read = world.ask(0, Call::Read { node: appended, handle: file, offset: 0, count: 10 });
        assert_eq!(read, Answer::Data(b"onetwo".as_slice().into()), "after {late} ms");
        world.settle();
    }
}

/// A file that is open for writing, in a client whose deadline is over, with 5 bytes in it that were not sent.
fn unsent_past_the_deadline() -> (Alone, TreeNodeId, Handle) {
    let (mut alone, node, opened) = opened_in("window");
    alone.lost();
    let written = alone.call(write(node, opened, 0, b"early"));
    assert_eq!(alone.answer(written), Some(&Answer::Count(5)));
    alone.tick(Duration::from_secs(31));
    (alone, node, opened)
}

// S-70
#[test]
fn no_call_waits_once_the_deadline_is_over() {
    let (mut alone, node, opened) = unsent_past_the_deadline();
    let large = vec![7; 8 * 1024 * 1024];
    let calls = [
        Call::Flush { node, handle: opened, owner: 1 },
        write(node, opened, 0, b"late"),
        write(node, opened, 0, &large),
        Call::Fsync { node, handle: opened, data_only: false },
        Call::Flush { node, handle: opened, owner: 2 },
    ];
    for call in calls {
        let shown = format!("{call:?}").chars().take(20).collect::<String>();
        let id = alone.call(call);
        assert_eq!(alone.answer(id), Some(&Answer::Fail(Errno::HostDown)), "{shown}");
    }
}

// S-70
#[test]
fn data_that_was_taken_in_before_the_deadline_is_sent_after_it_and_refused_data_is_not() {
    let (mut alone, node, opened) = unsent_past_the_deadline();
    alone.call(write(node, opened, 5, b"late"));
    alone.asked.clear();
    alone.connected_to(1);
    let written = |(_, request): &(Tag, Request)| match request {
        Request::Put(put) if !put.data.0.is_empty() => Some(put.data.0.to_vec()),
        _ => None,
    };
    let sent: Vec<Vec<u8>> = alone.asked.iter().filter_map(written).collect();
    assert_eq!(sent, [b"early".to_vec()]);
}

// S-72
#[test]
fn a_caller_that_is_asked_to_end_does_not_wait_for_a_connection() {
    let (mut alone, node, opened) = opened_in("window");
    alone.lost();
    let written = alone.call(write(node, opened, 0, b"early"));
    assert_eq!(alone.answer(written), Some(&Answer::Count(5)));
    let mkdir = Call::Mkdir { parent: ROOT, name: b"made", mode: 0o755, umask: 0 };
    let calls = [
        getattr(ROOT),
        Call::Read { node, handle: opened, offset: 1 << 20, count: 10 },
        Call::Lookup { parent: ROOT, name: b"other" },
        mkdir,
        Call::Flush { node, handle: opened, owner: 1 },
        Call::Fsync { node, handle: opened, data_only: false },
    ];
    alone.tick(Duration::from_secs(2));
    for call in calls {
        let shown = format!("{call:?}");
        let id = alone.call(call);
        assert_eq!(alone.answer(id), None, "{shown}");
        alone.asked_to_end(id);
        assert_eq!(alone.answer(id), Some(&Answer::Fail(Errno::Interrupted)), "{shown}");
    }
    alone.asked.clear();
    alone.connected_to(1);
    let puts = alone.asked.iter().filter(|(_, request)| matches!(request, Request::Put(_)));
    assert_eq!(puts.count(), 1, "what was written, and no directory");
}

// S-72
#[test]
fn a_write_whose_data_was_taken_in_ends_as_written_when_its_caller_is_asked_to_end() {
    let (mut alone, node, opened) = opened_in("window");
    alone.lost();
    let data = vec![7; 8 * 1024 * 1024];
    let id = alone.call(write(node, opened, 0, &data));
    assert_eq!(alone.answer(id), None, "too much is on its way");
    alone.asked_to_end(id);
    assert_eq!(alone.answer(id), Some(&Answer::Count(data.len() as u32)));
}

// S-72
#[test]
fn on_a_silent_line_a_caller_that_is_asked_to_end_waits_for_changes_alone() {
    let (mut alone, node, opened) = opened_in("window");
    let set = SetStat { mode: Some(0o600), ..SetStat::default() };
    let chmod = Call::Setattr { node, handle: None, set, kill_privileges: false };
    let look = alone.call(Call::Lookup { parent: ROOT, name: b"other" });
    let changed = alone.call(chmod);
    let synced = alone.call(Call::Fsync { node, handle: opened, data_only: false });
    let all = [look, changed, synced];
    let interrupted = Some(Answer::Fail(Errno::Interrupted));
    let answers = |alone: &mut Alone| {
        all.into_iter().for_each(|id| alone.asked_to_end(id));
        all.map(|id| alone.answer(id).cloned())
    };
    alone.tick(Duration::from_secs(1));
    assert_eq!(answers(&mut alone), [None, None, None], "the server may be about to reply");
    alone.tick(Duration::from_millis(1500));
    assert_eq!(answers(&mut alone), [interrupted.clone(), None, interrupted.clone()]);
    alone.lost();
    assert_eq!(answers(&mut alone)[1], interrupted);
}

// S-16
#[test]
fn an_error_is_not_taken_by_an_fsync_whose_caller_has_gone() {
    let (mut alone, node, opened) = opened_in("window");
    let written = alone.call(write(node, opened, 0, b"four"));
    assert_eq!(alone.answer(written), Some(&Answer::Count(4)));
    let writing = alone.next();
    let given_up = alone.call(Call::Fsync { node, handle: opened, data_only: false });
    let committing = alone.next();
    alone.tick(Duration::from_secs(3));
    alone.asked_to_end(given_up);
    assert_eq!(alone.answer(given_up), Some(&Answer::Fail(Errno::Interrupted)));
    alone.reply(committing, &Reply::Commit(Rcommit { boot: BootId(1) })).unwrap();
    alone.reply(writing, &Reply::Error(Rerror::from(Errno::NoSpace))).unwrap();
    alone.asked.clear();
    let again = alone.call(Call::Fsync { node, handle: opened, data_only: false });
    let tag = alone.next();
    alone.reply(tag, &Reply::Commit(Rcommit { boot: BootId(1) })).unwrap();
    assert_eq!(alone.answer(again), Some(&Answer::Fail(Errno::NoSpace)));
}

/// The fate of a change that cannot be done twice and whose reply was lost, by the next server's boot id, what that one says of the
/// ledger, and whether it has the session: sent again, or given up since its outcome is unknown.
fn is_sent_again(boot: u64, ledger: u64, resumed: bool) -> bool {
    let mut alone = Alone::new();
    alone.lost();
    alone.connected_to_ledger(1, 1);
    let call = alone.call(Call::Unlink { parent: ROOT, name: b"f" });
    alone.lost();
    alone.asked.clear();
    alone.connected_to_session(boot, ledger, resumed);
    let is_sent = alone.asked.iter().any(|(_, request)| matches!(request, Request::Remove(_)));
    assert_eq!(alone.answer(call), if is_sent { None } else { Some(&Answer::Fail(Errno::Io)) });
    is_sent
}

// S-77
#[test]
fn a_ledger_that_began_after_the_servers_machine_was_started_again_does_not_know_earlier_changes() {
    // A handshake that broke has begun it.
    for (ledger, resumed) in [(0, false), (0, true), (1, false), (1, true)] {
        assert!(!is_sent_again(2, ledger, resumed), "{ledger} {resumed}");
    }
    assert!(is_sent_again(2, 9, false), "it was closed in order");
    // The server's process alone was started again, or nothing was.
    for (ledger, resumed) in [(0, true), (1, false), (1, true), (9, false)] {
        assert!(is_sent_again(1, ledger, resumed), "{ledger} {resumed}");
    }
    assert!(!is_sent_again(1, 0, false));
}

#[test]
fn what_was_open_before_the_servers_machine_was_started_again_is_not_named_by_its_number() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(10);
    alone.lost();
    alone.connected_to_session(2, 0, true);
    alone.asked.clear();
    alone.call(Call::Release { node, handle, flock_owner: None });
    assert!(alone.asked.is_empty(), "another file may be open by that number: {:?}", alone.asked);
}

// S-56
#[test]
fn a_repeated_answer_to_a_creation_takes_no_name_from_what_replaced_it_meanwhile() {
    let mut alone = Alone::new();
    alone.lost();
    alone.connected_to_ledger(1, 1);
    let creation = alone.call(create(ROOT, b"f"));
    alone.tick(Duration::from_millis(10));
    let look = alone.call(Call::Lookup { parent: ROOT, name: b"f" });
    alone.lost();
    alone.asked.clear();
    // The server has carried the creation out; since then a program has replaced the file.
    alone.connected_to_session(1, 2, true);
    let asked: Vec<(Tag, Request)> = alone.asked.drain(..).collect();
    for is_creation in [false, true] {
        for (tag, request) in &asked {
            let reply = match request {
                Request::Get(_) if !is_creation => {
                    got(GotMode::default(), Some(stat(11, Kind::File, 3)), b"")
                }
                Request::Put(_) if is_creation => {
                    let made = Some(stat(10, Kind::File, 0));
                    Reply::Put(Rput { fd: NOFD, count: 0, offset: 0, before: 0, stat: made, dir: None })
                }
                _ => continue,
            };
            alone.reply(*tag, &reply).unwrap();
        }
    }
    assert!(matches!(alone.answer(creation), Some(Answer::Created(..))));
    let Some(Answer::Entry(found)) = alone.answer(look) else { panic!("nothing was found") };
    let node = found.node;
    let opening = alone.call(Call::Open { node, how: READ_WRITE });
    assert_eq!(alone.answer(opening), None, "it is asked for at the server by its name");
}
