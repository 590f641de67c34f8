//! What clients are promised to hear of, and what the server says before it changes something.

use crate::harness::*;
use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wirefs_hostfs::{HostOptions, Notice, WatchKind};
use wirefs_op::message::get::{GetMode, GotMode, Rget};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::Trename;
use wirefs_op::wire::Data;
use wirefs_op::{DirEntry, FileId, Kind, Reply, Request, Stat};
use wirefs_server::{ExternalChange, Parked, Replies, SessionKey, Stopped, Touched, Tree};

/// Longer than any watch takes to tell.
const PATIENCE: Duration = Duration::from_secs(20);

/// Promises whatever it is asked to.
#[derive(Default)]
struct Promising {
    replies: Vec<Reply>,
    places: Vec<FileId>,
    changed: Vec<(Touched, Option<u64>, Option<u64>)>,
}

impl Replies for Promising {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.replies.push(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        stats.for_each(|stat| stat.leased = true);
    }

    fn grant_names(&mut self, dir: FileId) -> bool {
        self.places.push(dir);
        true
    }

    fn changed(&mut self, touched: &Touched, before: Option<u64>, after: Option<u64>) {
        self.changed.push((touched.clone(), before, after));
    }

    fn wait(&mut self) {}
}

fn world(notice: Notice, prepare: impl FnOnce(&Path)) -> World {
    World::with(HostOptions { notice, ..HostOptions::default() }, prepare)
}

/// A file, a file with two names, a directory with a file.
fn prepare(dir: &Path) {
    std::fs::write(dir.join("file"), "contents").unwrap();
    std::fs::write(dir.join("one"), "two names").unwrap();
    std::fs::hard_link(dir.join("one"), dir.join("two")).unwrap();
    std::fs::create_dir(dir.join("sub")).unwrap();
    std::fs::write(dir.join("sub/inner"), "").unwrap();
}

fn watched(kind: WatchKind) -> (World, Receiver<ExternalChange>) {
    let world = world(Notice::Watched(kind), prepare);
    let (sender, told) = channel();
    world.tree.observe(Box::new(move |outside| drop(sender.send(outside))));
    (world, told)
}

fn ask(world: &World, request: Request) -> Promising {
    let mut replies = Promising::default();
    world.tree.serve(FIRST, request, &mut replies);
    replies
}

fn got(promising: &Promising) -> &Rget {
    match promising.replies.as_slice() {
        [Reply::Get(got)] => got,
        other => panic!("{other:?}"),
    }
}

fn is_promised(world: &World, name: &str, mode: GetMode) -> bool {
    let promising = ask(world, Request::Get(get(at(name), GetMode::STAT.and(mode), 0, 1000)));
    got(&promising).stat.unwrap().leased
}

fn promised_entries(world: &World) -> Vec<(String, bool)> {
    let promising = ask(world, Request::Get(get(at(""), GetMode::DATA, 0, 10_000)));
    let entries = wirefs_op::listing::entries(got(&promising).data.0.clone()).unwrap();
    let told = |DirEntry { name, stat, .. }| (String::from_utf8(name).unwrap(), stat.leased);
    let mut entries: Vec<_> = entries.into_iter().map(told).collect();
    entries.sort();
    entries
}

/// Waits until something is told about this object.
fn await_told(told: &Receiver<ExternalChange>, of: FileId) -> Option<u64> {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match told.recv_timeout(left).expect("it was not told") {
            ExternalChange::Changed { id, version, .. } if id == of => return version,
            ExternalChange::Changed { .. } | ExternalChange::Lost => {}
        }
    }
}

#[test]
fn nothing_is_promised_where_changes_are_not_noticed() {
    for notice in [Notice::Nothing, Notice::Watched(WatchKind::Nothing)] {
        let world = world(notice, prepare);
        world.tree.observe(Box::new(|_| {}));
        assert_eq!(world.tree.leases(), None);
        assert!(!is_promised(&world, "file", GetMode::NONE));
        assert!(promised_entries(&world).iter().all(|(_, is_promised)| !is_promised));
        assert!(!world.tree.attach(SessionKey(9), &path("")).unwrap().root.leased);
    }
}

#[test]
fn all_is_promised_where_nobody_else_changes_anything() {
    let world = world(Notice::Exclusive, prepare);
    assert!(world.tree.leases().is_some());
    for name in ["file", "one", "sub", "", "sub/inner"] {
        for mode in [GetMode::NONE, GetMode::DATA, GetMode::MORE] {
            assert!(is_promised(&world, name, mode), "{name} {mode:?}");
        }
    }
    assert!(promised_entries(&world).iter().all(|(_, is_promised)| *is_promised));
    assert!(world.tree.attach(SessionKey(9), &path("")).unwrap().root.leased);
}

