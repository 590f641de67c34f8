use super::*;

const DIRECTORY: TreeNodeId = TreeNodeId(2);
const FILE: TreeNodeId = TreeNodeId(3);
const NOW: Time = Time(1_000_000_000);

type Item = QueuedItem<&'static str, &'static str>;
type Queue = InvalidationQueue<&'static str, &'static str>;

fn node(node: TreeNodeId) -> Item {
    QueuedItem::Invalidate(Invalidate::Node { node, offset: 0, length: 0 })
}

fn entry(name: &str) -> Item {
    QueuedItem::Invalidate(name_of(name))
}

fn name_of(name: &str) -> Invalidate {
    Invalidate::Entry { parent: DIRECTORY, name: name.into(), is_directory: false }
}

fn frame() -> Item {
    QueuedItem::Frame("frame")
}

fn filled(items: impl IntoIterator<Item = Item>) -> Queue {
    let mut queue = Queue::default();
    items.into_iter().for_each(|item| queue.push(NOW, item));
    queue
}

/// Ends the previous item, and begins the next one, as words; `None` if the queue waits.
fn step(queue: &mut Queue, now: Time) -> Option<String> {
    queue.finish();
    match queue.next(now) {
        QueueStep::Execute(QueuedItem::Invalidate(Invalidate::Node { node, .. })) => {
            Some(format!("node {}", node.0))
        }
        QueueStep::Execute(QueuedItem::Invalidate(Invalidate::Listing { node })) => {
            Some(format!("listing {}", node.0))
        }
        QueueStep::Execute(QueuedItem::Invalidate(Invalidate::Entry { name, .. })) => {
            Some(String::from_utf8(name).expect("text"))
        }
        QueueStep::Execute(QueuedItem::Release(node, _)) => Some(format!("release {}", node.0)),
        QueueStep::Execute(QueuedItem::Frame(text) | QueuedItem::Answer(text)) => Some(text.to_owned()),
        QueueStep::DropNames => Some("drop names".to_owned()),
        QueueStep::Wait(_) => None,
    }
}

/// Executes all items, as words.
fn drain(queue: &mut Queue, now: Time) -> Vec<String> {
    std::iter::from_fn(|| step(queue, now)).collect()
}

fn overdue(queue: &mut Queue, now: Time) -> Option<Overdue<&'static str>> {
    match queue.overdue(now, ITEM_MAX, FRAME_MAX) {
        WatchStep::Send(overdue) => Some(overdue),
        WatchStep::Wait(_) | WatchStep::Idle => None,
    }
}

#[test]
fn queued_invalidation_is_not_queued_twice() {
    let mut queue = filled([node(FILE), entry("a"), frame(), entry("a"), node(FILE), entry("b"), frame()]);
    assert_eq!(drain(&mut queue, NOW), ["node 3", "a", "frame", "b", "frame"]);
    queue.push(NOW, entry("a"));
    assert_eq!(drain(&mut queue, NOW), ["a"], "an executed invalidation may be queued again");
}

#[test]
fn invalidation_in_execution_may_be_queued_again() {
    let mut queue = filled([entry("a")]);
    assert_eq!(step(&mut queue, NOW).as_deref(), Some("a"));
    assert!(!queue.is_idle());
    queue.push(NOW, entry("a"));
    assert_eq!(drain(&mut queue, NOW), ["a"]);
}

#[test]
fn releases_come_last_and_are_bounded() {
    let release =
        |node: usize| Item::Release(TreeNodeId(node as u64 + 100), vec![(DIRECTORY, b"a".to_vec())]);
    let mut queue = filled((0..2 * RELEASES_MAX).map(release));
    assert_eq!(queue.releases.len(), RELEASES_MAX);
    assert!(queue.is_idle(), "nothing depends on a release");
    assert_eq!(step(&mut queue, NOW).as_deref(), Some("release 100"));
    queue.push(NOW, node(FILE));
    queue.push(NOW, frame());
    let next: Vec<_> = (0..3).filter_map(|_| step(&mut queue, NOW)).collect();
    assert_eq!(next, ["node 3", "frame", "release 101"]);
}

#[test]
fn queue_is_not_idle_during_an_announced_push() {
    let mut queue = Queue::default();
    queue.begin_push();
    assert!(!queue.is_idle());
    queue.end_push();
    assert!(queue.is_idle());
}

#[test]
fn queue_is_idle_only_after_its_last_item() {
    let mut queue = filled([entry("a")]);
    step(&mut queue, NOW);
    assert!(!queue.is_idle(), "the item is in execution");
    queue.finish();
    assert!(queue.is_idle());
}

