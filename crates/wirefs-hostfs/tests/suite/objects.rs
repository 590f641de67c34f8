//! The object of a request, despite changed names and stale fds.

use crate::harness::{
    FIRST, SECOND, World, at, create, get, is_open, keep, open_as, path, place, put, write,
};
use wirefs_op::message::get::GetMode;
use wirefs_op::message::link::Tlink;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::{Errno, Kind, Reply, Request};
use wirefs_server::Tree;

// S-55
#[test]
fn hard_links_are_one_object_with_one_inode_number() {
    let world = World::new();
    world.put(FIRST, create("one", Kind::File, 0o644, PutMode::NONE)).unwrap();
    let link = Tlink { target: at("one"), to: place("two") };
    let Reply::Link(linked) = world.ask_one(FIRST, Request::Link(link)).unwrap() else {
        panic!("not an answer to Tlink");
    };
    let (one, two) = (world.stat(FIRST, at("one")).unwrap(), world.stat(SECOND, at("two")).unwrap());
    assert_eq!(one.id, two.id);
    assert_eq!((one.nlink, two.nlink), (2, 2));
    assert_eq!(linked.stat.unwrap(), two);
    use std::os::unix::fs::MetadataExt;
    assert_eq!(one.id.ino, std::fs::metadata(world.host("one")).unwrap().ino());
    assert_eq!(one.id.fs, 0);
}

#[test]
fn a_symlink_itself_can_be_linked() {
    let world = World::new();
    std::os::unix::fs::symlink("nowhere", world.host("link")).unwrap();
    let link = Tlink { target: at("link"), to: place("again") };
    world.ask_one(FIRST, Request::Link(link)).unwrap();
    assert_eq!(std::fs::read_link(world.host("again")).unwrap().as_os_str(), "nowhere");
    assert_eq!(world.stat(FIRST, at("link")).unwrap().nlink, 2);
}

// S-54
#[test]
fn an_unlinked_open_file_lives_until_it_is_closed() {
    let world = World::new();
    let made = world.put(FIRST, create("file", Kind::File, 0o600, keep())).unwrap();
    let id = made.stat.unwrap().id;
    let target = || open_as("file", made.fd, id);
    world.remove(FIRST, "file").unwrap();
    let wrote = world.put(FIRST, put_kept(write(target(), 0, b"still here"))).unwrap();
    assert_eq!((wrote.fd, wrote.stat.unwrap().nlink), (made.fd, 0));
    assert_eq!(world.read(FIRST, target(), 0, 100).unwrap(), b"still here");
    assert_eq!(world.stat(SECOND, target()), Err(Errno::Stale));
    // A Tget without MORE closes the file.
    world.get(FIRST, get(target(), GetMode::STAT, 0, 0)).unwrap();
    assert_eq!(world.stat(FIRST, target()), Err(Errno::Stale));
}

fn put_kept(mut request: wirefs_op::message::put::Tput) -> wirefs_op::message::put::Tput {
    request.mode = request.mode.and(keep());
    request
}

#[test]
fn a_file_without_a_name_can_get_one() {
    let world = World::new();
    let made = world.put(FIRST, create("", Kind::File, 0o600, keep().and(PutMode::NAMELESS))).unwrap();
    let stat = made.stat.unwrap();
    assert_eq!((stat.nlink, is_open(made.fd)), (0, true));
    let target = || Target { path: path("no such path"), fd: made.fd, id: Some(stat.id) };
    world.put(FIRST, put_kept(write(target(), 0, b"named late"))).unwrap();
    let link = Tlink { target: target(), to: place("name") };
    world.ask_one(FIRST, Request::Link(link)).unwrap();
    assert_eq!(std::fs::read(world.host("name")).unwrap(), b"named late");
}

// S-56
#[test]
fn a_stale_fd_or_one_of_another_file_falls_back_to_the_path() {
    let world = World::new();
    let one = world.put(FIRST, create("one", Kind::File, 0o644, keep())).unwrap();
    let two = world.put(FIRST, create("two", Kind::File, 0o644, PutMode::NONE)).unwrap();
    world.put(FIRST, write(at("one"), 0, b"1")).unwrap();
    world.put(FIRST, write(at("two"), 0, b"2")).unwrap();
    let two_id = two.stat.unwrap().id;
    assert_eq!(world.read(FIRST, open_as("two", one.fd, two_id), 0, 9).unwrap(), b"2");
    assert_eq!(world.read(FIRST, open_as("two", Fd(12_345), two_id), 0, 9).unwrap(), b"2");
    // An fd of another session is invalid here.
    assert_eq!(world.read(SECOND, open_as("two", one.fd, two_id), 0, 9).unwrap(), b"2");
    // The file of the fd is still open, although a request used the fd for another object.
    assert!(world.read(FIRST, open_as("gone", one.fd, one.stat.unwrap().id), 0, 9).is_ok());
}

