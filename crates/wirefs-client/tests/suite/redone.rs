//! A server whose machine lost files that are made again under other ids.

use crate::alone::{Alone, got, listing, stat};
use crate::deeds::NEW;
use std::collections::BTreeMap;
use wirefs_client::call::{Answer, Call, Handle, ROOT};
use wirefs_client::{Note, Redone};
use wirefs_op::message::alone::Ralone;
use wirefs_op::message::get::GotMode;
use wirefs_op::message::ping::Rping;
use wirefs_op::message::version::BootId;
use wirefs_op::{Kind, NOTAG, Reply, Request, Tag};

/// A client that has listed a directory with the file `a`, and looked up nothing.
fn listed() -> Alone {
    opened().0
}

/// The same, with the open directory.
fn opened() -> (Alone, Handle) {
    let mut alone = Alone::in_mode("window");
    let opening = alone.call(Call::Opendir { node: ROOT });
    let tag = alone.next();
    let root = Some(stat(1, Kind::Directory, 0));
    let whole = GotMode::DATA.and(GotMode::LAST);
    alone.reply(tag, &got(whole, root, &listing(&[b"a"], 100))).unwrap();
    let Some(&Answer::Opened(handle, _)) = alone.answer(opening) else { panic!("not open") };
    (alone, handle)
}

/// The server's machine starts again, and file 100 is made again as this.
fn made_again(alone: &mut Alone, ino: u64) {
    alone.lost();
    alone.client.begin_redo();
    let made = BTreeMap::from([(stat(100, Kind::File, 3).id, stat(ino, Kind::File, 3))]);
    let redone = Redone { boot: BootId(2), next: 1, made, again: BTreeMap::new() };
    alone.client.redone(alone.now, redone);
    alone.outputs();
    alone.connected_to_ledger(2, 1);
    alone.asked.clear();
}

// S-108
#[test]
fn a_listing_tells_no_former_id_of_a_file_that_is_not_in_use() {
    let mut alone = listed();
    made_again(&mut alone, 200);
    let looking = alone.call(Call::Lookup { parent: ROOT, name: b"a" });
    assert_eq!(alone.answer(looking), None, "the server is asked");
    assert!(matches!(alone.asked.front(), Some((_, Request::Get(_)))), "{:?}", alone.asked);
}

#[test]
fn a_listing_is_believed_where_all_files_are_what_they_were() {
    let mut alone = listed();
    made_again(&mut alone, 100);
    let looking = alone.call(Call::Lookup { parent: ROOT, name: b"a" });
    assert!(alone.answer(looking).is_some());
}

// S-108
#[test]
fn a_reader_that_continues_gets_the_present_ids() {
    let (mut alone, handle) = opened();
    made_again(&mut alone, 200);
    let read =
        Call::Readdir { node: ROOT, handle, offset: 2, bytes_max: 1000, entry_bytes: 152, with_stats: true };
    let reading = alone.call(read);
    let Some(Answer::Listing(entries)) = alone.answer(reading) else { panic!("no listing") };
    let [a] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((&a.name[..], a.ino), (&b"a"[..], 200));
    assert_eq!(a.entry.as_ref().unwrap().stat.id.ino, 200);
}

/// A creation waits while the journal is replayed, up to number 7. Then there is a connection.
fn replayed_before_a_creation() -> Alone {
    let mut alone = Alone::journaled();
    alone.lost();
    alone.call(Call::Create { parent: ROOT, name: b"f", mode: 0o644, umask: 0, how: NEW });
    alone.client.begin_redo();
    let redone = Redone { boot: BootId(2), next: 7, made: BTreeMap::new(), again: BTreeMap::new() };
    alone.client.redone(alone.now, redone);
    alone.outputs();
    alone.notes.clear();
    alone.connected_with_leases(2, 7);
    alone
}

/// The creation is sent, and the journal has this note of it already.
fn is_sent_after(alone: &Alone, note: Note) {
    let sent = alone.asked.iter().position(|(_, request)| matches!(request, Request::Put(_))).unwrap();
    assert!(alone.notes.iter().any(|(noted, before)| *noted == note && *before <= sent), "{:?}", alone.notes);
}

/// Takes the ping that is sent before the changes, which wait.
fn take_first_ping(alone: &mut Alone) -> Tag {
    let (tag, request) = alone.asked.pop_front().unwrap();
    assert!(matches!(request, Request::Ping(_)), "{request:?}");
    assert!(alone.asked.is_empty(), "{:?}", alone.asked);
    assert!(alone.notes.is_empty(), "{:?}", alone.notes);
    tag
}

// S-100
#[test]
fn changes_after_a_replay_wait_for_exclusivity_and_count_as_exclusive() {
    let mut alone = replayed_before_a_creation();
    take_first_ping(&mut alone);
    alone.reply(NOTAG, &Reply::Alone(Ralone { serial: 1, alone: true })).unwrap();
    is_sent_after(&alone, Note::Alone(Some(7)));
}

// S-100
#[test]
fn changes_after_a_replay_are_sent_once_exclusivity_is_not_granted() {
    let mut alone = replayed_before_a_creation();
    let tag = take_first_ping(&mut alone);
    alone.reply(tag, &Reply::Ping(Rping {})).unwrap();
    is_sent_after(&alone, Note::Alone(None));
}

// S-100
#[test]
fn changes_after_a_replay_wait_again_when_the_connection_is_lost() {
    let mut alone = replayed_before_a_creation();
    take_first_ping(&mut alone);
    alone.lost();
    alone.notes.clear();
    alone.connected_with_leases(2, 7);
    take_first_ping(&mut alone);
}
