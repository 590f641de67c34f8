//! Leases on objects of a host directory, and touches before changes.

use crate::harness::*;
use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wirefs_hostfs::{DetectionMode, HostOptions, WatchKind};
use wirefs_op::message::get::{GetMode, GotMode, Rget};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::Trename;
use wirefs_op::wire::Data;
use wirefs_op::{DirEntry, FileId, Kind, Reply, Request, Stat};
use wirefs_server::{ExternalChange, Parked, Replies, SessionKey, Stopped, Touched, Tree};

/// Longer than any watcher takes for a report.
const PATIENCE: Duration = Duration::from_secs(20);

/// Grants every lease.
#[derive(Default)]
struct GrantingReplies {
    replies: Vec<Reply>,
    places: Vec<FileId>,
    changed: Vec<(Touched, Option<u64>, Option<u64>)>,
}

impl Replies for GrantingReplies {
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

fn world(detection: DetectionMode, prepare: impl FnOnce(&Path)) -> World {
    World::with(HostOptions { detection, ..HostOptions::all_rights() }, prepare)
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
    let world = world(DetectionMode::Watched(kind), prepare);
    let (sender, reports) = channel();
    world.tree.observe(Box::new(move |outside| drop(sender.send(outside))));
    (world, reports)
}

fn ask(world: &World, request: Request) -> GrantingReplies {
    let mut replies = GrantingReplies::default();
    world.tree.serve(FIRST, request, &mut replies);
    replies
}

fn got(collected: &GrantingReplies) -> &Rget {
    match collected.replies.as_slice() {
        [Reply::Get(got)] => got,
        other => panic!("{other:?}"),
    }
}

fn is_leased(world: &World, name: &str, mode: GetMode) -> bool {
    let collected = ask(world, Request::Get(get(at(name), GetMode::STAT.and(mode), 0, 1000)));
    got(&collected).stat.unwrap().leased
}

fn leased_entries(world: &World) -> Vec<(String, bool)> {
    let collected = ask(world, Request::Get(get(at(""), GetMode::DATA, 0, 10_000)));
    let entries = wirefs_op::listing::entries(got(&collected).data.0.clone()).unwrap();
    let reports = |DirEntry { name, stat, .. }| (String::from_utf8(name).unwrap(), stat.leased);
    let mut entries: Vec<_> = entries.into_iter().map(reports).collect();
    entries.sort();
    entries
}

/// Waits for a report of this object.
fn await_report(reports: &Receiver<ExternalChange>, of: FileId) -> Option<u64> {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match reports.recv_timeout(left).expect("it was not reports") {
            ExternalChange::Changed { id, version, .. } if id == of => return version,
            ExternalChange::Changed { .. } | ExternalChange::Lost => {}
        }
    }
}

#[test]
fn no_leases_without_detection() {
    for detection in [DetectionMode::Nothing, DetectionMode::Watched(WatchKind::Nothing)] {
        let world = world(detection, prepare);
        world.tree.observe(Box::new(|_| {}));
        assert_eq!(world.tree.leases(), None);
        assert!(!is_leased(&world, "file", GetMode::NONE));
        assert!(leased_entries(&world).iter().all(|(_, is_leased)| !is_leased));
        assert!(!world.tree.attach(SessionKey(9), &path("")).unwrap().root.leased);
    }
}

#[test]
fn exclusive_directory_is_leased_completely() {
    let world = world(DetectionMode::Exclusive, prepare);
    assert!(world.tree.leases().is_some());
    for name in ["file", "one", "sub", "", "sub/inner"] {
        for mode in [GetMode::NONE, GetMode::DATA, GetMode::MORE] {
            assert!(is_leased(&world, name, mode), "{name} {mode:?}");
        }
    }
    assert!(leased_entries(&world).iter().all(|(_, is_leased)| *is_leased));
    assert!(world.tree.attach(SessionKey(9), &path("")).unwrap().root.leased);
}

