//! Recalls, frame by frame; and a server that recalls at will.

use crate::alone::{Alone, KernelStep, got, listing, stat};
use crate::deeds::{READ, create, getattr, readdir};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Entry, Handle, Invalidate, OpenHow, PageCache, ROOT, TreeNodeId};
use wirefs_op::limits::{RECALL_ITEMS_MAX, REQUESTS_MAX};
use wirefs_op::listing::ListingWriter;
use wirefs_op::message::get::{GotMode, Rget};
use wirefs_op::message::put::Rput;
use wirefs_virtual::Dice;

use wirefs_op::message::recall::{RecallItem, Rrecall};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{DirEntry, FileId, Kind, NOTAG, Reply, Request, SetStat, Stat, Tag};

const FOREVER: Duration = Duration::MAX;

fn leased(ino: u64, kind: Kind, size: u64) -> Stat {
    Stat { leased: true, ..stat(ino, kind, size) }
}

fn whole(ino: u64) -> RecallItem {
    RecallItem { id: stat(ino, Kind::File, 0).id, name: None }
}

fn named(ino: u64, name: &[u8]) -> RecallItem {
    RecallItem { name: Some(name.to_vec()), ..whole(ino) }
}

fn forget_name(parent: TreeNodeId, name: &[u8]) -> KernelStep {
    KernelStep::Forget(Invalidate::Entry { parent, name: name.to_vec(), is_directory: false })
}

fn forget_node(node: TreeNodeId) -> KernelStep {
    KernelStep::Forget(Invalidate::Node { node, offset: 0, length: 0 })
}

/// The result of a lookup in the root.
fn found(stat: Stat, data: &[u8]) -> Reply {
    got(GotMode::LAST.and(GotMode::DATA).and(GotMode::PLACE), Some(stat), data)
}

fn look(alone: &mut Alone, name: &[u8], reply: &Reply) -> Entry {
    let call = alone.call(Call::Lookup { parent: ROOT, name });
    let tag = alone.next();
    alone.reply(tag, reply).unwrap();
    match alone.answer(call) {
        Some(Answer::Entry(entry)) => *entry,
        other => panic!("{other:?}"),
    }
}

/// A leased file of five bytes that was looked up, with its contents, and used.
fn with_file() -> (Alone, TreeNodeId) {
    let mut alone = Alone::leased();
    let entry = look(&mut alone, b"f", &found(leased(9, Kind::File, 5), b"hello"));
    assert_eq!((entry.entry_ttl, entry.attr_ttl), (FOREVER, FOREVER));
    alone.call(getattr(entry.node));
    (alone, entry.node)
}

/// The same file, opened without a question.
fn with_open_file() -> (Alone, TreeNodeId, Handle) {
    let (mut alone, node) = with_file();
    let call = alone.call(Call::Open { node, how: READ });
    let Some(Answer::Opened(handle, _)) = alone.answer(call).cloned() else { panic!() };
    assert!(alone.asked.is_empty());
    (alone, node, handle)
}

/// The root's listing was read, with so many leased files in it.
fn with_listing(names: &[&[u8]]) -> Alone {
    let mut alone = Alone::leased();
    let call = alone.call(Call::Opendir { node: ROOT });
    let tag = alone.next();
    let mode = GotMode::LAST.and(GotMode::DATA);
    alone.reply(tag, &got(mode, Some(leased(1, Kind::Directory, 0)), &listing(names, 100))).unwrap();
    let Some(Answer::Opened(handle, _)) = alone.answer(call).cloned() else { panic!() };
    alone.call(readdir(ROOT, handle, 0));
    assert!(alone.asked.is_empty());
    alone
}

#[test]
fn a_recall_that_was_not_agreed_on_is_the_servers_fault() {
    let recall = Reply::Recall(Rrecall { serial: 1, items: vec![] });
    assert!(Alone::new().reply(NOTAG, &recall).is_err());
    assert!(Alone::leased().reply(NOTAG, &recall).is_ok());
    assert!(Alone::leased().reply(Tag(5), &recall).is_err());
}