#[test]
fn frames_behind_a_slow_item_are_taken_out_with_the_items_before_them() {
    let mut queue = filled([entry("a"), node(FILE), frame(), node(DIRECTORY), frame(), node(TreeNodeId(9))]);
    step(&mut queue, NOW);
    assert!(overdue(&mut queue, NOW).is_none());
    let overdue = overdue(&mut queue, NOW + ITEM_MAX).expect("a slow item");
    assert_eq!(overdue.frames.len(), 2);
    assert_eq!(overdue.nodes, BTreeSet::from([FILE, DIRECTORY]), "without the items after the last frame");
    assert_eq!(overdue.directories, BTreeSet::from([DIRECTORY]), "that of the name in execution");
    assert_eq!(overdue.since, NOW);
    let rest = drain(&mut queue, NOW);
    assert_eq!(rest, ["node 3", "node 2", "node 9"], "all invalidations are still executed");
}

#[test]
fn frame_behind_too_many_items_is_taken_out() {
    let mut queue = filled([node(FILE), entry("a"), frame()]);
    let later = NOW + FRAME_MAX;
    step(&mut queue, later);
    let overdue = overdue(&mut queue, later).expect("a frame that waited");
    assert_eq!((overdue.frames.len(), overdue.nodes.len(), overdue.directories.len()), (1, 1, 1));
}

#[test]
fn without_a_frame_nothing_is_overdue() {
    let mut queue = filled([node(FILE)]);
    step(&mut queue, NOW);
    let watch = queue.overdue(NOW + FRAME_MAX, Duration::ZERO, Duration::ZERO);
    assert!(matches!(watch, WatchStep::Idle));
}

#[test]
fn watchdog_waits_for_the_rest_of_the_shorter_limit() {
    let mut queue = filled([node(FILE), frame()]);
    step(&mut queue, NOW);
    let after = |passed: Duration| NOW + passed;
    let mut wait = |now: Time, frame_max: Duration| match queue.overdue(now, ITEM_MAX, frame_max) {
        WatchStep::Wait(wait) => wait,
        WatchStep::Send(_) | WatchStep::Idle => panic!("not overdue"),
    };
    assert_eq!(wait(after(Duration::from_millis(50)), FRAME_MAX), Duration::from_millis(150));
    let frame_max = Duration::from_millis(60);
    assert_eq!(wait(after(Duration::from_millis(50)), frame_max), Duration::from_millis(10));
}

#[test]
fn too_many_names_are_invalidated_at_once_if_possible() {
    let many = (0..=NAMES_MAX).map(|number| entry(&number.to_string()));
    let mut queue = filled([node(FILE)].into_iter().chain(many).chain([frame()]));
    assert_eq!(queue.names, NAMES_MAX + 1);
    assert_eq!(step(&mut queue, NOW).as_deref(), Some("drop names"));
    queue.names_dropped(false);
    assert!(matches!(queue.next(NOW), QueueStep::Execute(_)), "without it, names go one by one");
    assert_eq!(step(&mut queue, NOW).as_deref(), Some("drop names"), "it is tried again after an item");
    queue.names_dropped(true);
    assert_eq!((queue.names, queue.queued.len()), (0, 0));
    assert_eq!(drain(&mut queue, NOW), ["frame"]);
}

#[test]
fn repetition_delays_frames_and_no_earlier_item() {
    let mut queue = filled([entry("a"), node(FILE), frame(), node(TreeNodeId(9))]);
    let soon = NOW + Duration::from_millis(50);
    queue.repeat_at(name_of("b"), soon);
    queue.repeat_at(name_of("b"), soon);
    assert!(!queue.is_idle());
    assert_eq!(drain(&mut queue, NOW), ["a", "node 3"]);
    assert!(matches!(queue.next(NOW), QueueStep::Wait(Some(at)) if at == soon));
    assert_eq!(drain(&mut queue, soon), ["b", "frame", "node 9"]);
    queue.repeat_at(name_of("c"), soon);
    assert_eq!(drain(&mut queue, soon), ["c"], "without a frame too");
}

#[test]
fn frame_that_waits_for_a_repetition_is_overdue_only_after_its_own_limit() {
    let mut queue = filled([frame()]);
    queue.repeat_at(name_of("b"), NOW + FRAME_MAX + FRAME_MAX);
    assert!(overdue(&mut queue, NOW + ITEM_MAX).is_none());
    let overdue = overdue(&mut queue, NOW + FRAME_MAX).expect("a frame that waited");
    assert_eq!((overdue.frames.len(), overdue.directories), (1, BTreeSet::from([DIRECTORY])));
}

#[test]
fn overdue_frame_covers_the_pending_repetitions() {
    let mut queue = filled([node(FILE), frame()]);
    step(&mut queue, NOW);
    queue.repeat_at(name_of("b"), NOW + FRAME_MAX);
    let overdue = overdue(&mut queue, NOW + ITEM_MAX).expect("a slow item");
    assert_eq!(overdue.directories, BTreeSet::from([DIRECTORY]));
}

#[test]
fn stop_returns_the_answers_and_drops_all_else() {
    let mut queue = filled([entry("a"), QueuedItem::Answer("one"), frame(), QueuedItem::Answer("two")]);
    queue.repeat_at(name_of("b"), NOW);
    assert_eq!(queue.stop(), ["one", "two"]);
    assert!(matches!(queue.next(NOW + FRAME_MAX), QueueStep::Wait(None)));
    assert!(queue.is_idle());
}