#[test]
fn lookups_lease_the_names_of_their_directory() {
    let world = world(DetectionMode::Exclusive, prepare);
    for (name, is_there) in [("sub/inner", true), ("sub/missing", false)] {
        let collected = ask(&world, Request::Get(get(at(name), GetMode::STAT.and(GetMode::ENTRY), 0, 0)));
        let got = got(&collected);
        assert!(got.mode.has(GotMode::PLACE), "{name}");
        assert_eq!(got.mode.has(GotMode::ABSENT), !is_there);
        assert_eq!(got.stat.map(|stat| stat.leased), is_there.then_some(true));
    }
}

#[test]
fn watched_file_system_is_leased_completely() {
    need_root();
    let (world, reports) = watched(WatchKind::Filesystem);
    for name in ["file", "one", "sub", "", "sub/inner"] {
        assert!(is_leased(&world, name, GetMode::NONE), "{name}");
    }
    assert!(leased_entries(&world).iter().all(|(_, is_leased)| *is_leased));
    let file = world.stat(FIRST, at("file")).unwrap().id;
    // By another process: changes by this one are the server's own.
    let program = Command::new("truncate").arg("--size=3").arg(world.host("file")).status().unwrap();
    assert!(program.success());
    await_report(&reports, file);
}

/// Runs a script in another process: changes by this one are the server's own.
fn run(world: &World, script: &str) {
    let mut command = Command::new("sh");
    assert!(command.args(["-euc", script]).current_dir(world.host("")).status().unwrap().success());
}

/// Another program writes to this file, and then creates a name in "sub", until the name is reported. Returns whether
/// the write was. Names are never ignored, and events keep their order.
fn is_write_reported(world: &World, reports: &Receiver<ExternalChange>, name: &str) -> bool {
    let [id, dir] = [name, "sub"].map(|name| world.stat(FIRST, at(name)).unwrap().id);
    run(world, &format!("printf x >>{name}; mktemp sub/markerXXXXXX"));
    let mut reported = false;
    loop {
        match reports.recv_timeout(PATIENCE).expect("the new name was not reported") {
            ExternalChange::Changed { id: changed, name: Some(_), .. } if changed == dir => return reported,
            ExternalChange::Changed { id: changed, name: None, .. } => reported |= changed == id,
            ExternalChange::Changed { .. } => {}
            ExternalChange::Lost => panic!("lost"),
        }
    }
}

/// A log that no client reads does not wake the server. A client that reads it gets a lease, and its changes are
/// reported again.
#[test]
fn a_busy_file_is_ignored_until_a_client_reads_it() {
    need_root();
    let (world, reports) = watched(WatchKind::Filesystem);
    let limit = 400;
    let rounds = (0..limit).find(|_| !is_write_reported(&world, &reports, "file"));
    assert!(rounds.is_some_and(|rounds| rounds >= 16), "{rounds:?}");
    assert!(!is_leased(&world, "file", GetMode::NONE), "what was ignored may have changed unseen");
    assert!(is_leased(&world, "file", GetMode::NONE));
    assert!(is_write_reported(&world, &reports, "file"));
    // Changes of its names are still reported.
    let root = world.stat(FIRST, at("")).unwrap().id;
    run(&world, "mv file moved");
    await_report(&reports, root);
}

#[test]
fn directory_watches_cover_entries_with_one_name() {
    for kind in [WatchKind::Directories, WatchKind::DirectoriesAndOwn] {
        let (world, reports) = watched(kind);
        let expected = [("file", true), ("one", false), ("sub", false), ("two", false)];
        assert_eq!(leased_entries(&world), expected.map(|(name, is)| (name.to_string(), is)));
        // Objects that are read by themselves get their own watches.
        for name in ["file", "one", "sub", "", "sub/inner"] {
            assert!(is_leased(&world, name, GetMode::MORE), "{name}");
        }
        let [one, inner] = ["one", "sub/inner"].map(|name| world.stat(FIRST, at(name)).unwrap().id);
        run(&world, "printf 'by the other name' >two");
        await_report(&reports, one);
        run(&world, "printf below >sub/inner");
        await_report(&reports, inner);
    }
}

