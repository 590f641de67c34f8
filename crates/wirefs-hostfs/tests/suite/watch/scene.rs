//! An exported directory on its own file system, a watcher on it, and the reports.

use crate::full_disk::Tmpfs;
use crate::harness::{FIRST, Scratch, World, at, need_root};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use wirefs_hostfs::{HostOptions, HostTree, WatchKind, Watcher};
use wirefs_op::message::version::BootId;
use wirefs_op::{FileId, Stat, TreePath};
use wirefs_server::{ExternalChange, Tree};

/// The kinds that detect changes.
pub(super) const KINDS: [WatchKind; 3] =
    [WatchKind::Filesystem, WatchKind::Directories, WatchKind::DirectoriesAndOwn];

/// The longest wait for an expected report.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The reports so far.
#[derive(Default)]
pub(super) struct Reports {
    all: Mutex<Vec<ExternalChange>>,
    news: Condvar,
    /// Locked by a test that blocks the watcher.
    pub(super) gate: Mutex<()>,
    is_held: AtomicBool,
    /// The duration of each report in µs.
    takes: AtomicU64,
}

impl Reports {
    pub(super) fn each_takes(&self, time: Duration) {
        self.takes.store(time.as_micros() as u64, Ordering::SeqCst);
    }

    pub(super) fn add(&self, outside: ExternalChange) {
        self.all.lock().unwrap().push(outside);
        self.news.notify_all();
        let takes = Duration::from_micros(self.takes.load(Ordering::SeqCst));
        if !takes.is_zero() {
            std::thread::park_timeout(takes);
        }
        if self.gate.try_lock().is_err() {
            self.is_held.store(true, Ordering::SeqCst);
            drop(self.gate.lock());
        }
    }

    /// Waits until the watcher is blocked.
    pub(super) fn wait_until_held(&self) {
        let start = Instant::now();
        while start.elapsed() < WAIT_MAX {
            if self.is_held.load(Ordering::SeqCst) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        panic!("nothing was reported");
    }

    pub(super) fn all(&self) -> MutexGuard<'_, Vec<ExternalChange>> {
        self.all.lock().unwrap()
    }

    /// Waits for a report that matches.
    pub(super) fn wait(&self, what: &str, is_it: impl Fn(&ExternalChange) -> bool) {
        let start = Instant::now();
        let mut all = self.all();
        let mut looked = 0;
        while start.elapsed() < WAIT_MAX {
            if all.iter().skip(looked).any(&is_it) {
                return;
            }
            looked = all.len();
            all = self.news.wait_timeout(all, WAIT_MAX).unwrap().0;
        }
        panic!("never reported: {what}; reported: {:?}", &all[..all.len().min(50)]);
    }
}

/// Dropped in this order: the watcher holds the file system.
pub(super) struct Scene {
    pub(super) watcher: Option<Watcher>,
    pub(super) reports: Arc<Reports>,
    _mount: Tmpfs,
    pub(super) world: World,
    sentinels: AtomicU64,
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Before the file system is unmounted, also if a test fails.
        drop(self.watcher.take());
    }
}

impl Scene {
    /// `script` fills the directory before it is watched; its root is watched.
    pub(super) fn new(kind: WatchKind, script: &str) -> Scene {
        need_root();
        let scratch = Scratch::new();
        let mount = Tmpfs::mount(scratch.path(), 64 << 20);
        let dir = scratch.path().join("dir");
        std::fs::create_dir(&dir).unwrap();
        run(&dir, script);
        let tree = HostTree::open(&dir, HostOptions::all_rights()).unwrap();
        tree.attach(FIRST, &TreePath::root()).unwrap();
        let reports = Arc::new(Reports::default());
        let watcher = watch_root(&dir, kind, &reports);
        assert_eq!(watcher.kind(), kind, "this kernel or this user cannot watch so");
        let scene = Scene {
            watcher: Some(watcher),
            reports,
            _mount: mount,
            world: World { scratch, tree },
            sentinels: AtomicU64::new(0),
        };
        scene.watch("");
        scene
    }

    pub(super) fn watcher(&self) -> &Watcher {
        self.watcher.as_ref().unwrap()
    }

    /// Runs a script of another program in the exported directory.
    pub(super) fn run(&self, script: &str) {
        run(&self.world.host(""), script);
    }

    /// Runs an action without a common command in another process: this test binary.
    pub(super) fn act(&self, what: &str, paths: &[&str]) {
        let paths: Vec<PathBuf> = paths.iter().map(|path| self.world.host(path)).collect();
        act(what, &paths);
    }

    pub(super) fn stat(&self, path: &str) -> Stat {
        self.world.stat(FIRST, at(path)).unwrap()
    }

    pub(super) fn id(&self, path: &str) -> FileId {
        self.stat(path).id
    }

    pub(super) fn try_watch(&self, path: &str) -> bool {
        self.watcher().watch(held(&self.world.host(path)).as_fd(), self.id(path))
    }

    pub(super) fn watch(&self, path: &str) {
        assert!(self.try_watch(path), "{path:?} cannot be watched");
    }

