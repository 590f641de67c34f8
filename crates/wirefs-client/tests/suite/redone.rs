//! A server whose machine lost files that are made again under other ids.

use crate::alone::{Alone, got, listing, stat};
use std::collections::BTreeMap;
use wirefs_client::Redone;
use wirefs_client::call::{Call, ROOT};
use wirefs_op::message::get::GotMode;
use wirefs_op::message::version::BootId;
use wirefs_op::{Kind, Request};

/// A client that has listed a directory with the file `a`, and looked up nothing.
fn listed() -> Alone {
    let mut alone = Alone::in_mode("window");
    alone.call(Call::Opendir { node: ROOT });
    let tag = alone.next();
    let root = Some(stat(1, Kind::Directory, 0));
    let whole = GotMode::DATA.and(GotMode::LAST);
    alone.reply(tag, &got(whole, root, &listing(&[b"a"], 100))).unwrap();
    alone
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