// S-33
#[test]
fn invalidations_say_whether_a_name_is_a_directory_that_the_kernel_may_hold() {
    let mut alone = Alone::leased();
    let directory = found(leased(9, Kind::Directory, 0), b"");
    assert!(!look(&mut alone, b"d", &directory).is_held);
    let what = Invalidate::Entry { parent: ROOT, name: b"d".to_vec(), is_directory: true };
    assert!(alone.recall(7, vec![named(1, b"d")]).contains(&KernelStep::Forget(what.clone())));
    assert!(alone.recall(8, Vec::new()).contains(&KernelStep::Forget(what)));
    assert!(look(&mut alone, b"d", &directory).is_held);
}

#[test]
fn what_is_not_known_is_answered_at_once() {
    let (mut alone, _) = with_file();
    assert_eq!(alone.recall(7, vec![whole(1234), named(9999, b"x")]), [KernelStep::Recalled(7)]);
    assert_eq!(alone.recall(8, vec![named(1, b"x")]), [forget_node(ROOT), KernelStep::Recalled(8)]);
}

#[test]
fn the_kernel_forgets_before_the_recall_is_answered() {
    let (mut alone, node) = with_file();
    assert_eq!(alone.recall(3, vec![whole(9)]), [forget_node(node), KernelStep::Recalled(3)]);
    let told = alone.recall(4, vec![named(1, b"f")]);
    assert_eq!(
        told,
        [forget_name(ROOT, b"f"), forget_node(ROOT), forget_node(node), KernelStep::Recalled(4)]
    );
    let call = alone.call(getattr(node));
    assert_eq!((alone.answer(call), alone.asked.len()), (None, 1));
}

#[test]
fn a_file_that_others_change_is_read_past_the_kernels_pages_for_a_while() {
    let (mut alone, node, _) = with_open_file();
    alone.recall(1, vec![whole(9)]);
    for (span, is_avoided) in [(0, true), (6, false)] {
        alone.now = alone.now + Duration::from_secs(span);
        // An fd of the open file.
        alone.asked.clear();
        let call = alone.call(Call::Open { node, how: READ });
        let tag = alone.next();
        alone.reply(tag, &found(leased(9, Kind::File, 5), b"hello")).unwrap();
        let Some(Answer::Opened(_, pages)) = alone.answer(call) else { panic!("not opened") };
        assert_eq!(*pages == PageCache::Avoid, is_avoided, "after {span} s");
        alone.recall(2, vec![]);
    }
}

/// No pages are left of data that bypassed them, or that was in transit during an invalidation.
#[test]
fn forgotten_file_is_not_invalidated_again() {
    let (mut alone, node, handle) = with_open_file();
    alone.call(Call::Read { node, handle, offset: 0, count: 5 });
    alone.recall(1, vec![whole(9)]);
    let direct = OpenHow { direct: true, ..READ };
    alone.asked.clear();
    let open = alone.call(Call::Open { node, how: direct });
    let tag = alone.next();
    alone.reply(tag, &found(leased(9, Kind::File, 5), b"")).unwrap();
    let Some(Answer::Opened(past, PageCache::QuietBypass)) = alone.answer(open).cloned() else { panic!() };
    alone.asked.clear();
    let read = alone.call(Call::Read { node, handle: past, offset: 0, count: 5 });
    let tag = alone.next();
    alone.kernel_steps.clear();
    let changed = Stat { version: 77, ..leased(9, Kind::File, 5) };
    alone.reply(tag, &got(GotMode::LAST.and(GotMode::DATA), Some(changed), b"other")).unwrap();
    assert!(alone.answer(read).is_some());
    alone.call(getattr(node));
    while let Some((tag, _)) = alone.asked.pop_front() {
        alone.reply(tag, &got(GotMode::LAST, Some(changed), b"")).unwrap();
    }
    assert_eq!(alone.kernel_steps, []);
}

#[test]
fn names_of_a_node_that_the_kernel_may_be_learning_are_invalidated_first() {
    let mut alone = Alone::leased();
    let entry = look(&mut alone, b"f", &found(leased(9, Kind::File, 5), b"hello"));
    let told = alone.recall(3, vec![whole(9)]);
    assert_eq!(told, [forget_name(ROOT, b"f"), forget_node(entry.node), KernelStep::Recalled(3)]);
}

