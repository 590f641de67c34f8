use super::*;
use std::sync::Arc;
use wirefs_carrier::{SendQueue, memory};

const DIRECTORY: TreeNodeId = TreeNodeId(2);
const FILE: TreeNodeId = TreeNodeId(3);

fn node(node: TreeNodeId) -> QueuedItem {
    QueuedItem::Invalidate(Invalidate::Node { node, offset: 0, length: 0 })
}

fn entry(name: &str) -> QueuedItem {
    QueuedItem::Invalidate(Invalidate::Entry { parent: DIRECTORY, name: name.into(), is_directory: false })
}

fn frame() -> QueuedItem {
    let (near, _far) = memory::pair().expect("two ends");
    QueuedItem::Frame(ServerSink::Carrier(SendQueue::start(near.sink, near.closer, drop)), Frame::default())
}

fn filled(items: impl IntoIterator<Item = QueuedItem>) -> InvalidationQueue {
    let queue = InvalidationQueue::default();
    items.into_iter().for_each(|item| queue.push(item));
    queue
}

/// Takes all items, as words.
fn drain(queue: &InvalidationQueue) -> Vec<String> {
    let mut words = Vec::new();
    while !queue.lock().waiting.is_empty() {
        words.push(match queue.next(|| false).expect("not stopped") {
            QueuedItem::Invalidate(Invalidate::Node { node, .. }) => format!("node {}", node.0),
            QueuedItem::Release(node, _) => format!("not {}", node.0),
            QueuedItem::Invalidate(Invalidate::Listing { node }) => format!("listing {}", node.0),
            QueuedItem::Invalidate(Invalidate::Entry { name, .. }) => String::from_utf8(name).expect("text"),
            QueuedItem::Frame(..) => "frame".to_owned(),
            QueuedItem::Answer(..) => "answer".to_owned(),
        });
    }
    words
}

#[test]
fn queued_invalidation_is_not_queued_twice() {
    let queue = filled([node(FILE), entry("a"), frame(), entry("a"), node(FILE), entry("b"), frame()]);
    assert_eq!(drain(&queue), ["node 3", "a", "frame", "b", "frame"]);
    queue.push(entry("a"));
    assert_eq!(drain(&queue), ["a"], "an executed invalidation may be queued again");
}

#[test]
fn invalidation_in_execution_may_be_queued_again() {
    let queue = filled([entry("a")]);
    assert!(matches!(queue.next(|| false), Some(QueuedItem::Invalidate(_))));
    assert!(!queue.is_idle());
    queue.push(entry("a"));
    assert_eq!(drain(&queue), ["a"]);
}

#[test]
fn releases_come_last_and_are_bounded() {
    let let_go = |node: usize| QueuedItem::Release(TreeNodeId(node as u64), vec![(DIRECTORY, b"a".to_vec())]);
    let queue = filled((0..2 * RELEASES_MAX).map(let_go));
    assert_eq!(queue.lock().releases.len(), RELEASES_MAX);
    assert!(queue.is_idle(), "nothing depends on a release");
    assert!(matches!(queue.next(|| false), Some(QueuedItem::Release(..))));
    queue.push(node(FILE));
    queue.push(frame());
    assert_eq!(drain(&queue), ["node 3", "frame"]);
    assert!(matches!(queue.next(|| false), Some(QueuedItem::Release(..))));
}

#[test]
fn queue_is_not_idle_during_an_announced_push() {
    let queue = InvalidationQueue::default();
    queue.begin_push();
    assert!(!queue.is_idle());
    queue.end_push();
    assert!(queue.is_idle());
}

#[test]
fn queue_is_idle_only_after_its_last_item() {
    let queue = Arc::new(filled([entry("a")]));
    drain(&queue);
    assert!(!queue.is_idle(), "the item is in execution");
    let next = Arc::clone(&queue);
    let waiting = std::thread::spawn(move || next.next(|| false).is_none());
    while !queue.is_idle() {
        std::thread::yield_now();
    }
    queue.stop();
    assert!(waiting.join().expect("no panic"));
}

#[test]
fn frames_behind_a_slow_item_are_taken_out_with_the_items_before_them() {
    let queue = filled([entry("a"), node(FILE), frame(), node(DIRECTORY), frame(), node(TreeNodeId(9))]);
    queue.next(|| false);
    let overdue = queue.next_overdue(Duration::ZERO, FRAME_MAX).expect("not stopped");
    assert_eq!(overdue.frames.len(), 2);
    assert_eq!(overdue.nodes, BTreeSet::from([FILE, DIRECTORY]), "without the items after the last frame");
    assert_eq!(overdue.directories, BTreeSet::from([DIRECTORY]), "that of the name in execution");
    assert!(overdue.since.is_some());
    assert_eq!(drain(&queue), ["node 3", "node 2", "node 9"], "all invalidations are still executed");
}

