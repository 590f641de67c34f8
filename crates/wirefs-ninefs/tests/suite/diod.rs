//! diod as the server.

use crate::op::{Attached, at, path};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use wirefs_lab::port::ReservedPort;
use wirefs_op::message::commit::{CommitScope, Tcommit};
use wirefs_op::message::get::{GetMode, GotMode};
use wirefs_op::message::link::Tlink;
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::{NOREPLACE, Trename};
use wirefs_op::message::statfs::Tstatfs;
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::wire::Data;
use wirefs_op::{
    Cred, Errno, FileId, Kind, LockFamily, LockKind, LockRange, Reply, Request, SetStat, SetTime, Timestamp,
};

/// A server of a directory of its own; both end with it.
struct Diod {
    child: Child,
    dir: PathBuf,
    port: ReservedPort,
}

impl Diod {
    fn start(name: &str) -> Diod {
        let dir = std::env::temp_dir().join(format!("wirefs-diod-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let port = ReservedPort::unused().unwrap();
        let child = Diod::spawn(&dir, port.number());
        Diod { child, dir, port }
    }

    /// Starts the program and waits until it listens.
    fn spawn(dir: &Path, port: u16) -> Child {
        let program = Path::new("/usr/sbin/diod");
        assert!(program.exists(), "the Debian package diod is installed (scripts/need test)");
        let mut child = Command::new(program)
            .args(["--foreground", "--no-auth", "--config-file", "/dev/null", "--logdest", "stderr"])
            .args(["--allsquash", "--squashuser", "root"])
            .arg("--export")
            .arg(dir)
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        // Until it listens, a connection is refused.
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert_eq!(child.try_wait().unwrap(), None, "diod ended");
            std::thread::yield_now();
        }
        child
    }

    fn restart(&mut self) {
        self.child = Diod::spawn(&self.dir, self.port.number());
    }

    fn attach(&self) -> Attached {
        Attached::to(&format!("9p://127.0.0.1:{}{}", self.port.number(), self.dir.display()))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Drop for Diod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn place(name: &str) -> Place {
    Place { path: path(name), dir: None }
}

fn create(
    tree: &Attached,
    name: &str,
    kind: Kind,
    mode: PutMode,
    data: &'static [u8],
) -> Result<Rput, Errno> {
    tree.put(Tput {
        target: at(name),
        mode: mode.and(PutMode::CREATE),
        create: Some(Create { kind, mode: 0o666, rdev: 0, cred: Cred { uid: 0, gid: 0, umask: 0o022 } }),
        set: SetStat::default(),
        offset: 0,
        data: Data(bytes::Bytes::from_static(data)),
    })
}

#[test]
fn files_are_created_written_read_cut_and_synced() {
    let diod = Diod::start("files");
    let tree = diod.attach();
    let opening = PutMode::MORE.and(PutMode::READ).and(PutMode::WRITE);
    let made = create(&tree, "f", Kind::File, opening.and(PutMode::EXCLUSIVE), b"").unwrap();
    assert_eq!((made.before, made.stat.unwrap().mode), (0, 0o644));
    let open = Target { fd: made.fd, id: made.stat.map(|stat| stat.id), ..at("f") };
    let contents: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    for (number, piece) in contents.chunks(128 * 1024).enumerate() {
        let put = tree.write(open.clone(), number as u64 * 128 * 1024, piece);
        assert_eq!((put.count as usize, put.fd), (piece.len(), open.fd));
    }
    assert!(std::fs::read(diod.file("f")).unwrap() == contents);
    assert!(tree.read(open.clone(), 0, 1 << 20).unwrap() == contents);
    assert_eq!(tree.read(open.clone(), 399_990, 100).unwrap(), contents[399_990..]);
    tree.ask(Request::Commit(Tcommit { target: open.clone(), scope: CommitScope::File })).unwrap();
    tree.close(open.clone());
    // A file that is there is opened, unless it must not be.
    assert_eq!(
        create(&tree, "f", Kind::File, opening.and(PutMode::EXCLUSIVE), b"").unwrap_err(),
        Errno::Exists
    );
    let again = create(&tree, "f", Kind::File, opening, b"").unwrap();
    assert_ne!(again.before, 0);
    // The fd of a closed file, and the id of another one.
    assert_eq!(tree.read(open, 0, 4).unwrap(), contents[..4]);
    let other = Target { id: Some(FileId { fs: 0, ino: 1, generation: 0 }), ..at("f") };
    assert_eq!(tree.read(other, 0, 4), Err(Errno::Stale));
    let append = Tput {
        target: at("f"),
        mode: PutMode::DATA.and(PutMode::APPEND),
        create: None,
        set: SetStat::default(),
        offset: 0,
        data: Data(bytes::Bytes::from_static(b"end")),
    };
    let put = tree.put(append).unwrap();
    assert_eq!((put.offset, put.count), (400_000, 3));
}

#[test]
fn attributes_are_read_and_changed() {
    let diod = Diod::start("attributes");
    let tree = diod.attach();
    std::fs::write(diod.file("f"), "contents").unwrap();
    let set = SetStat {
        mode: Some(0o4711),
        size: Some(3),
        mtime: Some(SetTime::At(Timestamp { secs: 2000, nanos: 5 })),
        ..SetStat::default()
    };
    let put =
        Tput { target: at("f"), mode: PutMode::STAT, create: None, set, offset: 0, data: Data::default() };
    let stat = tree.put(put).unwrap().stat.unwrap();
    assert_eq!((stat.mode, stat.size, stat.mtime), (0o4711, 3, Timestamp { secs: 2000, nanos: 5 }));
    let local = std::fs::metadata(diod.file("f")).unwrap();
    assert_eq!((local.permissions().mode() & 0o7777, local.len(), local.ino()), (0o4711, 3, stat.id.ino));
    let again = tree.get(at("f"), GetMode::STAT, 0, 0).unwrap()[0].stat.unwrap();
    assert_eq!(again.version, stat.version);
    std::fs::write(diod.file("f"), "changed").unwrap();
    let changed = tree.get(at("f"), GetMode::STAT, 0, 0).unwrap()[0].stat.unwrap();
    assert_ne!(changed.version, stat.version);
    match tree.ask(Request::Statfs(Tstatfs { target: at("") })).unwrap() {
        Reply::Statfs(statfs) => assert!(statfs.figures.blocks > 0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_are_made_listed_renamed_linked_and_removed() {
    let diod = Diod::start("names");
    let tree = diod.attach();
    create(&tree, "d", Kind::Directory, PutMode::NONE, b"").unwrap();
    create(&tree, "d/s", Kind::Symlink, PutMode::NONE, b"to/nowhere").unwrap();
    create(&tree, "d/p", Kind::Fifo, PutMode::NONE, b"").unwrap();
    create(&tree, "d/f", Kind::File, PutMode::DATA, b"contents").unwrap();
    assert_eq!(tree.names("d"), ["f", "p", "s"]);
    assert_eq!(tree.read(at("d/s"), 0, 4096).unwrap(), b"to/nowhere");
    assert_eq!(create(&tree, "d", Kind::Directory, PutMode::NONE, b"").unwrap_err(), Errno::Exists);
    tree.ask(Request::Link(Tlink { target: at("d/f"), to: place("hard") })).unwrap();
    let rename = |from: &str, to: &str, flags| {
        tree.ask(Request::Rename(Trename { from: place(from), to: place(to), flags })).map(drop)
    };
    assert_eq!(rename("d/f", "hard", NOREPLACE), Err(Errno::Exists));
    rename("d/f", "g", NOREPLACE).unwrap();
    assert_eq!(std::fs::read(diod.file("g")).unwrap(), b"contents");
    let remove = |name: &str, directory| {
        tree.ask(Request::Remove(Tremove { place: place(name), directory })).map(drop)
    };
    assert_eq!(remove("d", true), Err(Errno::NotEmpty));
    for name in ["d/s", "d/p", "g", "hard"] {
        remove(name, false).unwrap();
    }
    remove("d", true).unwrap();
    assert_eq!(remove("d", true), Err(Errno::NotFound));
    assert_eq!(tree.names(""), [""; 0]);
    let absent = tree.get(at("d"), GetMode::STAT.and(GetMode::ENTRY), 0, 0).unwrap();
    assert!(absent[0].mode.has(GotMode::ABSENT));
}

#[test]
fn a_long_directory_is_listed_once_and_goes_on_where_it_ended() {
    let diod = Diod::start("listing");
    let tree = diod.attach();
    let wanted: Vec<String> = (0..700).map(|number| format!("file {number:04}")).collect();
    wanted.iter().for_each(|name| std::fs::write(diod.file(name), "12345").unwrap());
    assert_eq!(tree.names(""), wanted);
    let (mut names, mut offset) = (Vec::new(), 0);
    loop {
        let got = tree.get(at(""), GetMode::DATA, offset, 10_000).unwrap();
        let is_end = got.last().is_some_and(|got| !got.mode.has(GotMode::MORE));
        for entry in got.into_iter().flat_map(|got| wirefs_op::listing::entries(got.data.0).unwrap()) {
            assert_eq!((entry.stat.size, entry.stat.kind), (5, Kind::File));
            offset = entry.next;
            names.push(String::from_utf8(entry.name).unwrap());
        }
        if is_end {
            break;
        }
    }
    names.sort();
    assert_eq!(names, wanted);
}

#[test]
fn locks_are_the_servers() {
    let diod = Diod::start("locks");
    let (one, two) = (diod.attach(), diod.attach());
    std::fs::write(diod.file("f"), "contents").unwrap();
    let opening = PutMode::MORE.and(PutMode::READ).and(PutMode::WRITE);
    let open = |tree: &Attached| {
        let put = Tput {
            target: at("f"),
            mode: opening,
            create: None,
            set: SetStat::default(),
            offset: 0,
            data: Data::default(),
        };
        let put = tree.put(put).unwrap();
        assert_ne!(put.fd, NOFD);
        Target { fd: put.fd, ..at("f") }
    };
    let (first, second) = (open(&one), open(&two));
    let lock = |target: &Target, kind, action| {
        let range = LockRange { kind, start: 0, end: u64::MAX, pid: 7 };
        Request::Lock(Tlock { target: target.clone(), action, family: LockFamily::Posix, owner: 7, range })
    };
    one.ask(lock(&first, LockKind::Write, LockAction::Set)).unwrap();
    assert_eq!(two.ask(lock(&second, LockKind::Read, LockAction::Set)), Err(Errno::WouldBlock));
    one.ask(lock(&first, LockKind::Unlock, LockAction::Set)).unwrap();
    match two.ask(lock(&second, LockKind::Write, LockAction::Wait)).unwrap() {
        Reply::Lock(Rlock { conflict: None, stat: Some(_) }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_comes_back_is_dialed_again_and_open_files_are_found() {
    let mut diod = Diod::start("again");
    let tree = diod.attach();
    std::fs::write(diod.file("f"), "contents").unwrap();
    let open = tree.open("f");
    assert_eq!(tree.read(open.clone(), 0, 8).unwrap(), b"contents");
    diod.child.kill().unwrap();
    diod.child.wait().unwrap();
    let failed = tree.read(open.clone(), 0, 8).unwrap_err();
    assert!(matches!(failed, Errno::HostDown | Errno::Io), "{failed:?}");
    diod.restart();
    assert_eq!(tree.read(open, 0, 8).unwrap(), b"contents");
}