// S-56
#[test]
fn another_or_no_object_at_the_path_is_stale() {
    let world = World::new();
    let first = world.put(FIRST, create("file", Kind::File, 0o644, PutMode::NONE)).unwrap();
    let id = first.stat.unwrap().id;
    std::fs::write(world.host("other"), "x").unwrap();
    std::fs::rename(world.host("other"), world.host("file")).unwrap();
    assert_eq!(world.stat(FIRST, open_as("file", NOFD, id)), Err(Errno::Stale));
    assert_eq!(world.put(FIRST, write(open_as("file", NOFD, id), 0, b"no")), Err(Errno::Stale));
    world.remove(FIRST, "file").unwrap();
    assert_eq!(world.stat(FIRST, open_as("file", NOFD, id)), Err(Errno::Stale));
    assert_eq!(world.stat(FIRST, at("file")), Err(Errno::NotFound));
}

#[test]
fn another_directory_at_the_path_is_stale() {
    let world = World::new();
    let made = world.put(FIRST, create("dir", Kind::Directory, 0o755, PutMode::NONE)).unwrap();
    let dir = made.stat.unwrap().id;
    std::fs::rename(world.host("dir"), world.host("old")).unwrap();
    std::fs::create_dir(world.host("dir")).unwrap();
    std::fs::write(world.host("dir/file"), "").unwrap();
    let remove = Tremove { place: Place { path: path("dir/file"), dir: Some(dir) }, directory: false };
    assert_eq!(world.ask_one(FIRST, Request::Remove(remove)), Err(Errno::Stale));
    let mut new = create("dir/new", Kind::File, 0o644, PutMode::NONE);
    new.target.id = Some(dir);
    assert_eq!(world.put(FIRST, new), Err(Errno::Stale));
}

#[test]
fn an_unlinked_file_open_for_reading_becomes_writable_under_its_fd() {
    let world = World::new();
    std::fs::write(world.host("file"), "old").unwrap();
    let got = world.get(FIRST, get(at("file"), GetMode::STAT.and(GetMode::MORE), 0, 0)).unwrap();
    let (fd, id) = (got[0].fd, got[0].stat.unwrap().id);
    std::fs::remove_file(world.host("file")).unwrap();
    let wrote = world.put(FIRST, put_kept(write(open_as("file", fd, id), 0, b"new"))).unwrap();
    assert_eq!(wrote.fd, fd);
    assert_eq!(world.read(FIRST, open_as("file", fd, id), 0, 9).unwrap(), b"new");
}

// S-78
#[test]
fn the_end_of_a_session_closes_its_files_and_makes_pending_removals() {
    let world = World::new();
    let made = world.put(FIRST, create("scratch", Kind::File, 0o644, keep().and(PutMode::REMOVE))).unwrap();
    assert!(is_open(made.fd) && world.host("scratch").exists());
    world.put(FIRST, create("brief", Kind::File, 0o644, PutMode::REMOVE)).unwrap();
    assert!(!world.host("brief").exists());
    world.tree.end(FIRST);
    assert!(!world.host("scratch").exists());
}

#[test]
fn closing_removes_no_other_file_that_took_the_name() {
    let world = World::new();
    let made = world.put(FIRST, create("scratch", Kind::File, 0o644, keep().and(PutMode::REMOVE))).unwrap();
    std::fs::write(world.host("precious"), "keep me").unwrap();
    std::fs::rename(world.host("precious"), world.host("scratch")).unwrap();
    let id = made.stat.unwrap().id;
    world.put(FIRST, put(open_as("scratch", made.fd, id), PutMode::NONE)).unwrap();
    assert_eq!(std::fs::read(world.host("scratch")).unwrap(), b"keep me");
}

#[test]
fn a_full_table_returns_no_fd_and_fds_are_reused() {
    let world = World::new();
    std::fs::write(world.host("file"), "data").unwrap();
    let open =
        || world.get(FIRST, get(at("file"), GetMode::STAT.and(GetMode::MORE), 0, 0)).unwrap().remove(0);
    let mut kept = Vec::new();
    let refused = loop {
        let got = open();
        if got.fd == NOFD {
            break got;
        }
        kept.push(got.fd);
        assert!(kept.len() <= wirefs_op::limits::FDS_MAX);
    };
    let id = refused.stat.unwrap().id;
    assert_eq!(world.read(FIRST, open_as("file", NOFD, id), 0, 9).unwrap(), b"data");
    let nameless = create("", Kind::File, 0o600, keep().and(PutMode::NAMELESS));
    assert_eq!(world.put(FIRST, nameless), Err(Errno::TooManyOpen));
    let mut unique: Vec<_> = kept.iter().map(|fd| fd.0).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), kept.len());
    world.get(FIRST, get(open_as("file", kept[0], id), GetMode::STAT, 0, 0)).unwrap();
    assert!(is_open(open().fd));
}

#[test]
fn an_empty_request_closes_its_fd_even_without_an_id() {
    let world = World::new();
    let kept = world.put(FIRST, put_kept(create("file", Kind::File, 0o644, PutMode::NONE))).unwrap();
    let by_number = || Target { fd: kept.fd, ..at("file") };
    let got = world.get(FIRST, get(by_number(), GetMode::STAT.and(GetMode::MORE), 0, 0)).unwrap();
    assert_eq!(got[0].fd, kept.fd);
    let got = world.get(FIRST, get(by_number(), GetMode::NONE, 0, 0)).unwrap();
    assert_eq!((got[0].stat, is_open(got[0].fd)), (None, false));
    world.remove(FIRST, "file").unwrap();
    let open = open_as("file", kept.fd, kept.stat.unwrap().id);
    assert_eq!(world.stat(FIRST, open), Err(Errno::Stale));
}
