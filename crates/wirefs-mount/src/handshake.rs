//! The handshake of a new connection: version and attach.

use super::MountPlan;
use super::journal::FsyncWaits;
use super::slow_step::{MountStep, SlowStep};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::mpsc;
use std::time::Duration;
use wirefs_carrier::{Carrier, CarrierLost, DialError, SendProgress};
use wirefs_client::Attachment;
use wirefs_op::limits::MESSAGE_BYTES_MAX;
use wirefs_op::message::attach::Tattach;
use wirefs_op::message::version::{
    FEATURE_ALONE, FEATURE_BARRIERS, FEATURE_DATA, FEATURE_JOIN, FEATURE_LEASES, FEATURE_LEDGER,
    FEATURE_PACKED, FEATURE_TIMES, SessionId, Tversion, VERSION,
};
use wirefs_op::wire::{Malformed, Text};
use wirefs_op::{NOTAG, Reply, Request, Tag, TreePath};

/// The time limit of each step.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time limit of Tattach after Rversion: another mount may have to send its pending changes first.
const ATTACHING: Duration = wirefs_server::EXCLUSIVE_END_MAX;

const _: () = assert!(PATIENCE.as_secs() < ATTACHING.as_secs(), "who waits for another mount waits longer");

/// The maximum number of recalls and exclusivity messages before the attach.
const EARLY_MAX: usize = 64;

