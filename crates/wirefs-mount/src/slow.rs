//! Says what making a mount waits for, once it has waited for a while.

use std::sync::mpsc;
use std::time::Duration;

/// Nothing is said before that.
const AFTER: Duration = Duration::from_secs(1);

/// The step that making a mount waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// An earlier mount of the source that is unmounted, and still sends.
    Ending,
    /// A connection to the server.
    Connection,
    /// The server's first answer.
    Answer,
    /// The server's consent: it holds the mount back while another one has the tree for itself.
    Tree,
    /// The server, to carry out what an earlier mount left in its journal.
    Journal,
}

/// Something that may take long, until this is dropped.
#[derive(Debug)]
pub(super) struct Slow {
    _done: mpsc::Sender<()>,
}

impl Slow {
    /// Has `tell` called if it takes longer than [`AFTER`].
    pub(super) fn begin(tell: fn(Waits), waits: Waits) -> Slow {
        Slow::begin_for(AFTER, move || tell(waits))
    }

    fn begin_for(span: Duration, tell: impl FnOnce() + Send + 'static) -> Slow {
        let (done, wait) = mpsc::channel::<()>();
        // Where there is no thread, nothing is said.
        let _unsaid = std::thread::Builder::new().name("wirefs-slow".into()).spawn(move || {
            if wait.recv_timeout(span) == Err(mpsc::RecvTimeoutError::Timeout) {
                tell();
            }
        });
        Slow { _done: done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_said_and_what_has_ended_is_not() {
        let (told, tells) = mpsc::channel();
        let slow = Slow::begin_for(Duration::ZERO, move || told.send(()).unwrap());
        assert_eq!(tells.recv(), Ok(()));
        drop(slow);
        let (told, tells) = mpsc::channel::<()>();
        drop(Slow::begin_for(Duration::from_secs(3600), move || told.send(()).unwrap()));
        assert!(tells.recv().is_err(), "its thread has ended");
    }
}
