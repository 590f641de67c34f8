use super::{CREATIONS_MAX, Creations, UnknownCreation};
use wirefs_op::message::copy::Tcopy;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::rename::Trename;
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::wire::Data;
use wirefs_op::{FileId, Request, SetStat, TreePath};

fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

fn rename(from: FileId, to: FileId) -> Request {
    let place = |dir| Place { path: TreePath::from_names([b"a".as_slice()]).unwrap(), dir: Some(dir) };
    Request::Rename(Trename { from: place(from), to: place(to), flags: 0 })
}

#[test]
fn each_number_in_a_request_is_replaced_by_the_id_of_the_created_object() {
    let mut creations = Creations::default();
    creations.insert(3, id(30));
    creations.insert(5, id(50));
    let mut request = rename(FileId::provisional(5), FileId::provisional(3));
    assert_eq!(creations.resolve(&mut request), Ok(()));
    assert_eq!(request, rename(id(50), id(30)));
    assert_eq!(creations.resolve(&mut request), Ok(()), "real ids stay as they are");
    assert_eq!(request, rename(id(50), id(30)));
}

#[test]
fn number_of_a_change_that_created_nothing_is_unknown() {
    let mut creations = Creations::default();
    creations.insert(3, id(30));
    let mut request = rename(FileId::provisional(3), FileId::provisional(4));
    assert_eq!(creations.resolve(&mut request), Err(UnknownCreation));
}

#[test]
fn only_the_last_creations_are_known() {
    let mut creations = Creations::default();
    let last = CREATIONS_MAX as u64;
    (0..=last).for_each(|number| creations.insert(number, id(number)));
    let known = |number| creations.resolve(&mut rename(FileId::provisional(number), id(1)));
    assert_eq!([known(0), known(1), known(last)], [Err(UnknownCreation), Ok(()), Ok(())]);
}

#[test]
fn data_for_a_created_file_goes_through_the_fd_of_its_creation() {
    let mut creations = Creations::default();
    creations.insert(3, id(30));
    creations.opened(3, Fd(7));
    let put = |fd, mode, id| {
        let target = Target { path: TreePath::root(), fd, id: Some(id) };
        let (set, data) = (SetStat::default(), Data::default());
        Request::Put(Tput { target, mode, create: None, set, offset: 0, data })
    };
    let mut request = put(NOFD, PutMode::DATA, FileId::provisional(3));
    assert_eq!(creations.resolve(&mut request), Ok(()));
    assert_eq!(request, put(Fd(7), PutMode::DATA.and(PutMode::MORE), id(30)));
    let mut request = put(Fd(2), PutMode::DATA, FileId::provisional(3));
    assert_eq!(creations.resolve(&mut request), Ok(()));
    assert_eq!(request, put(Fd(2), PutMode::DATA, id(30)));
}

// S-54
#[test]
fn files_without_names_are_copied_by_the_fds_of_their_creations() {
    let mut creations = Creations::default();
    for (number, made, fd) in [(3, 30, Fd(7)), (4, 40, Fd(8))] {
        creations.insert(number, id(made));
        creations.opened(number, fd);
    }
    let copy = |(from_fd, from_id), (to_fd, to_id)| {
        let target = |fd, id| Target { path: TreePath::root(), fd, id: Some(id) };
        let (from, to) = (target(from_fd, from_id), target(to_fd, to_id));
        Request::Copy(Tcopy { from, from_offset: 0, to, to_offset: 0, length: 1 })
    };
    let mut request = copy((NOFD, FileId::provisional(3)), (NOFD, FileId::provisional(4)));
    assert_eq!(creations.resolve(&mut request), Ok(()));
    assert_eq!(request, copy((Fd(7), id(30)), (Fd(8), id(40))));
}