#[test]
fn contents_are_forgotten_with_the_file_and_asked_for_again() {
    let (mut alone, node, handle) = with_open_file();
    let read = Call::Read { node, handle, offset: 0, count: 100 };
    let call = alone.call(read);
    assert_eq!(alone.answer(call), Some(&Answer::Data("hello".into())));
    alone.recall(3, vec![whole(9)]);
    assert_eq!(alone.client.snapshot().cached_bytes, 0);
}

/// A leased file is looked up, and this is recalled while the reply is on its way: for how long the kernel may believe its name and
/// attributes.
fn overtaken_by(items: Vec<RecallItem>) -> (Duration, Duration) {
    let mut alone = Alone::leased();
    let call = alone.call(Call::Lookup { parent: ROOT, name: b"f" });
    let tag = alone.next();
    alone.recall(1, items);
    alone.reply(tag, &found(leased(9, Kind::File, 5), b"hello")).unwrap();
    let Some(Answer::Entry(entry)) = alone.answer(call) else { panic!() };
    (entry.entry_ttl, entry.attr_ttl)
}

#[test]
fn what_was_asked_for_before_a_recall_is_not_leased_by_its_reply() {
    assert_eq!(overtaken_by(vec![whole(8), named(1, b"g")]), (FOREVER, FOREVER));
    assert_eq!(overtaken_by(vec![whole(9)]), (FOREVER, Duration::ZERO));
    // Who watches a directory hears of what is in it by its names alone.
    assert_eq!(overtaken_by(vec![named(1, b"f")]), (Duration::ZERO, Duration::ZERO));
    assert_eq!(overtaken_by(vec![whole(1)]), (Duration::ZERO, Duration::ZERO));
    assert_eq!(overtaken_by(vec![]), (Duration::ZERO, Duration::ZERO));
}

#[test]
fn the_answer_to_a_change_of_attributes_lasts_for_no_time_and_comes_after_what_it_makes_forgotten() {
    let (mut alone, node) = with_file();
    let set = SetStat { mode: Some(0o600), ..SetStat::default() };
    let call = alone.call(Call::Setattr { node, handle: None, set, kill_privileges: false });
    let tag = alone.next();
    alone.kernel_steps.clear();
    let now = Stat { version: 9, ..leased(9, Kind::File, 5) };
    // Version 8 is somebody else's.
    let put = Rput { fd: NOFD, count: 0, offset: 0, before: 8, stat: Some(now), dir: None };
    alone.reply(tag, &Reply::Put(put)).unwrap();
    assert_eq!(alone.kernel_steps, [forget_node(node)]);
    let Some(Answer::Attr(_, ttl)) = alone.answer(call) else { panic!("no attributes") };
    assert_eq!(*ttl, Duration::ZERO, "a recall may come before the kernel takes it in");
}

#[test]
fn a_recalled_name_takes_along_the_file_that_it_means() {
    let (mut alone, node) = with_file();
    let told = alone.recall(3, vec![named(1, b"f")]);
    assert_eq!(
        told,
        [forget_name(ROOT, b"f"), forget_node(ROOT), forget_node(node), KernelStep::Recalled(3)]
    );
    assert_eq!(alone.client.snapshot().cached_bytes, 0);
    let call = alone.call(getattr(node));
    assert_eq!(alone.answer(call), None, "what was changed outside is asked for");
}

#[test]
fn what_a_listing_says_of_a_name_that_is_taken_back_while_it_is_read_is_not_leased() {
    let mut alone = Alone::leased();
    let call = alone.call(Call::Opendir { node: ROOT });
    let tag = alone.next();
    let mode = GotMode::LAST.and(GotMode::DATA);
    let mut writer = ListingWriter::new(1000);
    for (name, ino) in [(b"f", 100), (b"g", 101)] {
        assert!(writer.push(&DirEntry { name: name.to_vec(), next: ino, stat: leased(ino, Kind::File, 3) }));
    }
    alone.reply(tag, &got(mode, Some(leased(1, Kind::Directory, 0)), &writer.finish())).unwrap();
    let Some(Answer::Opened(handle, _)) = alone.answer(call).cloned() else { panic!() };
    alone.recall(1, vec![named(1, b"f")]);
    let call = alone.call(readdir(ROOT, handle, 0));
    let Some(Answer::Listing(listed)) = alone.answer(call) else { panic!() };
    let told: Vec<_> = listed.iter().map(|entry| entry.entry.map(|entry| entry.attr_ttl)).collect();
    assert_eq!(told, [None, None, None, Some(FOREVER)], "of f, nothing is said that would last");
}