/// The reason why a server could not be attached. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server could not be reached.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The connection broke.
    #[error("the server closed the connection: {0}")]
    Lost(#[from] CarrierLost),
    /// The server does not answer.
    #[error("the server took the connection but does not answer; is it a wirefs server?")]
    Silent,
    /// The server speaks another version.
    #[error(
        "the server speaks `{theirs}`, this program `op2`: install the same version of wirefs on both sides"
    )]
    Version {
        /// The server's version.
        theirs: String,
    },
    /// The server breaks the protocol.
    #[error(
        "the server does not keep to the protocol ({0}): install the same version of wirefs on both sides"
    )]
    Protocol(#[from] Malformed),
    /// The server refuses the session.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The directory cannot be attached.
    #[error("the server cannot give `/{path}`: {text}; check the path after the server's name")]
    Attach {
        /// The requested path, below the export.
        path: String,
        /// The server's error text.
        text: String,
    },
    /// The path is invalid.
    #[error("`/{0}` is not a path that can be mounted: leave out `.` and `..`")]
    Path(String),
    /// The kernel has no random numbers.
    #[error("cannot read /dev/urandom: {0}")]
    Random(#[source] std::io::Error),
}

/// An attached connection.
pub(super) struct Attached {
    pub(super) carrier: Carrier,
    pub(super) attachment: Attachment,
    pub(super) resumed: bool,
    /// Messages for the core that arrived before the attach.
    pub(super) early: Vec<Bytes>,
}

/// Opens or resumes the session, and attaches the tree.
pub(super) fn shake_hands(
    carrier: Carrier,
    session: SessionId,
    plan: &MountPlan,
) -> Result<Attached, ConnectError> {
    let features = features(plan) | packed(&carrier);
    shake_hands_as(carrier, session, plan, features)
}

/// The features that a mount requests.
fn features(plan: &MountPlan) -> u64 {
    let takes_leases = plan.mode.takes_leases();
    let is_ahead = plan.mode.allows_optimism() && plan.journal.as_ref().is_some_and(|journal| journal.keeps);
    let leases = if takes_leases { FEATURE_LEASES } else { 0 };
    let waits_each = plan.journal.as_ref().is_none_or(|journal| journal.fsync == FsyncWaits::Each);
    let barriers = if is_ahead && !waits_each { FEATURE_BARRIERS } else { 0 };
    let data = if plan.connections_max > 1 { FEATURE_DATA } else { 0 };
    FEATURE_LEDGER | FEATURE_TIMES | leases | barriers | data | if is_ahead { FEATURE_ALONE } else { 0 }
}

/// Like [`shake_hands`], with a choice of features.
pub(super) fn shake_hands_as(
    mut carrier: Carrier,
    session: SessionId,
    plan: &MountPlan,
    features: u64,
) -> Result<Attached, ConnectError> {
    let shown_path = String::from_utf8_lossy(&plan.path).into_owned();
    let path = TreePath::from_bytes(Bytes::copy_from_slice(&plan.path))
        .ok_or_else(|| ConnectError::Path(shown_path.clone()))?;
    let patience = Patience::start(&carrier);
    let result = (|| {
        let version =
            Tversion { msize: MESSAGE_BYTES_MAX as u32, version: Text::new(VERSION), features, session };
        let attach = Tattach { uname: Text::new(plan.user.as_bytes()), path };
        let answer = SlowStep::begin(plan.tell, MountStep::Answer);
        // Both requests at once: one round trip.
        send(
            &mut carrier,
            [Request::Version(version).encode(NOTAG), Request::Attach(attach).encode(Tag(0))],
        )?;
        let version = match receive(&mut carrier)? {
            Reply::Version(version) if version.version.as_bytes() == VERSION => version,
            Reply::Version(version) => {
                return Err(ConnectError::Version { theirs: version.version.to_string() });
            }
            Reply::Error(error) => return Err(ConnectError::Refused(error.ename.to_string())),
            _ => {
                return Err(Malformed { what: "no answer to Tversion", at: 0 }.into());
            }
        };
        patience.extend();
        drop(answer);
        let _tree = SlowStep::begin(plan.tell, MountStep::Tree);
        let mut early = Vec::new();
        let attach = match receive_behind_unasked(&mut carrier, &mut early)? {
            Reply::Attach(attach) => attach,
            Reply::Error(error) => {
                return Err(ConnectError::Attach { path: shown_path, text: error.ename.to_string() });
            }
            _ => {
                return Err(Malformed { what: "no answer to Tattach", at: 0 }.into());
            }
        };
        let attachment = Attachment {
            root: attach.root,
            uid: attach.uid,
            gid: attach.gid,
            acts_for_callers: attach.acts_for_callers,
            read_only: attach.read_only,
            boot: version.boot,
            ledger: (version.features & FEATURE_LEDGER != 0).then_some(version.number),
            has_barriers: version.features & features & FEATURE_BARRIERS != 0,
            data_connections: match version.features & features & FEATURE_DATA {
                0 => 0,
                _ => plan.connections_max.saturating_sub(1),
            },
            leases: attach.leases.filter(|_| version.features & features & FEATURE_LEASES != 0),
        };
        Ok((attachment, version.resumed, early))
    })();
    let in_time = patience.end();
    match result {
        Ok((attachment, resumed, early)) => Ok(Attached { carrier, attachment, resumed, early }),
        Err(ConnectError::Lost(_)) if !in_time => Err(ConnectError::Silent),
        Err(error) => {
            carrier.closer.close();
            Err(error)
        }
    }
}

/// Makes a connection a data connection of the session.
///
/// # Errors
/// The connection breaks, or the server refuses it. The mount works without it.
pub(super) fn join(mut carrier: Carrier, session: SessionId) -> Result<Carrier, ConnectError> {
    let patience = Patience::start(&carrier);
    let result = (|| {
        let (msize, version) = (MESSAGE_BYTES_MAX as u32, Text::new(VERSION));
        let join = Tversion { msize, version, features: FEATURE_JOIN | packed(&carrier), session };
        send(&mut carrier, [Request::Version(join).encode(NOTAG)])?;
        match receive(&mut carrier)? {
            Reply::Version(answer) if answer.features & FEATURE_JOIN != 0 => Ok(()),
            // An older server, restored from a backup, takes it for the session's first connection. It is closed, and
            // the first one is dialed again.
            _ => Err(ConnectError::Refused("it takes no data connection".to_owned())),
        }
    })();
    patience.end();
    match result {
        Ok(()) => Ok(carrier),
        Err(error) => {
            carrier.closer.close();
            Err(error)
        }
    }
}

/// The feature of packed messages, if this carrier takes them.
fn packed(carrier: &Carrier) -> u64 {
    if carrier.sink.packs() { FEATURE_PACKED } else { 0 }
}

fn send(
    carrier: &mut Carrier,
    frames: impl IntoIterator<Item = wirefs_op::Frame>,
) -> Result<(), ConnectError> {
    let mut queue = VecDeque::from_iter(frames);
    while carrier.sink.send(&mut queue)? == SendProgress::Blocked {
        carrier.sink.wait_writable(PATIENCE)?;
    }
    Ok(())
}

fn receive(carrier: &mut Carrier) -> Result<Reply, ConnectError> {
    let body = carrier.source.receive()?.ok_or(CarrierLost::Closed)?;
    Ok(Reply::decode(body)?.1)
}

/// Receives the next reply. A resumed session may get missed recalls before it.
fn receive_behind_unasked(carrier: &mut Carrier, early: &mut Vec<Bytes>) -> Result<Reply, ConnectError> {
    loop {
        let body = carrier.source.receive()?.ok_or(CarrierLost::Closed)?;
        match Reply::decode(body.clone())?.1 {
            Reply::Recall(_) | Reply::Alone(_) if early.len() < EARLY_MAX => early.push(body),
            reply => return Ok(reply),
        }
    }
}

/// The state of a handshake.
enum Step {
    Answers,
    Done,
}

/// Aborts the carrier if the server takes too long, so that no receive waits forever.
struct Patience {
    done: mpsc::Sender<Step>,
    watch: Option<std::thread::JoinHandle<bool>>,
}

impl Patience {
    fn start(carrier: &Carrier) -> Patience {
        let (done, wait) = mpsc::channel();
        let closer = carrier.closer.clone();
        let watch = std::thread::Builder::new().name("wirefs-patience".into()).spawn(move || {
            let first = wait.recv_timeout(PATIENCE);
            let in_time = match first {
                Ok(Step::Answers) => wait.recv_timeout(ATTACHING).is_ok(),
                Ok(Step::Done) => true,
                Err(_) => false,
            };
            if !in_time {
                closer.abort();
            }
            in_time
        });
        Patience { done, watch: watch.ok() }
    }

    /// Notes that the server has answered: the next step may take longer.
    fn extend(&self) {
        let _ = self.done.send(Step::Answers);
    }

    /// Ends the watch. Returns whether the handshake was in time.
    fn end(self) -> bool {
        let _ = self.done.send(Step::Done);
        self.watch.is_none_or(|watch| watch.join().unwrap_or(true))
    }
}

#[cfg(test)]
mod tests;