#[test]
fn lookups_tell_whether_their_directory_is_promised() {
    let world = world(Notice::Exclusive, prepare);
    for (name, is_there) in [("sub/inner", true), ("sub/missing", false)] {
        let promising = ask(&world, Request::Get(get(at(name), GetMode::STAT.and(GetMode::ENTRY), 0, 0)));
        let got = got(&promising);
        assert!(got.mode.has(GotMode::PLACE), "{name}");
        assert_eq!(got.mode.has(GotMode::ABSENT), !is_there);
        assert_eq!(got.stat.map(|stat| stat.leased), is_there.then_some(true));
    }
}

#[test]
fn with_a_watch_of_the_file_system_all_on_it_is_promised() {
    need_root();
    let (world, told) = watched(WatchKind::Filesystem);
    for name in ["file", "one", "sub", "", "sub/inner"] {
        assert!(is_promised(&world, name, GetMode::NONE), "{name}");
    }
    assert!(promised_entries(&world).iter().all(|(_, is_promised)| *is_promised));
    let file = world.stat(FIRST, at("file")).unwrap().id;
    // By another process: what this one does is the server's own.
    let program = Command::new("truncate").arg("--size=3").arg(world.host("file")).status().unwrap();
    assert!(program.success());
    await_told(&told, file);
}

/// Lets another program do something: what this one does is the server's own.
fn run(world: &World, script: &str) {
    let mut command = Command::new("sh");
    assert!(command.args(["-euc", script]).current_dir(world.host("")).status().unwrap().success());
}

/// Another program writes to this file, and then to "sub/inner", until the second write is reported. Whether the first was.
fn is_write_reported(world: &World, told: &Receiver<ExternalChange>, name: &str) -> bool {
    let [id, marker] = [name, "sub/inner"].map(|name| world.stat(FIRST, at(name)).unwrap().id);
    run(world, &format!("printf x >>{name}; printf x >>sub/inner"));
    let mut reported = false;
    loop {
        match told.recv_timeout(PATIENCE).expect("the marker was not reported") {
            ExternalChange::Changed { id: changed, name: None, .. } if changed == marker => return reported,
            ExternalChange::Changed { id: changed, name: None, .. } => reported |= changed == id,
            ExternalChange::Changed { .. } => {}
            ExternalChange::Lost => panic!("lost"),
        }
    }
}

/// A log that no client reads does not keep the server awake; a client that reads it gets a lease, and hears of changes again.
#[test]
fn a_busy_file_is_ignored_until_a_client_asks_for_it() {
    need_root();
    let (world, told) = watched(WatchKind::Filesystem);
    let limit = 400;
    // The marker is as busy as the file: a client asks for it each time.
    let rounds = (0..limit).find(|_| {
        is_promised(&world, "sub/inner", GetMode::NONE);
        !is_write_reported(&world, &told, "file")
    });
    assert!(rounds.is_some_and(|rounds| rounds >= 16), "{rounds:?}");
    assert!(!is_promised(&world, "file", GetMode::NONE), "what was ignored may have changed unseen");
    assert!(is_promised(&world, "file", GetMode::NONE));
    assert!(is_write_reported(&world, &told, "file"));
    // What happens to its names is reported all the same.
    let root = world.stat(FIRST, at("")).unwrap().id;
    run(&world, "mv file moved");
    await_told(&told, root);
}

#[test]
fn with_watches_of_directories_entries_with_one_name_are_promised() {
    for kind in [WatchKind::Directories, WatchKind::DirectoriesAndOwn] {
        let (world, told) = watched(kind);
        let expected = [("file", true), ("one", false), ("sub", false), ("two", false)];
        assert_eq!(promised_entries(&world), expected.map(|(name, is)| (name.to_string(), is)));
        // Asked for by themselves they are watched by themselves.
        for name in ["file", "one", "sub", "", "sub/inner"] {
            assert!(is_promised(&world, name, GetMode::MORE), "{name}");
        }
        let [one, inner] = ["one", "sub/inner"].map(|name| world.stat(FIRST, at(name)).unwrap().id);
        run(&world, "printf 'by the other name' >two");
        await_told(&told, one);
        run(&world, "printf below >sub/inner");
        await_told(&told, inner);
    }
}

#[test]
fn who_is_promised_an_entry_is_promised_its_directory_where_that_is_what_is_watched() {
    let (world, _told) = watched(WatchKind::Directories);
    let sub = world.stat(FIRST, at("sub")).unwrap().id;
    let promising = ask(&world, Request::Get(get(at("sub/inner"), GetMode::STAT, 0, 0)));
    assert!(got(&promising).stat.unwrap().leased && promising.places.contains(&sub));
}

