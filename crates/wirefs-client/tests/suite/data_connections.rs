//! The use of data connections, frame by frame.

use crate::alone::{Alone, got, stat};
use std::time::Duration;
use wirefs_client::DataKey;
use wirefs_client::call::{Answer, Call, Handle, TreeNodeId};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GotMode, Tget};
use wirefs_op::message::limited::Rlimited;
use wirefs_op::message::ping::Rping;
use wirefs_op::message::recall::{RecallItem, Rrecall};
use wirefs_op::{Kind, NOTAG, Reply, Request, Stat, Tag};

const SIZE: u64 = 4 << 20;
const LIMITED: Reply = Reply::Limited(Rlimited {});

/// A large file that is open, and the first block of it read; as many connections as there may be, and what that asked for.
fn with_connections() -> (Alone, TreeNodeId, Handle, Vec<(Tag, Tget)>) {
    let mut alone = Alone::leased();
    let (node, handle) = alone.open(SIZE);
    limited(&mut alone, 1);
    limited(&mut alone, 2);
    alone.call(Call::Read { node, handle, offset: 0, count: DATA_BYTES_MAX as u32 });
    let asked = reads(&mut alone);
    (alone, node, handle, asked)
}

/// The server says that it is limited: so many are made.
fn limited(alone: &mut Alone, made: usize) {
    alone.reply(NOTAG, &LIMITED).unwrap();
    let opens = std::mem::take(&mut alone.opens);
    assert_eq!(opens.len(), made);
    alone.reply(NOTAG, &LIMITED).unwrap();
    assert!(alone.opens.is_empty(), "those are made already");
    assert!(opens.into_iter().all(|key| alone.client.data_opened(alone.now, key)));
    alone.outputs();
}

fn reads(alone: &mut Alone) -> Vec<(Tag, Tget)> {
    let read = |(tag, request)| match request {
        Request::Get(get) => (tag, get),
        other => panic!("{other:?}"),
    };
    alone.asked.drain(..).map(read).collect()
}

fn leased(version: u64) -> Stat {
    Stat { version, leased: true, ..stat(9, Kind::File, SIZE) }
}

/// The replies to a read: pieces of the file, which holds this byte.
fn replies(get: &Tget, stat: Stat, byte: u8) -> Vec<Reply> {
    let pieces = (get.count as usize).div_ceil(DATA_BYTES_MAX);
    let piece = |nth: usize| {
        let left = get.count as usize - nth * DATA_BYTES_MAX;
        let mode = GotMode::DATA.and(GotMode::MORE).and_if(nth + 1 == pieces, GotMode::LAST);
        got(mode, (nth == 0).then_some(stat), &vec![byte; left.min(DATA_BYTES_MAX)])
    };
    (0..pieces).map(piece).collect()
}

fn answer(alone: &mut Alone, (tag, get): &(Tag, Tget), stat: Stat, byte: u8) {
    for reply in replies(get, stat, byte) {
        match alone.over.get(tag).copied() {
            Some(key) => alone.reply_over(key, *tag, &reply).unwrap(),
            None => alone.reply(*tag, &reply).unwrap(),
        }
    }
}

/// Frames over a data connection.
fn over_data(alone: &Alone, asked: &[(Tag, Tget)]) -> Vec<(Tag, Tget)> {
    asked.iter().filter(|(tag, _)| alone.over.contains_key(tag)).cloned().collect()
}

/// Answers whatever is asked over these connections, until nothing is; hands back what was asked over others.
fn answer_all(
    alone: &mut Alone,
    asked: Vec<(Tag, Tget)>,
    takes: impl Fn(Option<DataKey>) -> bool,
) -> Vec<(Tag, Tget)> {
    let (mut asked, mut others) = (asked, Vec::new());
    while let Some(next) = asked.pop() {
        match takes(alone.over.get(&next.0).copied()) {
            true => answer(alone, &next, leased(5), 7),
            false => others.push(next),
        }
        asked.extend(reads(alone));
    }
    others
}

