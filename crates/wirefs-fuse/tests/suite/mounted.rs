//! A mount for one test, removed at its end in any case.

use crate::memory::Memory;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wirefs_fuse::{Ended, MountOptions, Session, SessionOptions, abort, mount, unmount};

/// A longer test is stuck: its mount is aborted, so that it fails instead.
const TEST_SECONDS_MAX: u64 = 60;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A new directory for one test.
pub(crate) fn fresh_directory() -> PathBuf {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("wirefs-fuse-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir(&directory).unwrap();
    directory
}

pub(crate) struct Mounted {
    directory: PathBuf,
    pub(crate) memory: Arc<Memory>,
    pub(crate) session: Option<Session>,
    watchdog: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Mounted {
    pub(crate) fn new() -> Mounted {
        Mounted::with(SessionOptions { threads: 3, ..SessionOptions::default() })
    }

    pub(crate) fn with(options: SessionOptions) -> Mounted {
        let directory = fresh_directory();
        let memory = Arc::new(Memory::new());
        let device = mount(&directory, &MountOptions::default()).unwrap();
        let session = Session::start(device, memory.clone(), options).unwrap();
        let (done, is_done) = mpsc::channel();
        let watched = directory.clone();
        let watchdog = thread::spawn(move || {
            if is_done.recv_timeout(Duration::from_secs(TEST_SECONDS_MAX))
                == Err(mpsc::RecvTimeoutError::Timeout)
            {
                drop(abort(&watched));
            }
        });
        Mounted { directory, memory, session: Some(session), watchdog: Some((done, watchdog)) }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Unmounts and waits for the session's end.
    pub(crate) fn end(mut self) -> Ended {
        unmount(&self.directory, false).unwrap();
        self.session.take().unwrap().join().unwrap()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if thread::panicking() {
            drop(abort(&self.directory));
        }
        drop(unmount(&self.directory, true));
        if let Some(session) = self.session.take() {
            drop(session.join());
        }
        if let Some((done, watchdog)) = self.watchdog.take() {
            drop(done);
            drop(watchdog.join());
        }
        drop(std::fs::remove_dir(&self.directory));
    }
}