#[test]
fn a_listing_that_a_recall_overtook_is_not_leased() {
    let mut alone = Alone::leased();
    let call = alone.call(Call::Opendir { node: ROOT });
    let tag = alone.next();
    let names: [&[u8]; 2] = [b"a", b"b"];
    let root = Some(leased(1, Kind::Directory, 0));
    alone.reply(tag, &got(GotMode::DATA.and(GotMode::MORE), root, &listing(&names, 100))).unwrap();
    assert!(matches!(alone.answer(call), Some(Answer::Opened(..))));
    alone.recall(1, vec![named(1, b"c")]);
    alone.reply(tag, &got(GotMode::DATA.and(GotMode::LAST), None, b"")).unwrap();
    let looking = alone.call(Call::Lookup { parent: ROOT, name: b"c" });
    assert_eq!(alone.answer(looking), None, "it may be there by now");
}

#[test]
fn a_recall_of_everything_leaves_nothing_believed_and_contents_to_compare() {
    let (mut alone, node) = with_file();
    let told = alone.recall(5, vec![]);
    let attributes = |node| KernelStep::Forget(Invalidate::Node { node, offset: -1, length: 0 });
    assert_eq!(told, [forget_name(ROOT, b"f"), attributes(ROOT), attributes(node), KernelStep::Recalled(5)]);
    let held = alone.client.snapshot();
    assert_eq!((held.leases.map(|leases| leases.objects), held.cached_bytes), (Some(0), 5));
    let call = alone.call(Call::Lookup { parent: ROOT, name: b"f" });
    assert_eq!(alone.answer(call), None);
}

#[test]
fn an_absent_name_is_forgotten_when_it_comes_to_be() {
    let mut alone = with_listing(&[b"a"]);
    let call = alone.call(Call::Lookup { parent: ROOT, name: b"nothing" });
    assert_eq!(alone.answer(call), Some(&Answer::NoEntry(FOREVER)));
    let told = alone.recall(1, vec![named(1, b"nothing"), named(1, b"never looked for")]);
    assert_eq!(told, [forget_name(ROOT, b"nothing"), forget_node(ROOT), KernelStep::Recalled(1)]);
    let call = alone.call(Call::Lookup { parent: ROOT, name: b"other" });
    assert_eq!(alone.answer(call), Some(&Answer::NoEntry(FOREVER)));
    assert_eq!(alone.recall(2, vec![whole(1)]).first(), Some(&forget_name(ROOT, b"other")));
}

