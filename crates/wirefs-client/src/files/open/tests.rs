use super::*;

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
    open.insert(Handle(1), NodeId(7), HOW, NOFD);
    open.insert(Handle(2), NodeId(7), HOW, Fd(5));
    open.insert(Handle(3), NodeId(8), HOW, Fd(5));
    open
}

#[test]
fn a_node_is_open_until_its_last_handle_is_closed() {
    let mut open = three();
    assert_eq!(open.of_node(NodeId(7)), [Handle(1), Handle(2)]);
    assert_eq!(open.remove(Handle(1)).map(|open| open.node()), Some(NodeId(7)));
    assert!(open.is_open(NodeId(7)));
    assert!(open.remove(Handle(2)).is_some());
    assert!(open.remove(Handle(2)).is_none());
    assert!(!open.is_open(NodeId(7)));
    assert_eq!(open.of_node(NodeId(7)), []);
    assert!(open.is_open(NodeId(8)));
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
    assert_eq!(open.fd_for(NodeId(7), Some(Handle(1))), Fd(5));
    open.set_fd(Handle(1), Fd(9));
    assert_eq!(open.fd_for(NodeId(7), Some(Handle(1))), Fd(9));
    assert_eq!(open.fd_for(NodeId(7), Some(Handle(2))), Fd(5));
    assert_eq!(open.fd_for(NodeId(9), None), NOFD);
    open.forget_fds();
    assert_eq!(open.fd_for(NodeId(7), Some(Handle(1))), NOFD);
    assert!(!open.is_used(Fd(9)));
    open.set_fd(Handle(1), Fd(9));
    assert!(open.is_used(Fd(9)));
}