    pub(super) fn expect_object(&self, id: FileId, why: &str) {
        self.reports.wait(
            why,
            |outside| matches!(outside, ExternalChange::Changed { id: reported, name: None, .. } if *reported == id),
        );
    }

    pub(super) fn expect_name(&self, dir: FileId, name: &str) {
        self.reports.wait(name, |outside| is_name(outside, dir, name));
    }

    /// Waits until all changes so far have been reported.
    pub(super) fn settle(&self) {
        let name = format!("sentinel-{}", self.sentinels.fetch_add(1, Ordering::Relaxed));
        self.run(&format!(": >{name}"));
        self.expect_name(self.id(""), &name);
    }

    /// Waits until the watcher of the whole file system has read all events, reported or not.
    pub(super) fn wait_until_read(&self) {
        let queue = self.fanotify_queue();
        let start = Instant::now();
        while start.elapsed() < WAIT_MAX {
            if rustix::io::ioctl_fionread(&queue).unwrap() == 0 {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        panic!("events are not read");
    }

    /// A copy of the watcher's descriptor. Those of other tests in this process have marks on other file systems.
    fn fanotify_queue(&self) -> OwnedFd {
        let device = rustix::fs::stat(self.world.host("")).unwrap().st_dev;
        let mark = format!("sdev:{:x} ", rustix::fs::minor(device));
        let marks = |fd: &i32| {
            let marks = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
            marks.lines().any(|line| line.starts_with("fanotify ") && line.contains(&mark))
        };
        let fds = std::fs::read_dir("/proc/self/fd").unwrap();
        let fd = fds.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).find(marks);
        let process = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        pidfd_getfd(process, fd.expect("a mark"), PidfdGetfdFlags::empty()).unwrap()
    }

    /// Clears the reports of earlier changes.
    pub(super) fn begin(&self) {
        self.settle();
        self.reports.all().clear();
    }

    /// The reports since `begin`, without those of `settle`.
    pub(super) fn since_begin(&self) -> Vec<ExternalChange> {
        self.settle();
        let root = self.id("");
        let is_sentinel = |outside: &ExternalChange| match outside {
            ExternalChange::Changed { id, name: Some(name), .. } => {
                *id == root && name.starts_with(b"sentinel-")
            }
            ExternalChange::Changed { id, name: None, .. } => self.is_sentinel(*id),
            ExternalChange::Lost => false,
        };
        self.reports.all().iter().filter(|outside| !is_sentinel(outside)).cloned().collect()
    }

    fn is_sentinel(&self, id: FileId) -> bool {
        let count = self.sentinels.load(Ordering::Relaxed);
        (0..count).any(|number| self.id(&format!("sentinel-{number}")) == id)
    }
}

pub(super) fn is_name(outside: &ExternalChange, dir: FileId, wanted: &str) -> bool {
    let wanted = wanted.as_bytes();
    matches!(outside, ExternalChange::Changed { id, name: Some(name), .. } if *id == dir && name == wanted)
}

pub(super) fn watch_root(dir: &Path, kind: WatchKind, reports: &Arc<Reports>) -> Watcher {
    let reports = Arc::clone(reports);
    Watcher::start(held(dir).as_fd(), BootId::default(), kind, move |outside| reports.add(outside))
}

/// An `O_PATH` descriptor, as the server uses.
pub(super) fn held(path: &Path) -> OwnedFd {
    let how = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, how, Mode::empty()).unwrap()
}

/// Runs a shell script in `dir`; it must succeed.
pub(super) fn run(dir: &Path, script: &str) {
    let mut command = Command::new("sh");
    let status = command.args(["-euc", script]).current_dir(dir).status().unwrap();
    assert!(status.success(), "{script}");
}

/// Runs an action in another process, as [`Scene::act`] does.
pub(super) fn act(what: &str, paths: &[PathBuf]) {
    let paths = std::env::join_paths(paths).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "watch::scene::acts_for_another_test"]).env(ACT, what).env(PATHS, paths);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The system's limit of queued events.
pub(super) fn queue_max(kind: WatchKind) -> usize {
    let name = match kind {
        WatchKind::Filesystem | WatchKind::Directories => "fanotify",
        WatchKind::DirectoriesAndOwn => "inotify",
        WatchKind::Nothing => panic!("no queue"),
    };
    let path = PathBuf::from("/proc/sys/fs").join(name).join("max_queued_events");
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

const ACT: &str = "WIREFS_TEST_ACT";
const PATHS: &str = "WIREFS_TEST_PATHS";

#[test]
fn acts_for_another_test() {
    let Ok(act) = std::env::var(ACT) else {
        return;
    };
    let paths: Vec<_> = std::env::split_paths(&std::env::var_os(PATHS).unwrap()).collect();
    let cwd = rustix::fs::CWD;
    match act.as_str() {
        "exchange" => {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(cwd, &paths[0], cwd, &paths[1], flags).unwrap();
        }
        "set an attribute" => {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(&paths[0], "trusted.test", b"value", flags).unwrap();
        }
        "make and remove" => {
            for number in 0..20_000 {
                let path = paths[0].join(number.to_string());
                std::fs::write(&path, "x").unwrap();
                std::fs::remove_file(&path).unwrap();
            }
        }
        act => panic!("unknown: {act}"),
    }
}