#[test]
fn connections_are_doubled_when_the_server_is_limited_and_reads_are_spread_over_them() {
    let (mut alone, node, handle, asked) = with_connections();
    assert_eq!(alone.client.snapshot().data_connections, 3);
    limited(&mut alone, 0);
    answer_all(&mut alone, asked, |_| true);
    // Far from each other, so that each is asked for by itself.
    let calls: Vec<_> =
        (1..4).map(|at| Call::Read { node, handle, offset: (at << 20) - 8192, count: 4096 }).collect();
    let calls: Vec<_> = calls.into_iter().map(|call| alone.call(call)).collect();
    let asked = reads(&mut alone);
    let used: std::collections::BTreeSet<_> = asked.iter().map(|(tag, _)| alone.over.get(tag)).collect();
    assert_eq!(used.len(), 4, "{used:?}");
    answer_all(&mut alone, asked, |_| true);
    for call in calls {
        let Some(Answer::Data(data)) = alone.answer(call) else { panic!("it is never answered") };
        assert!(data.len() == 4096 && data.iter().all(|byte| *byte == 7));
    }
    assert!(alone.closes.is_empty());
}

/// S-122
#[test]
fn large_reads_open_a_connection_for_each_path_and_small_ones_open_none() {
    let mut alone = Alone::leased();
    let (node, handle) = alone.open(4 * SIZE);
    alone.client.set_paths(alone.now, 2);
    alone.call(Call::Read { node, handle, offset: 1 << 20, count: 4096 });
    assert!(alone.opens.is_empty());
    for block in 0..8 {
        let offset = block * DATA_BYTES_MAX as u64;
        alone.call(Call::Read { node, handle, offset, count: DATA_BYTES_MAX as u32 });
    }
    let opens = std::mem::take(&mut alone.opens);
    assert_eq!(opens.len(), 1);
    assert!(alone.client.data_opened(alone.now, opens[0]));
    alone.call(Call::Read { node, handle, offset: 2 * SIZE, count: 4096 });
    let asked = reads(&mut alone);
    assert!(!over_data(&alone, &asked).is_empty(), "{asked:?}");
    assert!(alone.opens.is_empty(), "there are no more ways");
    // As many as there are ways, and no more than the server takes.
    alone.client.set_paths(alone.now, 9);
    alone.call(Call::Read { node, handle, offset: 3 * SIZE, count: 4096 });
    assert_eq!(alone.opens.len(), 2);
}

/// How many of the next requests go over the first connection and how many over a second one that brings half as much in a second,
/// where there are so many ways.
fn asked_over_two(ways: usize) -> (usize, usize) {
    let mut alone = Alone::leased();
    let (node, handle) = alone.open(SIZE);
    limited(&mut alone, 1);
    alone.client.set_paths(alone.now, ways);
    // Far from each other, so that each is asked for by itself.
    let read = |at: u64| Call::Read { node, handle, offset: at * 200 * 1024, count: 4096 };
    for at in [7, 3, 5, 1] {
        alone.call(read(at));
    }
    let mut asked = reads(&mut alone);
    for over_second in [false, true] {
        alone.tick(Duration::from_millis(100));
        asked = answer_all(&mut alone, asked, |over| over.is_some() == over_second);
    }
    answer_all(&mut alone, asked, |_| true);
    for at in [17, 9, 15, 11, 18, 10, 16, 13] {
        alone.call(read(at));
    }
    let asked = reads(&mut alone);
    let over_second = over_data(&alone, &asked).len();
    (asked.len() - over_second, over_second)
}

#[test]
fn connections_share_one_path_equally_and_several_paths_by_their_rate() {
    let (first, second) = asked_over_two(1);
    assert!(first.abs_diff(second) <= 1, "{first} and {second}");
    assert_eq!((first, second), asked_over_two(0), "who was told of no way takes one");
    let (first, second) = asked_over_two(2);
    assert!(first > second + 1, "{first} and {second}");
}

/// S-122
#[test]
fn limit_of_one_connection_holds_for_several_paths() {
    let mut alone = Alone::leased();
    alone.connected_without_data();
    let (node, handle) = alone.open(SIZE);
    alone.client.set_paths(alone.now, 2);
    for at in 0..4 {
        alone.call(Call::Read { node, handle, offset: at << 20, count: DATA_BYTES_MAX as u32 });
    }
    assert!(alone.opens.is_empty());
}

