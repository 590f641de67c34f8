//! Reports a step of mounting that takes long.

use std::sync::mpsc;
use std::time::Duration;

/// The time after which a step is reported.
const AFTER: Duration = Duration::from_secs(1);

/// The step that mounting waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountStep {
    /// An earlier mount of the source that is unmounted, and still sends.
    Ending,
    /// A connection to the server.
    Connection,
    /// The server's first answer.
    Answer,
    /// The server's consent: it delays the mount while another session is exclusive.
    Tree,
    /// The replay of an earlier mount's journal.
    Journal,
}

/// A step in progress, until this is dropped.
#[derive(Debug)]
pub(super) struct SlowStep {
    _done: mpsc::Sender<()>,
}

impl SlowStep {
    /// Calls `tell` if the step takes longer than [`AFTER`].
    pub(super) fn begin(tell: fn(MountStep), waits: MountStep) -> SlowStep {
        SlowStep::begin_for(AFTER, move || tell(waits))
    }

    fn begin_for(span: Duration, tell: impl FnOnce() + Send + 'static) -> SlowStep {
        let (done, wait) = mpsc::channel::<()>();
        // Without a thread, the step is not reported.
        let _unsaid = std::thread::Builder::new().name("wirefs-slow".into()).spawn(move || {
            if wait.recv_timeout(span) == Err(mpsc::RecvTimeoutError::Timeout) {
                tell();
            }
        });
        SlowStep { _done: done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_step_is_reported_and_an_ended_one_is_not() {
        let (reported, reports) = mpsc::channel();
        let slow = SlowStep::begin_for(Duration::ZERO, move || reported.send(()).unwrap());
        assert_eq!(reports.recv(), Ok(()));
        drop(slow);
        let (reported, reports) = mpsc::channel::<()>();
        drop(SlowStep::begin_for(Duration::from_secs(3600), move || reported.send(()).unwrap()));
        assert!(reports.recv().is_err(), "its thread has ended");
    }
}