#[test]
fn many_absent_names_are_answered_without_a_lifetime() {
    let mut alone = with_listing(&[b"a"]);
    let mut told = 0;
    for index in 0..10_000_u32 {
        let name = format!("absent{index}");
        let call = alone.call(Call::Lookup { parent: ROOT, name: name.as_bytes() });
        match alone.answer(call) {
            Some(Answer::NoEntry(ttl)) => told += usize::from(!ttl.is_zero()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, 4096);
    assert_eq!(alone.recall(1, vec![whole(1)]).len(), 4096 + 2);
    assert!(alone.asked.is_empty());
}

#[test]
fn a_recall_waits_for_the_fd_of_an_open_file_and_no_longer() {
    let (mut alone, node, handle) = with_open_file();
    assert_eq!(alone.recall(1, vec![whole(9)]), [forget_node(node)]);
    let (tag, request) = alone.asked.pop_front().unwrap();
    assert!(matches!(request, Request::Get(_)));
    let mut reply = got(GotMode::LAST, None, b"");
    if let Reply::Get(got) = &mut reply {
        got.fd = Fd(3);
    }
    alone.reply(tag, &reply).unwrap();
    assert_eq!(alone.kernel_steps, [KernelStep::Recalled(1)]);
    assert_eq!(alone.recall(2, vec![whole(9)]), [forget_node(node), KernelStep::Recalled(2)]);
    alone.call(Call::Release { node, handle, flock_owner: None });
    assert!(matches!(alone.asked.pop_front(), Some((_, Request::Get(get))) if get.target.fd == Fd(3)));
}

// S-87
#[test]
fn a_recall_does_not_wait_for_an_fd_that_is_asked_for_behind_all_that_waits() {
    let (mut alone, node, _) = with_open_file();
    let names: Vec<String> = (0..=REQUESTS_MAX).map(|nth| format!("n{nth}")).collect();
    for name in &names {
        alone.call(Call::Lookup { parent: ROOT, name: name.as_bytes() });
    }
    assert_eq!(alone.asked.len(), REQUESTS_MAX - 1, "no tag is free, but that of a ping");
    assert_eq!(alone.recall(1, vec![whole(9)]), [forget_node(node), KernelStep::Recalled(1)]);
}

#[test]
fn a_recall_is_answered_although_the_fd_cannot_be_had() {
    let (mut alone, _, _) = with_open_file();
    alone.recall(1, vec![whole(9)]);
    let tag = alone.next();
    alone.reply(tag, &Reply::Error(wirefs_op::Errno::Stale.into())).unwrap();
    assert_eq!(alone.kernel_steps, [KernelStep::Recalled(1)]);
}

#[test]
fn a_recall_whose_connection_broke_is_not_answered() {
    let (mut alone, _, _) = with_open_file();
    alone.recall(1, vec![whole(9)]);
    alone.lost();
    assert_eq!(alone.kernel_steps, []);
    alone.tick(Duration::from_secs(60));
    assert!(!alone.kernel_steps.iter().any(|told| matches!(told, KernelStep::Recalled(_))));
}

#[test]
fn a_server_that_withholds_an_fd_and_recalls_without_end_is_given_few_requests_and_little_memory() {
    let (mut alone, _, _) = with_open_file();
    let mut answered = 0;
    for serial in 0..20_000 {
        let told = alone.recall(serial, vec![whole(9)]);
        answered += told.iter().filter(|told| matches!(told, KernelStep::Recalled(_))).count();
    }
    assert_eq!(alone.asked.len(), 1);
    assert_eq!(answered, 20_000 - 4096);
}

#[test]
fn recalls_without_end_of_ids_that_nobody_knows_leave_what_is_known() {
    let (mut alone, node) = with_file();
    for serial in 0..1000 {
        let items: Vec<RecallItem> =
            (0..RECALL_ITEMS_MAX as u64)
                .map(|at| {
                    if at % 2 == 0 { whole(1000 + serial * 300 + at) } else { named(2000 + at, &[b'n'; 200]) }
                })
                .collect();
        assert_eq!(alone.recall(serial, items), [KernelStep::Recalled(serial)]);
    }
    let call = alone.call(getattr(node));
    assert!(matches!(alone.answer(call), Some(Answer::Attr(_, FOREVER))));
    assert_eq!(alone.client.snapshot().nodes, 2);
}

#[test]
fn names_without_end_recalled_in_a_known_directory_end_in_asking_for_it_again() {
    let mut alone = with_listing(&[b"a", b"b"]);
    for serial in 0..10_000_u64 {
        let told = alone.recall(serial, vec![named(1, format!("n{serial}").as_bytes())]);
        assert_eq!(told, [forget_node(ROOT), KernelStep::Recalled(serial)]);
    }
    let call = alone.call(Call::Lookup { parent: ROOT, name: b"a" });
    assert_eq!((alone.answer(call), alone.asked.len()), (None, 1));
}

#[test]
fn end_of_a_term_invalidates_each_node_and_name_once() {
    let names: Vec<Vec<u8>> = (0..700).map(|index| format!("{index:04}").into_bytes()).collect();
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let mut alone = Alone::leased();
    let call = alone.call(Call::Opendir { node: ROOT });
    let tag = alone.next();
    let mut writer = wirefs_op::listing::ListingWriter::new(wirefs_op::limits::DATA_BYTES_MAX);
    for (index, name) in names.iter().enumerate() {
        let stat = leased(100 + index as u64, Kind::File, 3);
        assert!(writer.push(&wirefs_op::DirEntry { name: name.to_vec(), next: index as u64 + 1, stat }));
    }
    let mode = GotMode::LAST.and(GotMode::DATA);
    alone.reply(tag, &got(mode, Some(leased(1, Kind::Directory, 0)), &writer.finish())).unwrap();
    let Some(Answer::Opened(handle, _)) = alone.answer(call).cloned() else { panic!() };
    for offset in (0..702).step_by(100) {
        alone.call(readdir(ROOT, handle, offset));
    }
    alone.tick(Duration::from_secs(14));
    assert_eq!(alone.kernel_steps, []);
    alone.tick(Duration::from_secs(2));
    let (entries, nodes): (Vec<_>, Vec<_>) = alone
        .kernel_steps
        .iter()
        .partition(|told| matches!(told, KernelStep::Forget(Invalidate::Entry { .. })));
    assert_eq!((entries.len(), nodes.len()), (700, 701));
    assert!(matches!(alone.kernel_steps[0], KernelStep::Forget(Invalidate::Entry { .. })), "names first");
    alone.kernel_steps.clear();
    alone.tick(Duration::from_secs(20));
    assert_eq!(alone.kernel_steps, [], "once is enough");
}

#[test]
fn random_leases_and_recalls_never_panic_and_answer_each_recall_once() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut alone = Alone::leased();
        let (node, handle) = alone.open(5);
        let mut serial = 0;
        for _ in 0..80 {
            match dice.below(10) {
                0 => alone.call(Call::Lookup { parent: ROOT, name: b"x" }),
                1 => alone.call(create(ROOT, b"y")),
                2 => alone.call(Call::Opendir { node: ROOT }),
                3 => alone.call(Call::Read { node, handle, offset: dice.below(200_000), count: 70_000 }),
                4 => alone.call(getattr(node)),
                5 => alone.call(Call::Unlink { parent: ROOT, name: b"f" }),
                6 => alone.call(Call::Open { node, how: READ }),
                _ => {
                    serial += 1;
                    let items = (0..dice.below(4)).map(|_| random_item(&mut dice)).collect();
                    let told = alone.recall(serial, items);
                    let answers = told.iter().filter(|told| matches!(told, KernelStep::Recalled(_))).count();
                    assert!(answers <= 1, "{told:?}");
                    continue;
                }
            };
            let Some((tag, request)) = alone.asked.front().cloned() else { continue };
            let reply = match request {
                Request::Get(_) => random_got(&mut dice),
                _ => Reply::Error(wirefs_op::Errno::Stale.into()),
            };
            let last = !matches!(&reply, Reply::Get(got) if !got.mode.has(GotMode::LAST));
            if last || dice.chance(1, 4) {
                alone.asked.pop_front();
            }
            if alone.reply(tag, &reply).is_err() {
                break;
            }
            alone.now.0 += dice.below(2_000_000_000);
        }
    }
}