#[test]
fn server_that_agreed_on_none_may_not_say_that_it_is_limited() {
    let mut alone = Alone::leased();
    alone.connected_without_data();
    assert!(alone.reply(NOTAG, &LIMITED).is_err());
    assert!(Alone::leased().reply(Tag(3), &LIMITED).is_err());
}

#[test]
fn what_does_not_belong_to_a_data_connection_is_the_servers_fault() {
    let recall = Reply::Recall(Rrecall { serial: 1, items: vec![] });
    for (tag, reply) in [(NOTAG, LIMITED), (NOTAG, recall)] {
        let (mut alone, .., asked) = with_connections();
        let key = alone.over[&over_data(&alone, &asked)[0].0];
        assert!(alone.reply_over(key, tag, &reply).is_err());
    }
    let (mut alone, .., asked) = with_connections();
    let over = over_data(&alone, &asked)[0].clone();
    let first = asked.iter().find(|(tag, _)| !alone.over.contains_key(tag)).unwrap().clone();
    let key = alone.over[&over.0];
    assert!(alone.reply(over.0, &replies(&over.1, leased(5), 7)[0]).is_err(), "it was asked over another");
    assert!(alone.reply_over(key, first.0, &replies(&first.1, leased(5), 7)[0]).is_err());
}

/// S-82
#[test]
fn data_connection_brings_bytes_and_never_news() {
    let (mut alone, .., asked) = with_connections();
    let over = over_data(&alone, &asked)[0].clone();
    // Somebody has changed it since, of which the first connection has not told.
    answer(&mut alone, &over, leased(6), 8);
    let again = reads(&mut alone);
    let [(tag, get)] = again.as_slice() else { panic!("{again:?}") };
    assert_eq!((get.offset, get.count), (over.1.offset, over.1.count));
    assert!(!alone.over.contains_key(tag), "it is asked over the first connection");
}

/// S-82
#[test]
fn bytes_that_a_recall_has_overtaken_are_not_kept() {
    let (mut alone, node, handle, asked) = with_connections();
    let over = over_data(&alone, &asked);
    // What one of them said first is still so; the rest comes behind the recall.
    let (tag, get) = over[0].clone();
    let pieces = replies(&get, leased(5), 7);
    let key = alone.over[&tag];
    alone.reply_over(key, tag, &pieces[0]).unwrap();
    alone.recall(1, vec![RecallItem { id: leased(5).id, name: None }]);
    for piece in &pieces[1..] {
        alone.reply_over(key, tag, piece).unwrap();
    }
    for late in asked.iter().filter(|(other, _)| *other != tag) {
        answer(&mut alone, late, leased(5), 7);
    }
    // The reader from before is answered by what it had asked for; a new one asks anew.
    alone.asked.clear();
    let call = alone.call(Call::Read { node, handle, offset: get.offset, count: 4096 });
    assert_eq!(alone.answer(call), None);
    let anew = reads(&mut alone);
    assert!(anew.iter().any(|(_, anew)| anew.offset <= get.offset), "{anew:?}");
    let mut anew = std::collections::VecDeque::from(anew);
    while let Some(next) = anew.pop_front() {
        answer(&mut alone, &next, leased(6), 8);
        anew.extend(reads(&mut alone));
    }
    let Some(Answer::Data(data)) = alone.answer(call) else { panic!("it is never answered") };
    assert!(data.iter().all(|byte| *byte == 8), "stale bytes");
}

/// S-83
#[test]
fn what_was_asked_over_a_lost_data_connection_is_asked_again() {
    let (mut alone, .., asked) = with_connections();
    let over = over_data(&alone, &asked)[0].clone();
    let key = alone.over[&over.0];
    let pieces = replies(&over.1, leased(5), 7);
    let is_begun = pieces.len() > 1;
    if is_begun {
        alone.reply_over(key, over.0, &pieces[0]).unwrap();
    }
    alone.client.data_lost(alone.now, key);
    alone.outputs();
    let again = reads(&mut alone);
    assert!(
        again.iter().any(|(_, get)| (get.offset, get.count) == (over.1.offset, over.1.count)),
        "{again:?}"
    );
    assert!(again.iter().all(|(tag, _)| alone.over.get(tag) != Some(&key)));
    assert_eq!(alone.client.snapshot().data_connections, 2);
    // What comes over it now is nobody's, and no other is made at once.
    alone.reply_over(key, over.0, &pieces[0]).unwrap();
    limited(&mut alone, 0);
    let asked = asked.into_iter().filter(|(tag, _)| *tag != over.0).chain(again).collect();
    answer_all(&mut alone, asked, |_| true);
    pass(&mut alone, 29);
    limited(&mut alone, 0);
    pass(&mut alone, 2);
    alone.reply(NOTAG, &LIMITED).unwrap();
    assert!(!alone.opens.is_empty());
}

