//! Journals on a real disk, and a scripted server.

mod recovering;
mod scripted_server;
mod writing;

use super::*;
use crate::MountPlan;
use bytes::Bytes;
use scripted_server::ScriptedServer;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use wirefs_cache::Mode;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::Target;
use wirefs_op::wire::Data;
use wirefs_op::{NOTAG, SetStat, TreePath};

/// A directory of journals, and their server.
struct Stage {
    dir: PathBuf,
    server: Arc<ScriptedServer>,
}

impl Stage {
    fn new() -> Stage {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-journal-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Stage { dir, server: Arc::default() }
    }

    fn plan(&self) -> MountPlan {
        MountPlan {
            dial: Arc::clone(&self.server) as Arc<dyn wirefs_carrier::Dial>,
            path: Vec::new(),
            user: "tester".to_owned(),
            mode: Mode::parse("lease").unwrap(),
            deadline: None,
            cache_bytes_max: 0,
            threads: 1,
            connections_max: 1,
            uid: 0,
            gid: 0,
            confines_links: false,
            store: None,
            journal: Some(self.journal_plan()),
            tell: |_| {},
        }
    }

    fn journal_plan(&self) -> JournalPlan {
        JournalPlan {
            dir: self.dir.join("journal"),
            quarantine: self.dir.join("quarantine"),
            address: b"memory".to_vec(),
            path: b"dir".to_vec(),
            source: b"unix:///here".to_vec(),
            user: 0,
            tell: |_| {},
            keeps: true,
            fsync: FsyncWaits::Server,
        }
    }

    /// Creates the journal of a session.
    fn begin(&self, session: u8) -> Journal {
        let plan = self.plan();
        let session = SessionId([session; 16]);
        let carrier = plan.dial.dial().unwrap();
        let attached = crate::handshake::shake_hands(carrier, session, &plan).unwrap();
        Journal::begin(&self.journal_plan(), session, &attached, |_| {}).expect("a journal")
    }

    /// Creates a journal with these changes, whose process has ended.
    fn left(&self, session: u8, changes: &[(u64, &str)]) -> PathBuf {
        let journal = self.begin(session);
        for (number, name) in changes {
            assert!(journal.record(*number, write_to(name)));
        }
        assert!(journal.write(|| 0));
        self.only_journal()
    }

    fn only_journal(&self) -> PathBuf {
        match &pending_journals(&self.dir.join("journal"))[..] {
            [journal] => journal.dir.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn recover(&self) -> Vec<JournalRecovery> {
        crate::recover_journals(&self.plan()).unwrap()
    }

    fn kept(&self) -> Vec<QuarantineCount> {
        count_quarantined(&self.dir.join("quarantine"))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.dir);
    }
}

/// A write of a file's own name to it.
fn write_to(name: &str) -> Frame {
    write_bytes(name, Bytes::copy_from_slice(name.as_bytes()))
}

fn write_bytes(name: &str, data: Bytes) -> Frame {
    let path = TreePath::from_bytes(Bytes::copy_from_slice(name.as_bytes())).unwrap();
    let (mode, set) = (PutMode::DATA, SetStat::default());
    let put = Tput { target: Target::at(path), mode, create: None, set, offset: 0, data: Data(data) };
    Request::Put(put).encode(NOTAG)
}

fn segment(dir: &Path, number: u64) -> PathBuf {
    place::segment_path(dir, number)
}