#[test]
fn lease_on_an_entry_includes_its_watched_directory() {
    let (world, _told) = watched(WatchKind::Directories);
    let sub = world.stat(FIRST, at("sub")).unwrap().id;
    let collected = ask(&world, Request::Get(get(at("sub/inner"), GetMode::STAT, 0, 0)));
    assert!(got(&collected).stat.unwrap().leased && collected.places.contains(&sub));
}

#[test]
fn own_changes_are_reported_with_their_version() {
    let (world, reports) = watched(WatchKind::DirectoriesAndOwn);
    leased_entries(&world);
    let file = world.stat(FIRST, at("file")).unwrap();
    let collected = ask(&world, Request::Put(write(at("file"), 0, b"more than before")));
    let [(touched, before, after)] = collected.changed.as_slice() else { panic!("{:?}", collected.changed) };
    assert_eq!((touched, *before), (&Touched::object(file.id), Some(file.version)));
    assert_eq!(await_report(&reports, file.id), *after);
    let root = world.stat(FIRST, at("")).unwrap();
    let collected = ask(&world, Request::Put(create("new", Kind::File, 0o644, PutMode::EXCLUSIVE)));
    let named = collected.changed.iter().find(|(touched, ..)| touched.id == root.id).unwrap();
    assert_eq!((&named.0, named.1), (&Touched::name(root.id, b"new"), Some(root.version)));
    assert_eq!(await_report(&reports, root.id), named.2);
}

#[test]
fn objects_that_lose_a_name_by_an_own_change_are_reported() {
    let (world, reports) = watched(WatchKind::DirectoriesAndOwn);
    let ids = ["file", "one", "sub", "sub/inner"].map(|name| {
        assert!(is_leased(&world, name, GetMode::MORE), "{name}");
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
        let collected = ask(&world, request);
        let own = collected.changed.iter().find(|(touched, ..)| *touched == Touched::object(id));
        let after = own.unwrap_or_else(|| panic!("{step}: {:?}", collected.changed)).2;
        assert_eq!(after.is_some(), id == one.id, "one has another name");
        // The others are watched through their directory, which reports only the name.
        while [one.id, sub.id].contains(&id) && await_report(&reports, id) != after {}
    }
}

#[test]
fn verified_attributes_have_their_present_version() {
    let (world, _told) = watched(WatchKind::DirectoriesAndOwn);
    assert!(is_leased(&world, "sub", GetMode::MORE));
    let sub = world.stat(FIRST, at("sub")).unwrap();
    let mut seen = Vec::new();
    world.tree.verify(sub.id, None, &mut |outside| seen.push(outside));
    let file = world.stat(FIRST, at("file")).unwrap();
    world.tree.verify(file.id, None, &mut |outside| seen.push(outside));
    let expected = [(sub.id, Some(sub.version)), (file.id, None)];
    assert_eq!(seen, expected.map(|(id, version)| ExternalChange::Changed { id, name: None, version }));
}

#[test]
fn recently_reported_objects_are_verified_by_name() {
    let (world, reports) = watched(WatchKind::DirectoriesAndOwn);
    leased_entries(&world);
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
    await_report(&reports, file.id);
    assert_eq!(look(file.id), Some(file.version));
    // The name may refer to another object.
    std::fs::remove_file(world.host("file")).unwrap();
    std::fs::write(world.host("file"), "another").unwrap();
    assert_eq!(look(file.id), None);
}

#[test]
fn removal_at_a_close_is_reported_with_its_version() {
    let (world, reports) = watched(WatchKind::DirectoriesAndOwn);
    leased_entries(&world);
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
        let collected = ask(&world, closing);
        let removed = Touched::name(root.id, name.as_bytes());
        let own = collected.changed.iter().find(|(touched, ..)| *touched == removed);
        let after = own.unwrap_or_else(|| panic!("{:?}", collected.changed)).2;
        while await_report(&reports, root.id) != after {}
    }
}