fn random_item(dice: &mut Dice) -> RecallItem {
    let id = FileId { ino: dice.below(12), ..stat(0, Kind::File, 0).id };
    let name = dice.one_of(&[b"a".as_slice(), b"x", b"f"]);
    RecallItem { id, name: dice.chance(1, 2).then(|| name.to_vec()) }
}

fn random_got(dice: &mut Dice) -> Reply {
    let kind = if dice.chance(1, 3) { Kind::Directory } else { Kind::File };
    let mut about = leased(dice.below(12), kind, dice.one_of(&[0, 5, 200_000]));
    (about.version, about.leased) = (dice.below(4), dice.chance(2, 3));
    let mut mode = GotMode(dice.below(256) as u16 & 0b1110_0101);
    if mode.has(GotMode::ABSENT) {
        mode = GotMode(mode.0 & 0b1110_0000).and(GotMode::LAST);
        return Reply::Get(Rget { fd: NOFD, mode, stat: None, data: Data::default() });
    }
    let data = if dice.chance(1, 2) { listing(&[b"a", b"x", b"a"], 3) } else { vec![3; 5].into() };
    let fd = if dice.chance(1, 2) { Fd(3) } else { NOFD };
    Reply::Get(Rget { fd, mode, stat: dice.chance(3, 4).then_some(about), data: Data(data) })
}
