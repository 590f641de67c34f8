//! One carrier as the machine sees it: a group and the circuit in it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar};

use bytes::Bytes;
use wirefs_circuit::{
    CircuitId, CircuitNode as Node, CloseReason, DialFault, PeerKey as NodeKey, Read, Time,
};

use crate::lost::CarrierLost;

/// Bytes that are taken out of a circuit at once.
const TAKE_BYTES: usize = 512 << 10;

/// Why nothing goes over a lane any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// It never came to stand.
    Failed(DialFault),
    /// Its group is over.
    Lost(CloseReason),
    /// The peer ended the circuit at once.
    Reset,
}

impl Gone {
    pub(super) fn carrier_lost(self) -> CarrierLost {
        let silent = "the peer was not heard for too long";
        match self {
            Gone::Lost(CloseReason::Local) => CarrierLost::Closed,
            Gone::Lost(CloseReason::Peer) | Gone::Reset => CarrierLost::PeerClosed,
            Gone::Lost(CloseReason::IdleTimeout) | Gone::Failed(DialFault::Timeout) => {
                CarrierLost::Io(io::Error::new(io::ErrorKind::TimedOut, silent))
            }
            Gone::Lost(CloseReason::Fault(fault)) => CarrierLost::Io(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the peer did what it may not: {fault:?}"),
            )),
            Gone::Failed(DialFault::UnexpectedKey(_)) => {
                CarrierLost::Io(io::Error::new(io::ErrorKind::PermissionDenied, "another node answered"))
            }
        }
    }
}

/// What a reader finds.
#[derive(Debug)]
pub(super) enum Taken {
    /// Something was added to the pieces.
    Bytes,
    /// The peer closed, and everything was taken.
    End,
    Gone(CarrierLost),
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) peer: Option<NodeKey>,
    pub(super) is_dialled: bool,
    pub(super) circuit: Option<CircuitId>,
    /// Taken out of the circuit, and not yet by the reader.
    inbox: VecDeque<Bytes>,
    /// There is more in the circuit.
    is_readable: bool,
    pub(super) is_ended: bool,
    pub(super) gone: Option<Gone>,
    pub(super) is_closed: bool,
    /// The circuit did not take all that it was given.
    pub(super) is_full: bool,
    /// Somebody waits for room.
    pub(super) wants_room: bool,
    /// The group is closed then: it was not accepted, or its last words were not heard.
    pub(super) until: Option<Time>,
    /// Somebody has a handle of it.
    pub(super) is_held: bool,
    pub(super) signal: Arc<Condvar>,
    /// Threads that sleep on the signal.
    pub(super) sleepers: usize,
}

impl Lane {
    pub(super) fn new(is_dialled: bool) -> Lane {
        Lane {
            peer: None,
            is_dialled,
            circuit: None,
            inbox: VecDeque::new(),
            is_readable: false,
            is_ended: false,
            gone: None,
            is_closed: false,
            is_full: false,
            wants_room: false,
            until: None,
            is_held: is_dialled,
            signal: Arc::new(Condvar::new()),
            sleepers: 0,
        }
    }

    /// There is something to be read: looks what, so that the end is seen though nobody reads.
    pub(super) fn note_readable(&mut self, now: Time, node: &mut Node) {
        self.is_readable = true;
        if self.is_closed {
            self.discard(now, node);
        } else if self.inbox.is_empty() {
            self.read(node, 1);
        }
    }

    /// Reads about so many bytes into the inbox.
    fn read(&mut self, node: &mut Node, most: usize) {
        let Some(circuit) = self.circuit else {
            return;
        };
        let mut bytes = 0;
        while self.is_readable && bytes < most {
            match node.read(circuit) {
                Read::Data(data) => {
                    bytes += data.len();
                    self.inbox.push_back(data);
                }
                Read::Nothing | Read::Gone => self.is_readable = false,
                Read::End => {
                    self.is_readable = false;
                    self.is_ended = true;
                    // Who has closed hears nothing more, and waits for this: that everything was read. It may be over.
                    let _over = node.finish(circuit);
                }
            }
        }
    }

    /// Drops what still comes. When the peer has read everything too, the group is over.
    pub(super) fn discard(&mut self, now: Time, node: &mut Node) {
        self.inbox.clear();
        while self.is_readable {
            self.read(node, usize::MAX);
            self.inbox.clear();
        }
        if self.is_ended
            && let Some(circuit) = self.circuit
        {
            node.close(now, circuit.group);
        }
    }

    /// Takes what there is for the reader; none: it has to wait.
    pub(super) fn take(&mut self, node: &mut Node, pieces: &mut VecDeque<Bytes>) -> Option<Taken> {
        if self.is_closed {
            return Some(Taken::Gone(CarrierLost::Closed));
        }
        self.read(node, TAKE_BYTES);
        if !self.inbox.is_empty() {
            pieces.append(&mut self.inbox);
            return Some(Taken::Bytes);
        }
        if self.is_ended {
            return Some(Taken::End);
        }
        self.gone.map(|gone| Taken::Gone(gone.carrier_lost()))
    }

    /// Why nothing can be written; none: it can.
    pub(super) fn refusal(&self) -> Option<CarrierLost> {
        if self.is_closed {
            return Some(CarrierLost::Closed);
        }
        if self.is_ended {
            return Some(CarrierLost::PeerClosed);
        }
        self.gone.map(Gone::carrier_lost)
    }
}
