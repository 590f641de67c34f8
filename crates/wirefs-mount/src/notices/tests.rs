use super::*;
use std::sync::Arc;
use wirefs_carrier::{SendQueue, memory};

const DIRECTORY: TreeNodeId = TreeNodeId(2);
const FILE: TreeNodeId = TreeNodeId(3);

fn node(node: TreeNodeId) -> Notice {
    Notice::Invalidate(Invalidate::Node { node, offset: 0, length: 0 })
}

fn entry(name: &str) -> Notice {
    Notice::Invalidate(Invalidate::Entry { parent: DIRECTORY, name: name.into(), is_directory: false })
}

fn frame() -> Notice {
    let (near, _far) = memory::pair().expect("two ends");
    Notice::Frame(Outlet::Wire(SendQueue::start(near.sink, near.closer, drop)), Frame::default())
}

fn filled(notices: impl IntoIterator<Item = Notice>) -> Notices {
    let queue = Notices::default();
    notices.into_iter().for_each(|notice| queue.push(notice));
    queue
}

/// What comes out, in words, until nothing is left.
fn drain(notices: &Notices) -> Vec<String> {
    let mut words = Vec::new();
    while !notices.lock().waiting.is_empty() {
        words.push(match notices.next(|| false).expect("not stopped") {
            Notice::Invalidate(Invalidate::Node { node, .. }) => format!("node {}", node.0),
            Notice::LetGo(node, _) => format!("not {}", node.0),
            Notice::Invalidate(Invalidate::Listing { node }) => format!("listing {}", node.0),
            Notice::Invalidate(Invalidate::Entry { name, .. }) => String::from_utf8(name).expect("text"),
            Notice::Frame(..) => "frame".to_owned(),
            Notice::Answer(..) => "answer".to_owned(),
        });
    }
    words
}

#[test]
fn what_waits_already_does_not_wait_twice() {
    let notices = filled([node(FILE), entry("a"), frame(), entry("a"), node(FILE), entry("b"), frame()]);
    assert_eq!(drain(&notices), ["node 3", "a", "frame", "b", "frame"]);
    notices.push(entry("a"));
    assert_eq!(drain(&notices), ["a"], "what was carried out may have to be done again");
}

#[test]
fn what_is_being_carried_out_may_wait_again() {
    let notices = filled([entry("a")]);
    assert!(matches!(notices.next(|| false), Some(Notice::Invalidate(_))));
    assert!(!notices.is_idle());
    notices.push(entry("a"));
    assert_eq!(drain(&notices), ["a"]);
}

#[test]
fn nodes_to_let_go_of_come_behind_all_else_and_are_bounded() {
    let let_go = |node: usize| Notice::LetGo(TreeNodeId(node as u64), vec![(DIRECTORY, b"a".to_vec())]);
    let notices = filled((0..2 * LET_GO_MAX).map(let_go));
    assert_eq!(notices.lock().let_go.len(), LET_GO_MAX);
    assert!(notices.is_idle(), "nobody relies on it");
    assert!(matches!(notices.next(|| false), Some(Notice::LetGo(..))));
    notices.push(node(FILE));
    notices.push(frame());
    assert_eq!(drain(&notices), ["node 3", "frame"]);
    assert!(matches!(notices.next(|| false), Some(Notice::LetGo(..))));
}

#[test]
fn it_is_not_idle_while_something_is_about_to_be_pushed() {
    let notices = Notices::default();
    notices.comes();
    assert!(!notices.is_idle());
    notices.came();
    assert!(notices.is_idle());
}

#[test]
fn it_is_idle_only_once_the_last_one_is_done() {
    let notices = Arc::new(filled([entry("a")]));
    drain(&notices);
    assert!(!notices.is_idle(), "nobody said that it is done");
    let next = Arc::clone(&notices);
    let waiting = std::thread::spawn(move || next.next(|| false).is_none());
    while !notices.is_idle() {
        std::thread::yield_now();
    }
    notices.stop();
    assert!(waiting.join().expect("no panic"));
}

#[test]
fn frames_behind_what_is_stuck_are_taken_out_with_what_is_before_them() {
    let notices = filled([entry("a"), node(FILE), frame(), node(DIRECTORY), frame(), node(TreeNodeId(9))]);
    notices.next(|| false);
    let stuck = notices.next_stuck(Duration::ZERO, FRAME_MAX).expect("not stopped");
    assert_eq!(stuck.frames.len(), 2);
    assert_eq!(stuck.nodes, BTreeSet::from([FILE, DIRECTORY]), "not what came after the last frame");
    assert_eq!(stuck.directories, BTreeSet::from([DIRECTORY]), "that of the name which is being forgotten");
    assert!(stuck.since.is_some());
    assert_eq!(drain(&notices), ["node 3", "node 2", "node 9"], "all is still forgotten in the end");
}

