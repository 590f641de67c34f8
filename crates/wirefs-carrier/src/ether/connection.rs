//! One carrier in the mux: a group and its circuit.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar};

use bytes::Bytes;
use wirefs_circuit::{CircuitId, CircuitNode, CloseReason, DialFault, PeerKey, Read, Time};

use crate::lost::CarrierLost;

/// The maximum read from a circuit, in bytes.
const TAKE_BYTES: usize = 512 << 10;

/// The reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The handshake failed.
    Failed(DialFault),
    /// The group has ended.
    Lost(CloseReason),
    /// The peer reset the circuit.
    Reset,
}

impl ConnectionEnd {
    pub(super) fn carrier_lost(self) -> CarrierLost {
        let silent = "the peer was not heard for too long";
        match self {
            ConnectionEnd::Lost(CloseReason::Local) => CarrierLost::Closed,
            ConnectionEnd::Lost(CloseReason::Peer) | ConnectionEnd::Reset => CarrierLost::PeerClosed,
            ConnectionEnd::Lost(CloseReason::IdleTimeout) | ConnectionEnd::Failed(DialFault::Timeout) => {
                CarrierLost::Io(io::Error::new(io::ErrorKind::TimedOut, silent))
            }
            ConnectionEnd::Lost(CloseReason::Fault(fault)) => CarrierLost::Io(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the peer did what it may not: {fault:?}"),
            )),
            ConnectionEnd::Failed(DialFault::UnexpectedKey(_)) => {
                CarrierLost::Io(io::Error::new(io::ErrorKind::PermissionDenied, "another node answered"))
            }
        }
    }
}

/// The result of a read.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    /// Bytes were appended to the pieces.
    Bytes,
    /// The peer closed, and everything was read.
    End,
    Lost(CarrierLost),
}

#[derive(Debug)]
pub(super) struct EtherConnection {
    pub(super) peer: Option<PeerKey>,
    pub(super) is_initiator: bool,
    pub(super) circuit: Option<CircuitId>,
    /// Data read from the circuit, not yet taken by the reader.
    inbox: VecDeque<Bytes>,
    /// The circuit has more data.
    is_readable: bool,
    pub(super) is_ended: bool,
    pub(super) end: Option<ConnectionEnd>,
    pub(super) is_closed: bool,
    /// The circuit did not take all data of the last write.
    pub(super) is_full: bool,
    /// A thread waits for a writable circuit.
    pub(super) awaits_room: bool,
    /// The group is closed at this time: it was not accepted, or the peer did not acknowledge the end.
    pub(super) timeout_at: Option<Time>,
    /// A [`super::handle::ConnectionHandle`] exists.
    pub(super) has_handle: bool,
    pub(super) signal: Arc<Condvar>,
    /// Threads that sleep on the signal.
    pub(super) sleepers: usize,
}

impl EtherConnection {
    pub(super) fn new(is_initiator: bool) -> EtherConnection {
        EtherConnection {
            peer: None,
            is_initiator,
            circuit: None,
            inbox: VecDeque::new(),
            is_readable: false,
            is_ended: false,
            end: None,
            is_closed: false,
            is_full: false,
            awaits_room: false,
            timeout_at: None,
            has_handle: is_initiator,
            signal: Arc::new(Condvar::new()),
            sleepers: 0,
        }
    }

    /// Handles new data: reads, so that the end is noticed without a reader.
    pub(super) fn note_readable(&mut self, now: Time, node: &mut CircuitNode) {
        self.is_readable = true;
        if self.is_closed {
            self.discard(now, node);
        } else if self.inbox.is_empty() {
            self.read(node, 1);
        }
    }

    /// Reads about `most` bytes into the inbox.
    fn read(&mut self, node: &mut CircuitNode, most: usize) {
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
                    // A peer that has closed waits for this: everything was read. The group may have ended.
                    let _ended = node.finish(circuit);
                }
            }
        }
    }

    /// Drops all data still received. When the peer has read everything too, the group ends.
    pub(super) fn discard(&mut self, now: Time, node: &mut CircuitNode) {
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

    /// Takes the received data. Returns `None` if the reader has to wait.
    pub(super) fn take(
        &mut self,
        node: &mut CircuitNode,
        pieces: &mut VecDeque<Bytes>,
    ) -> Option<ReadOutcome> {
        if self.is_closed {
            return Some(ReadOutcome::Lost(CarrierLost::Closed));
        }
        self.read(node, TAKE_BYTES);
        if !self.inbox.is_empty() {
            pieces.append(&mut self.inbox);
            return Some(ReadOutcome::Bytes);
        }
        if self.is_ended {
            return Some(ReadOutcome::End);
        }
        self.end.map(|end| ReadOutcome::Lost(end.carrier_lost()))
    }

    /// Returns the reason why nothing can be written; `None` if writing is possible.
    pub(super) fn refusal(&self) -> Option<CarrierLost> {
        if self.is_closed {
            return Some(CarrierLost::Closed);
        }
        if self.is_ended {
            return Some(CarrierLost::PeerClosed);
        }
        self.end.map(ConnectionEnd::carrier_lost)
    }
}
