//! The ssh process: start, supervision, end, reaping. One thread does all of it, so that no other thread has to wait.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::printable::printable_lines;
use crate::stream::Wake;
use crate::sys;

/// Bytes kept of the end of standard error.
const STDERR_BYTES_MAX: usize = 4 * 1024;
/// Time that a child gets after the end of its input before SIGTERM, and again before SIGKILL.
const GRACE: Duration = Duration::from_secs(3);
/// A running child; cheap to clone.
#[derive(Clone)]
pub(super) struct SshProcess {
    shared: Arc<Shared>,
}

struct Shared {
    stop: Wake,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    stderr: Vec<u8>,
    /// The exit status; `Err` if it cannot be known.
    exit: Option<Result<ExitStatus, io::ErrorKind>>,
}

impl SshProcess {
    /// Starts `command` with `input` and `output` as standard input and output. The calling thread must live as long as
    /// the connection: the child ends with it, so that none is left when this process is killed during a login.
    pub(super) fn spawn(mut command: Command, input: Stdio, output: Stdio) -> io::Result<Self> {
        let shared = Arc::new(Shared { stop: Wake::new()?, state: Mutex::default(), ended: Condvar::new() });
        sys::end_with_process(&mut command);
        let child = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn()?;
        // The command holds our copies of the child's descriptors.
        drop(command);
        start_thread(&shared, child)?;
        Ok(Self { shared })
    }

    /// Asks the child to end; returns at once.
    pub(super) fn stop(&self) {
        self.shared.stop.set();
    }

    /// Waits at most `timeout` for the child to end. Returns its exit status, and the end of its standard error, fit for
    /// a terminal.
    pub(super) fn await_exit(&self, timeout: Duration) -> (Option<ExitStatus>, String) {
        let (state, _) = self
            .shared
            .ended
            .wait_timeout_while(self.shared.lock(), timeout, |state| state.exit.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        let exit = state.exit.and_then(Result::ok);
        (exit, printable_lines(&state.stderr))
    }
}

fn start_thread(shared: &Arc<Shared>, mut child: Child) -> io::Result<()> {
    let prepared = prepare(&mut child);
    let (pidfd, stderr) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return Err(kill_unwatched(child, error)),
    };
    // The child must not be lost if the thread cannot start, so it is passed only afterwards.
    let (give, take) = mpsc::sync_channel::<Child>(1);
    let watched = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name("wirefs-ssh".into()).spawn(move || {
        if let Ok(child) = take.recv() {
            watched.supervise(child, &pidfd, stderr);
        }
    });
    match spawned {
        Ok(_detached) => give.send(child).map_err(|_| io::ErrorKind::BrokenPipe.into()),
        Err(error) => Err(kill_unwatched(child, error)),
    }
}

fn prepare(child: &mut Child) -> io::Result<(OwnedFd, OwnedFd)> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let stderr: OwnedFd = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?.into();
    rustix::io::ioctl_fionbio(&stderr, true)?;
    Ok((pidfd, stderr))
}

/// Kills a child that no thread will supervise.
fn kill_unwatched(mut child: Child, error: io::Error) -> io::Error {
    let _killed = child.kill();
    let _reaped = child.wait();
    error
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Supervises the child until it ends. Its standard error may outlive it (a shared ssh connection keeps it open),
    /// so the process decides.
    fn supervise(&self, mut child: Child, pidfd: &OwnedFd, stderr: OwnedFd) {
        let mut stderr = Some(stderr);
        let mut patience: Option<Instant> = None;
        let mut signals = [Signal::TERM, Signal::KILL].into_iter();
        let exit = loop {
            let left = patience.map(|end| end.saturating_duration_since(Instant::now()));
            if let Err(error) = self.sleep(pidfd, stderr.as_ref(), patience.is_some(), left) {
                break Err(kill_unwatched(child, error).kind());
            }
            stderr = stderr.filter(|stderr| self.read_stderr(stderr));
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) => {}
                Err(error) => break Err(error.kind()),
            }
            match patience {
                None if self.stop.is_set() => patience = Some(Instant::now() + GRACE),
                Some(end) if Instant::now() >= end => {
                    patience = Some(Instant::now() + GRACE);
                    if let Some(signal) = signals.next() {
                        // Fails if the child ended since the check; then nothing is left to do.
                        let _sent = pidfd_send_signal(pidfd, signal);
                    }
                }
                None | Some(_) => {}
            }
        };
        if let Some(stderr) = &stderr {
            self.read_stderr(stderr);
        }
        self.lock().exit = Some(exit);
        self.ended.notify_all();
    }

    /// Waits until something may have changed.
    fn sleep(
        &self,
        pidfd: &OwnedFd,
        stderr: Option<&OwnedFd>,
        is_stopping: bool,
        left: Option<Duration>,
    ) -> io::Result<()> {
        let mut watched = vec![PollFd::new(pidfd, PollFlags::IN)];
        watched.extend(stderr.map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        watched.extend((!is_stopping).then(|| PollFd::new(&self.stop, PollFlags::IN)));
        let left = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        match poll(&mut watched, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Appends the child's output to the kept end. Returns `false` at its end.
    fn read_stderr(&self, stderr: &OwnedFd) -> bool {
        let mut chunk = [0; 1024];
        loop {
            match rustix::io::read(stderr, &mut chunk) {
                Ok(0) => return false,
                Ok(count) => {
                    let mut state = self.lock();
                    state.stderr.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    let excess = state.stderr.len().saturating_sub(STDERR_BYTES_MAX);
                    state.stderr.drain(..excess);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
    }
}
