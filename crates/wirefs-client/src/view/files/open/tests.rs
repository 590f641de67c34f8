use super::*;
use crate::view::files::Files;
use std::cell::Cell;
use wirefs_op::Time;

thread_local! {
    /// Open files that were looked at in this thread.
    pub(super) static LOOKUPS: Cell<u64> = const { Cell::new(0) };
}

const HOW: OpenHow = OpenHow {
    read: true,
    write: false,
    append: false,
    truncate: false,
    exclusive: false,
    direct: false,
    sync: false,
};

fn three() -> OpenFiles {
    let mut open = OpenFiles::default();
    open.insert(Handle(1), TreeNodeId(7), HOW, NOFD);
    open.insert(Handle(2), TreeNodeId(7), HOW, Fd(5));
    open.insert(Handle(3), TreeNodeId(8), HOW, Fd(5));
    open
}

#[test]
fn a_node_is_open_until_its_last_handle_is_closed() {
    let mut open = three();
    assert!(open.of_node(TreeNodeId(7)).eq([Handle(1), Handle(2)]));
    assert_eq!(open.remove(Handle(1)).map(|open| open.node()), Some(TreeNodeId(7)));
    assert!(open.is_open(TreeNodeId(7)));
    assert!(open.remove(Handle(2)).is_some());
    assert!(open.remove(Handle(2)).is_none());
    assert!(!open.is_open(TreeNodeId(7)));
    assert_eq!(open.of_node(TreeNodeId(7)).next(), None);
    assert!(open.is_open(TreeNodeId(8)));
}

#[test]
fn an_fd_is_used_until_the_last_file_that_goes_by_it_is_closed() {
    let mut open = three();
    assert!(!open.is_used(NOFD));
    open.remove(Handle(2));
    assert!(open.is_used(Fd(5)));
    open.set_fd(Handle(3), Fd(6));
    assert!(!open.is_used(Fd(5)));
    assert!(open.is_used(Fd(6)));
    open.remove(Handle(3));
    assert!(!open.is_used(Fd(6)));
}

#[test]
fn a_node_is_named_by_the_fd_of_the_handle_or_else_by_another_ones() {
    let mut open = three();
    assert_eq!(open.fd_for(TreeNodeId(7), Some(Handle(1))), Fd(5));
    open.set_fd(Handle(1), Fd(9));
    assert_eq!(open.fd_for(TreeNodeId(7), Some(Handle(1))), Fd(9));
    assert_eq!(open.fd_for(TreeNodeId(7), Some(Handle(2))), Fd(5));
    assert_eq!(open.fd_for(TreeNodeId(9), None), NOFD);
    open.forget_fds();
    assert_eq!(open.fd_for(TreeNodeId(7), Some(Handle(1))), NOFD);
    assert!(!open.is_used(Fd(9)));
    open.set_fd(Handle(1), Fd(9));
    assert!(open.is_used(Fd(9)));
}

#[test]
fn an_open_of_a_file_that_is_open_many_times_looks_at_none_of_the_others() {
    const MANY: u64 = 2000;
    let (node, mut files) = (TreeNodeId(7), Files::new(1 << 20));
    let handles: Vec<Handle> = (0..MANY)
        .map(|_| {
            assert_eq!(files.fd_for(node, None), NOFD);
            let handle = files.opened(node, HOW, NOFD);
            assert!(!files.is_moving(node, Time(0)));
            handle
        })
        .collect();
    files.set_fd(handles[1000], Fd(5));
    for handle in handles {
        assert!(files.handles_of(node).next().is_some());
        files.fd_for(node, Some(handle));
        files.close(handle);
    }
    assert!(LOOKUPS.get() <= 4 * MANY, "{} lookups", LOOKUPS.get());
}

#[test]
fn bytes_that_open_files_have_to_themselves_are_counted_as_they_change() {
    let mut open = three();
    open.change_copy(Handle(1), |copy| *copy = Some(Private::new(CachedRanges::default(), 0)));
    open.change_copy(Handle(1), |copy| copy.as_mut().unwrap().write(0, vec![7; 100].into()));
    open.change_copy(Handle(2), |copy| *copy = Some(Private::new(CachedRanges::default(), 0)));
    assert_eq!(open.private_bytes(), 100);
    open.change_copy(Handle(1), |copy| copy.as_mut().unwrap().resize(40));
    assert_eq!(open.private_bytes(), 40);
    open.remove(Handle(1));
    assert_eq!(open.private_bytes(), 0);
}

#[test]
fn a_file_is_appended_to_until_the_last_handle_that_appends_is_closed() {
    let mut open = three();
    assert!(!open.is_appended(TreeNodeId(7)));
    open.insert(Handle(4), TreeNodeId(7), OpenHow { append: true, ..HOW }, NOFD);
    assert!(open.is_appended(TreeNodeId(7)) && !open.is_appended(TreeNodeId(8)));
    open.remove(Handle(4));
    assert!(!open.is_appended(TreeNodeId(7)));
}
