//! A scripted disk.

use super::*;
use std::ops::Range;
use std::thread::ThreadId;
use wirefs_op::FileId;
use wirefs_op::message::version::{BootId, SessionId};

#[derive(Default)]
pub(super) struct Does {
    /// The executed jobs, with their threads.
    pub(super) done: Vec<(ThreadId, DiskJob)>,
    /// The job in execution.
    pub(super) doing: Vec<DiskJob>,
    /// Jobs wait.
    pub(super) is_held: bool,
    pub(super) fails: Option<(DiskJob, io::ErrorKind)>,
    /// The disk is full until a removal, and the threads that found it full.
    pub(super) is_full: bool,
    pub(super) refused: usize,
}

/// A scripted disk. The length of a segment is its number.
#[derive(Clone, Default)]
pub(in crate::journal) struct ScriptedDisk(Arc<(Mutex<Does>, Condvar)>);

impl ScriptedDisk {
    pub(super) fn lock(&self) -> MutexGuard<'_, Does> {
        self.0.0.lock().unwrap()
    }

    pub(super) fn wait_until(&self, is_so: impl Fn(&Does) -> bool) {
        let (lock, condition) = &*self.0;
        let waited =
            condition.wait_timeout_while(lock.lock().unwrap(), PATIENCE, |does| !is_so(does)).unwrap();
        assert!(!waited.1.timed_out());
    }

    pub(in crate::journal) fn hold(&self, is_held: bool) {
        self.lock().is_held = is_held;
        self.0.1.notify_all();
    }

    /// Returns whether a job was executed.
    pub(in crate::journal) fn has_done(&self, job: &DiskJob) -> bool {
        self.lock().done.iter().any(|(_, done)| done == job)
    }

    fn job(&self, job: DiskJob) -> io::Result<()> {
        let (lock, condition) = &*self.0;
        let mut does = lock.lock().unwrap();
        does.doing.push(job.clone());
        condition.notify_all();
        let mut does = condition.wait_timeout_while(does, PATIENCE, |does| does.is_held).unwrap().0;
        does.doing.retain(|other| *other != job);
        does.done.push((thread::current().id(), job.clone()));
        does.is_full &= !matches!(job, DiskJob::Remove(_));
        condition.notify_all();
        match does.fails.take_if(|(fails, _)| *fails == job) {
            Some((_, kind)) => Err(kind.into()),
            None => Ok(()),
        }
    }

    /// Returns the jobs of this thread since the last call.
    pub(super) fn own(&self) -> Vec<DiskJob> {
        let me = thread::current().id();
        let mut does = self.lock();
        does.done.extract_if(.., |(who, _)| *who == me).map(|(_, job)| job).collect()
    }

    /// Returns the jobs of other threads.
    pub(super) fn others(&self) -> Vec<DiskJob> {
        let me = thread::current().id();
        self.lock().done.iter().filter(|(who, _)| *who != me).map(|(_, job)| job.clone()).collect()
    }
}

fn number(segment: &File) -> u64 {
    segment.metadata().unwrap().len()
}

impl Disk for ScriptedDisk {
    fn make(&self, _header: &Header) -> io::Result<(File, u32)> {
        let mut does = self.lock();
        if does.is_full {
            does.refused += 1;
            self.0.1.notify_all();
            return Err(io::ErrorKind::StorageFull.into());
        }
        drop(does);
        Ok((File::from(rustix::fs::memfd_create("segment", rustix::fs::MemfdFlags::CLOEXEC)?), 0))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.job(DiskJob::SyncNames(0))
    }

    fn sync(&self, segment: &File) -> io::Result<()> {
        self.job(DiskJob::SyncSegment(number(segment)))
    }

    fn begin(&self, segment: &File, bytes: Range<u64>) -> io::Result<()> {
        self.job(DiskJob::WriteOut(number(segment), bytes))
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        self.job(DiskJob::Remove(number))
    }
}

/// A file without a name.
pub(in crate::journal) fn segment(number: u64) -> Arc<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = File::from(rustix::fs::memfd_create("segment", flags).unwrap());
    file.set_len(number).unwrap();
    Arc::new(file)
}

pub(super) fn header() -> Header {
    Header {
        session: SessionId([1; 16]),
        root: FileId { fs: 1, ino: 1, generation: 0 },
        boot: BootId(1),
        run: 1,
        segment: 3,
        identity: Vec::new(),
        path: Vec::new(),
        source: Vec::new(),
    }
}