#[test]
fn own_changes_are_told_with_the_version_that_they_left() {
    let (world, told) = watched(WatchKind::DirectoriesAndOwn);
    promised_entries(&world);
    let file = world.stat(FIRST, at("file")).unwrap();
    let promising = ask(&world, Request::Put(write(at("file"), 0, b"more than before")));
    let [(touched, before, after)] = promising.changed.as_slice() else { panic!("{:?}", promising.changed) };
    assert_eq!((touched, *before), (&Touched::object(file.id), Some(file.version)));
    assert_eq!(await_told(&told, file.id), *after);
    let root = world.stat(FIRST, at("")).unwrap();
    let promising = ask(&world, Request::Put(create("new", Kind::File, 0o644, PutMode::EXCLUSIVE)));
    let named = promising.changed.iter().find(|(touched, ..)| touched.id == root.id).unwrap();
    assert_eq!((&named.0, named.1), (&Touched::name(root.id, b"new"), Some(root.version)));
    assert_eq!(await_told(&told, root.id), named.2);
}

#[test]
fn what_an_own_change_takes_a_name_from_is_told_with_what_is_left_of_it() {
    let (world, told) = watched(WatchKind::DirectoriesAndOwn);
    let ids = ["file", "one", "sub", "sub/inner"].map(|name| {
        assert!(is_promised(&world, name, GetMode::MORE), "{name}");
        world.stat(FIRST, at(name)).unwrap()
    });
    let [file, one, sub, inner] = ids;
    let removals = [
        (file.id, Request::Remove(Tremove { place: place("file"), directory: false })),
        (one.id, Request::Remove(Tremove { place: place("one"), directory: false })),
        (inner.id, Request::Rename(Trename { from: place("two"), to: place("sub/inner"), flags: 0 })),
        (sub.id, Request::Remove(Tremove { place: place("sub"), directory: true })),
    ];
    for (step, (id, request)) in removals.into_iter().enumerate() {
        if step == 3 {
            std::fs::remove_file(world.host("sub/inner")).unwrap();
        }
        let promising = ask(&world, request);
        let own = promising.changed.iter().find(|(touched, ..)| *touched == Touched::object(id));
        let after = own.unwrap_or_else(|| panic!("{step}: {:?}", promising.changed)).2;
        assert_eq!(after.is_some(), id == one.id, "one has another name");
        // The others are watched through their directory, which tells of the name alone.
        while [one.id, sub.id].contains(&id) && await_told(&told, id) != after {}
    }
}

#[test]
fn attributes_that_are_looked_at_again_have_their_present_version() {
    let (world, _told) = watched(WatchKind::DirectoriesAndOwn);
    assert!(is_promised(&world, "sub", GetMode::MORE));
    let sub = world.stat(FIRST, at("sub")).unwrap();
    let mut seen = Vec::new();
    world.tree.verify(sub.id, None, &mut |outside| seen.push(outside));
    let file = world.stat(FIRST, at("file")).unwrap();
    world.tree.verify(file.id, None, &mut |outside| seen.push(outside));
    let expected = [(sub.id, Some(sub.version)), (file.id, None)];
    assert_eq!(seen, expected.map(|(id, version)| ExternalChange::Changed { id, name: None, version }));
}

#[test]
fn what_was_told_of_in_a_directory_is_looked_at_again_where_it_was() {
    let (world, told) = watched(WatchKind::DirectoriesAndOwn);
    promised_entries(&world);
    let look = |id| {
        let mut seen = Vec::new();
        world.tree.verify(id, None, &mut |outside| seen.push(outside));
        match seen.as_slice() {
            [ExternalChange::Changed { version, .. }] => *version,
            other => panic!("{other:?}"),
        }
    };
    ask(&world, Request::Put(write(at("file"), 0, b"more than before")));
    let file = world.stat(FIRST, at("file")).unwrap();
    await_told(&told, file.id);
    assert_eq!(look(file.id), Some(file.version));
    // Its place may have become another's.
    std::fs::remove_file(world.host("file")).unwrap();
    std::fs::write(world.host("file"), "another").unwrap();
    assert_eq!(look(file.id), None);
}

#[test]
fn removal_at_a_close_is_told_with_the_version_that_it_left() {
    let (world, told) = watched(WatchKind::DirectoriesAndOwn);
    promised_entries(&world);
    let root = world.stat(FIRST, at("")).unwrap();
    for closes_by_get in [true, false] {
        let name = if closes_by_get { "file" } else { "one" };
        let id = world.stat(FIRST, at(name)).unwrap().id;
        let kept = world.put(FIRST, put(at(name), PutMode::REMOVE.and(keep()))).unwrap();
        let target = open_as(name, kept.fd, id);
        let closing = match closes_by_get {
            true => Request::Get(get(target, GetMode::STAT, 0, 0)),
            false => Request::Put(write(target, 0, b"last words")),
        };
        let promising = ask(&world, closing);
        let removed = Touched::name(root.id, name.as_bytes());
        let own = promising.changed.iter().find(|(touched, ..)| *touched == removed);
        let after = own.unwrap_or_else(|| panic!("{:?}", promising.changed)).2;
        while await_told(&told, root.id) != after {}
    }
}