#[test]
fn a_frame_that_waits_for_too_much_is_taken_out_too() {
    let notices = filled([node(FILE), entry("a"), frame()]);
    notices.next(|| false);
    let stuck = notices.next_stuck(Duration::MAX, Duration::ZERO).expect("not stopped");
    assert_eq!((stuck.frames.len(), stuck.nodes.len(), stuck.directories.len()), (1, 1, 1));
}

#[test]
fn without_a_frame_nothing_is_stuck() {
    let notices = Arc::new(filled([node(FILE)]));
    notices.next(|| false);
    let watching = Arc::clone(&notices);
    let watch = std::thread::spawn(move || watching.next_stuck(Duration::ZERO, Duration::ZERO).is_none());
    std::thread::yield_now();
    notices.stop();
    assert!(watch.join().expect("no panic"));
    assert!(notices.next(|| false).is_none());
}

#[test]
fn too_many_names_are_forgotten_at_once_where_that_can_be() {
    let many = (0..=NAMES_MAX).map(|number| entry(&number.to_string()));
    let notices = filled([node(FILE)].into_iter().chain(many).chain([frame()]));
    assert_eq!(notices.lock().names, NAMES_MAX + 1);
    notices.next(|| false);
    assert_eq!(notices.lock().names, NAMES_MAX + 1, "it cannot be");
    notices.next(|| true);
    assert_eq!(notices.lock().names, 0);
    assert!(notices.lock().known.is_empty());
    assert!(notices.lock().waiting.is_empty(), "the frame was next");
}

#[test]
fn few_names_are_forgotten_one_by_one() {
    let notices = filled([entry("a"), entry("b")]);
    notices.next(|| panic!("not asked for so few"));
    assert_eq!(drain(&notices), ["b"]);
}

/// A name that is to be told once more at that time.
fn tell_again(notices: &Notices, name: &str, at: Instant) {
    let Notice::Invalidate(what) = entry(name) else { unreachable!("it is one") };
    notices.again(what, at);
}

#[test]
fn what_is_to_be_told_once_more_holds_up_frames_and_nothing_that_is_before_them() {
    let notices = filled([entry("a"), node(FILE), frame(), node(TreeNodeId(9))]);
    let soon = Instant::now() + Duration::from_millis(50);
    tell_again(&notices, "b", soon);
    tell_again(&notices, "b", soon);
    assert!(!notices.is_idle());
    assert_eq!(drain(&notices), ["a", "node 3", "b", "frame", "node 9"]);
    assert!(Instant::now() >= soon);
    tell_again(&notices, "c", soon);
    assert!(
        matches!(notices.next(|| false), Some(Notice::Invalidate(Invalidate::Entry { .. }))),
        "without a frame too"
    );
}

#[test]
fn a_frame_that_waits_for_the_time_to_come_is_not_stuck() {
    let notices = Arc::new(filled([frame()]));
    tell_again(&notices, "b", Instant::now() + Duration::from_millis(50));
    let watching = Arc::clone(&notices);
    let rescued = std::thread::spawn(move || watching.next_stuck(FRAME_MAX, FRAME_MAX).is_some());
    assert_eq!(drain(&notices), ["b", "frame"]);
    notices.stop();
    assert!(!rescued.join().expect("no panic"));
}

#[test]
fn a_frame_that_waits_for_too_long_is_taken_out_though_nothing_is_being_told() {
    let notices = filled([frame()]);
    tell_again(&notices, "b", Instant::now() + FRAME_MAX);
    let stuck = notices.next_stuck(FRAME_MAX, Duration::from_millis(10)).expect("not stopped");
    assert_eq!((stuck.frames.len(), stuck.directories), (1, BTreeSet::from([DIRECTORY])));
}

#[test]
fn a_frame_that_is_taken_out_makes_up_for_what_was_to_be_told_once_more() {
    let notices = filled([node(FILE), frame()]);
    notices.next(|| false);
    tell_again(&notices, "b", Instant::now() + FRAME_MAX);
    let stuck = notices.next_stuck(Duration::ZERO, FRAME_MAX).expect("not stopped");
    assert_eq!(stuck.directories, BTreeSet::from([DIRECTORY]));
}