#[test]
fn removals_at_the_end_of_a_session_are_reported() {
    let (world, reports) = {
        let world = world(DetectionMode::Exclusive, prepare);
        let (sender, reports) = channel();
        world.tree.observe(Box::new(move |outside| drop(sender.send(outside))));
        (world, reports)
    };
    let [root, file] = ["", "file"].map(|name| world.stat(FIRST, at(name)).unwrap().id);
    let kept = world.put(FIRST, put(at("file"), PutMode::REMOVE.and(keep()))).unwrap();
    assert!(is_open(kept.fd));
    assert!(reports.try_recv().is_err());
    world.tree.end(FIRST);
    let name = Some(bytes::Bytes::from_static(b"file"));
    assert_eq!(reports.try_recv(), Ok(ExternalChange::Changed { id: root, name, version: None }));
    assert_eq!(reports.try_recv(), Ok(ExternalChange::Changed { id: file, name: None, version: None }));
    assert!(!world.host("file").exists());
}

/// Notes the leases of one session for another one.
struct NotingReplies<'a> {
    leased: &'a Mutex<HashSet<FileId>>,
}

impl Replies for NotingReplies<'_> {
    fn send(&mut self, _: Reply) -> Result<(), Stopped> {
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.leased.lock().unwrap().extend(stats.map(|stat| stat.id));
    }

    fn wait(&mut self) {}
}

/// Checks whether the touched objects are leased to another session.
struct CheckingReplies<'a> {
    leased: &'a Mutex<HashSet<FileId>>,
    objects: usize,
}

impl Replies for CheckingReplies<'_> {
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
                !self.leased.lock().unwrap().contains(&touched.id),
                "leased before its creator touched it"
            );
        }
        Ok(())
    }

    fn wait(&mut self) {}
}

/// Signals the end, also if the test fails.
struct SignalEnd<'a>(&'a AtomicBool);

impl Drop for SignalEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn new_object_is_not_leased_before_its_creator_has_touched_it() {
    const DIRECTORIES: usize = 60;
    const FILES: usize = 50;
    let world = world(DetectionMode::Exclusive, |dir| {
        (0..DIRECTORIES).for_each(|number| std::fs::create_dir(dir.join(number.to_string())).unwrap());
    });
    let leased = Mutex::new(HashSet::new());
    let (present, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _ends = SignalEnd(&is_over);
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let dir = present.load(Ordering::SeqCst).to_string();
                    let request = Request::Get(get(at(&dir), GetMode::DATA, 0, 1 << 20));
                    world.tree.serve(SECOND, request, &mut NotingReplies { leased: &leased });
                }
            });
        }
        for number in 0..DIRECTORIES * FILES {
            present.store(number / FILES, Ordering::SeqCst);
            let name = format!("{}/{number}", number / FILES);
            let mut request = create(&name, Kind::File, 0o644, PutMode::EXCLUSIVE.and(PutMode::DATA));
            request.data = Data(bytes::Bytes::from_static(b"written with it"));
            let mut checking = CheckingReplies { leased: &leased, objects: 0 };
            world.tree.serve(FIRST, Request::Put(request), &mut checking);
            assert_eq!(checking.objects, 1);
        }
    });
    assert!(leased.lock().unwrap().len() > FILES, "the readers got leases");
}

/// Parks each request.
struct ParkingReplies(Arc<AtomicUsize>);

impl Replies for ParkingReplies {
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
fn parked_request_has_no_effect_and_no_reply() {
    let world = world(DetectionMode::Exclusive, prepare);
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
        world.tree.serve(FIRST, request, &mut ParkingReplies(Arc::clone(&times)));
    }
    assert_eq!(times.load(Ordering::SeqCst), 4);
    assert_eq!(["", "file", "sub"].map(stat), before);
}
