//! What a server can be told.

use std::time::Duration;
use wirefs_op::message::version::BootId;

/// The name and the limits of one server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Names the run in which what was written but not committed is still there. What lies in the machine's memory
    /// outlives the server's process: so it should stay the same over mere restarts of the process, or clients send
    /// again what was safe. It must differ after each start of the machine, and for another exported directory.
    pub boot: BootId,
    /// Threads for requests, waiting locks not counted. Each session may have two beyond that.
    pub workers_max: usize,
    /// Of these, at most so many for one session.
    pub session_workers_max: usize,
    /// Threads in which locks wait, for all sessions together.
    pub waiters_max: usize,
    /// Of these, at most so many for one session.
    pub session_waiters_max: usize,
    /// How long a stop waits for what is running.
    pub drain_max: Duration,
}

impl ServeOptions {
    /// The usual numbers.
    pub fn new(boot: BootId) -> ServeOptions {
        ServeOptions {
            boot,
            workers_max: 64,
            session_workers_max: 16,
            waiters_max: 512,
            session_waiters_max: 128,
            drain_max: Duration::from_secs(5),
        }
    }
}