#[test]
fn frame_behind_too_many_items_is_taken_out() {
    let queue = filled([node(FILE), entry("a"), frame()]);
    queue.next(|| false);
    let overdue = queue.next_overdue(Duration::MAX, Duration::ZERO).expect("not stopped");
    assert_eq!((overdue.frames.len(), overdue.nodes.len(), overdue.directories.len()), (1, 1, 1));
}

#[test]
fn without_a_frame_nothing_is_overdue() {
    let queue = Arc::new(filled([node(FILE)]));
    queue.next(|| false);
    let watching = Arc::clone(&queue);
    let watch = std::thread::spawn(move || watching.next_overdue(Duration::ZERO, Duration::ZERO).is_none());
    std::thread::yield_now();
    queue.stop();
    assert!(watch.join().expect("no panic"));
    assert!(queue.next(|| false).is_none());
}

#[test]
fn too_many_names_are_invalidated_at_once_if_possible() {
    let many = (0..=NAMES_MAX).map(|number| entry(&number.to_string()));
    let queue = filled([node(FILE)].into_iter().chain(many).chain([frame()]));
    assert_eq!(queue.lock().names, NAMES_MAX + 1);
    queue.next(|| false);
    assert_eq!(queue.lock().names, NAMES_MAX + 1, "not possible");
    queue.next(|| true);
    assert_eq!(queue.lock().names, 0);
    assert!(queue.lock().queued.is_empty());
    assert!(queue.lock().waiting.is_empty(), "the frame was next");
}

#[test]
fn few_names_are_invalidated_one_by_one() {
    let queue = filled([entry("a"), entry("b")]);
    queue.next(|| panic!("not used for few names"));
    assert_eq!(drain(&queue), ["b"]);
}

/// Queues a repetition of a name's invalidation.
fn repeat(queue: &InvalidationQueue, name: &str, at: Instant) {
    let QueuedItem::Invalidate(what) = entry(name) else { unreachable!("an invalidation") };
    queue.repeat_at(what, at);
}

#[test]
fn repetition_delays_frames_and_no_earlier_item() {
    let queue = filled([entry("a"), node(FILE), frame(), node(TreeNodeId(9))]);
    let soon = Instant::now() + Duration::from_millis(50);
    repeat(&queue, "b", soon);
    repeat(&queue, "b", soon);
    assert!(!queue.is_idle());
    assert_eq!(drain(&queue), ["a", "node 3", "b", "frame", "node 9"]);
    assert!(Instant::now() >= soon);
    repeat(&queue, "c", soon);
    assert!(
        matches!(queue.next(|| false), Some(QueuedItem::Invalidate(Invalidate::Entry { .. }))),
        "without a frame too"
    );
}

#[test]
fn frame_that_waits_for_a_repetition_is_not_overdue() {
    let queue = Arc::new(filled([frame()]));
    repeat(&queue, "b", Instant::now() + Duration::from_millis(50));
    let watching = Arc::clone(&queue);
    let overdue = std::thread::spawn(move || watching.next_overdue(FRAME_MAX, FRAME_MAX).is_some());
    assert_eq!(drain(&queue), ["b", "frame"]);
    queue.stop();
    assert!(!overdue.join().expect("no panic"));
}

#[test]
fn frame_that_waits_too_long_is_taken_out_without_an_item_in_execution() {
    let queue = filled([frame()]);
    repeat(&queue, "b", Instant::now() + FRAME_MAX);
    let overdue = queue.next_overdue(FRAME_MAX, Duration::from_millis(10)).expect("not stopped");
    assert_eq!((overdue.frames.len(), overdue.directories), (1, BTreeSet::from([DIRECTORY])));
}

#[test]
fn overdue_frame_covers_the_pending_repetitions() {
    let queue = filled([node(FILE), frame()]);
    queue.next(|| false);
    repeat(&queue, "b", Instant::now() + FRAME_MAX);
    let overdue = queue.next_overdue(Duration::ZERO, FRAME_MAX).expect("not stopped");
    assert_eq!(overdue.directories, BTreeSet::from([DIRECTORY]));
}