/// S-83
#[test]
fn silent_data_connection_is_given_up_and_the_first_one_is_not() {
    let (mut alone, .., asked) = with_connections();
    let silent = answer_all(&mut alone, asked, |over| over.is_none());
    assert!(!silent.is_empty());
    pass(&mut alone, 7);
    assert!(alone.closes.is_empty());
    alone.tick(Duration::from_secs(1));
    assert!(!alone.closes.is_empty() && alone.hang_ups == 0);
    let again = alone.asked.iter().filter(|(tag, request)| {
        matches!(request, Request::Get(get)
        if silent.iter().any(|(_, lost)| lost.offset == get.offset))
            && !alone.over.contains_key(tag)
    });
    assert!(again.count() >= silent.len(), "{:?}", alone.asked);
}

/// S-83
#[test]
fn what_the_machine_slept_through_is_no_silence_of_a_data_connection() {
    let (mut alone, .., asked) = with_connections();
    let silent = answer_all(&mut alone, asked, |over| over.is_none());
    assert!(!silent.is_empty());
    pass(&mut alone, 3);
    alone.sleep(Duration::from_secs(10));
    assert!(alone.closes.is_empty(), "it was up for three seconds of them");
    pass(&mut alone, 4);
    assert!(alone.closes.is_empty(), "it has been silent for seven seconds");
    alone.tick(Duration::from_secs(1));
    assert!(!alone.closes.is_empty() && alone.hang_ups == 0);
}

/// S-83
#[test]
fn idle_data_connections_are_closed() {
    let (mut alone, .., asked) = with_connections();
    answer_all(&mut alone, asked, |_| true);
    pass(&mut alone, 29);
    assert!(alone.closes.is_empty());
    pass(&mut alone, 3);
    assert_eq!((alone.closes.len(), alone.client.snapshot().data_connections), (3, 0));
    limited(&mut alone, 1);
}

/// Lets so many seconds pass, and answers signs of life.
fn pass(alone: &mut Alone, seconds: u32) {
    for _ in 0..seconds {
        alone.tick(Duration::from_secs(1));
        for (tag, request) in std::mem::take(&mut alone.asked) {
            assert!(matches!(request, Request::Ping(_)), "{request:?}");
            assert!(!alone.over.contains_key(&tag));
            alone.reply(tag, &Reply::Ping(Rping {})).unwrap();
        }
    }
}

/// S-82
#[test]
fn leases_are_not_believed_by_what_comes_over_data_connections() {
    let (mut alone, .., asked) = with_connections();
    let (tag, get) = over_data(&alone, &asked)[0].clone();
    let key = alone.over[&tag];
    let pieces = replies(&get, leased(5), 7);
    alone.reply_over(key, tag, &pieces[0]).unwrap();
    let are_valid = |alone: &Alone| alone.client.snapshot().leases.unwrap().are_valid;
    assert!(are_valid(&alone));
    for _ in 0..16 {
        alone.tick(Duration::from_secs(1));
        // It is heard, and does not count.
        alone.reply_over(key, tag, &got(GotMode::DATA.and(GotMode::MORE), None, &[7])).unwrap();
    }
    assert!(!alone.closes.contains(&key));
    assert!(!are_valid(&alone));
    assert!(alone.hang_ups > 0, "the first connection is silent");
}

#[test]
fn all_data_connections_end_with_the_first_one() {
    let (mut alone, .., asked) = with_connections();
    alone.lost();
    assert_eq!((alone.closes.len(), alone.client.snapshot().data_connections), (3, 0));
    assert!(!alone.client.data_opened(alone.now, DataKey(0)), "it is wanted no more");
    alone.connected_to(1);
    let again = reads(&mut alone);
    assert!(again.iter().all(|(tag, _)| !alone.over.contains_key(tag)));
    assert!(again.len() >= asked.len());
}
