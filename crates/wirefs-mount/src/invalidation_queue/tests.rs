use super::*;
use std::sync::Arc;
use wirefs_client::call::TreeNodeId;

fn entry() -> QueuedItem {
    QueuedItem::Invalidate(Invalidate::Entry {
        parent: TreeNodeId(2),
        name: b"a".into(),
        is_directory: false,
    })
}

#[test]
fn queue_is_idle_once_its_thread_asks_for_the_next_item() {
    let queue = Arc::new(InvalidationQueue::default());
    queue.push(entry());
    assert!(queue.next(|| false).is_some());
    assert!(!queue.is_idle(), "the item is in execution");
    let for_thread = Arc::clone(&queue);
    let thread = std::thread::spawn(move || for_thread.next(|| false).is_none());
    while !queue.is_idle() {
        std::thread::yield_now();
    }
    queue.stop();
    assert!(thread.join().expect("no panic"));
}

#[test]
fn stop_ends_both_threads() {
    let queue = Arc::new(InvalidationQueue::default());
    queue.push(entry());
    queue.next(|| false);
    let for_watchdog = Arc::clone(&queue);
    let watchdog = std::thread::spawn(move || for_watchdog.next_overdue().is_none());
    queue.stop();
    assert!(watchdog.join().expect("no panic"));
    assert!(queue.next(|| false).is_none());
}

#[test]
fn answers_of_a_stopped_queue_are_sent() {
    let queue = InvalidationQueue::default();
    let (sender, answer) = std::sync::mpsc::channel();
    queue.push(QueuedItem::Answer((CallId(1), Waiter::Own(sender), Answer::Done)));
    queue.stop();
    assert_eq!(answer.recv(), Ok(Answer::Done));
}