#[test]
fn what_the_end_of_a_session_removes_is_told() {
    let (world, told) = {
        let world = world(Notice::Exclusive, prepare);
        let (sender, told) = channel();
        world.tree.observe(Box::new(move |outside| drop(sender.send(outside))));
        (world, told)
    };
    let [root, file] = ["", "file"].map(|name| world.stat(FIRST, at(name)).unwrap().id);
    let kept = world.put(FIRST, put(at("file"), PutMode::REMOVE.and(keep()))).unwrap();
    assert!(is_open(kept.fd));
    assert!(told.try_recv().is_err());
    world.tree.end(FIRST);
    let name = Some(bytes::Bytes::from_static(b"file"));
    assert_eq!(told.try_recv(), Ok(ExternalChange::Changed { id: root, name, version: None }));
    assert_eq!(told.try_recv(), Ok(ExternalChange::Changed { id: file, name: None, version: None }));
    assert!(!world.host("file").exists());
}

/// Notes what is promised to one session, for another to look at.
struct Noting<'a> {
    promised: &'a Mutex<HashSet<FileId>>,
}

impl Replies for Noting<'_> {
    fn send(&mut self, _: Reply) -> Result<(), Stopped> {
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.promised.lock().unwrap().extend(stats.map(|stat| stat.id));
    }

    fn wait(&mut self) {}
}

/// Looks whether what it touches was promised to another.
struct Looking<'a> {
    promised: &'a Mutex<HashSet<FileId>>,
    objects: usize,
}

impl Replies for Looking<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        assert!(matches!(reply, Reply::Put(_)), "{reply:?}");
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        for touched in touched.iter().filter(|touched| touched.name.is_none()) {
            self.objects += 1;
            assert!(
                !self.promised.lock().unwrap().contains(&touched.id),
                "promised before its maker knew it"
            );
        }
        Ok(())
    }

    fn wait(&mut self) {}
}

/// Says that it is over, also when what it stands in fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn nobody_is_promised_a_new_object_before_its_maker_has_touched_it() {
    const DIRECTORIES: usize = 60;
    const FILES: usize = 50;
    let world = world(Notice::Exclusive, |dir| {
        (0..DIRECTORIES).for_each(|number| std::fs::create_dir(dir.join(number.to_string())).unwrap());
    });
    let promised = Mutex::new(HashSet::new());
    let (present, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _ends = Ends(&is_over);
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let dir = present.load(Ordering::SeqCst).to_string();
                    let request = Request::Get(get(at(&dir), GetMode::DATA, 0, 1 << 20));
                    world.tree.serve(SECOND, request, &mut Noting { promised: &promised });
                }
            });
        }
        for number in 0..DIRECTORIES * FILES {
            present.store(number / FILES, Ordering::SeqCst);
            let name = format!("{}/{number}", number / FILES);
            let mut request = create(&name, Kind::File, 0o644, PutMode::EXCLUSIVE.and(PutMode::DATA));
            request.data = Data(bytes::Bytes::from_static(b"written with it"));
            let mut looking = Looking { promised: &promised, objects: 0 };
            world.tree.serve(FIRST, Request::Put(request), &mut looking);
            assert_eq!(looking.objects, 1);
        }
    });
    assert!(promised.lock().unwrap().len() > FILES, "the readers have seen something");
}

/// Puts each request aside.
struct Refusing(Arc<AtomicUsize>);

impl Replies for Refusing {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        panic!("{reply:?}")
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn touch(&mut self, _: &[Touched]) -> Result<(), Parked> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(Parked)
    }

    fn wait(&mut self) {}
}

#[test]
fn what_is_put_aside_has_changed_nothing_and_said_nothing() {
    let world = world(Notice::Exclusive, prepare);
    let stat = |name| world.stat(FIRST, at(name)).unwrap().unleased();
    let before = ["", "file", "sub"].map(stat);
    let times = Arc::new(AtomicUsize::new(0));
    let requests = [
        Request::Put(write(at("file"), 0, b"x")),
        Request::Put(create("new", Kind::File, 0o644, PutMode::DATA)),
        Request::Put(create("new", Kind::Directory, 0o755, PutMode::NONE)),
        Request::Remove(wirefs_op::message::remove::Tremove { place: place("file"), directory: false }),
    ];
    for request in requests {
        world.tree.serve(FIRST, request, &mut Refusing(Arc::clone(&times)));
    }
    assert_eq!(times.load(Ordering::SeqCst), 4);
    assert_eq!(["", "file", "sub"].map(stat), before);
}
