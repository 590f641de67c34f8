//! A connection: requests that are sent together, and their replies in any order.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use bytes::Bytes;

use crate::attributes::Attributes;
use crate::limits::PACKET_BYTES_MAX;
use crate::message::{NameEntry, Reply, Request, Status};

/// Why a request has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server refused.
    Refused(Status),
    /// The connection is lost.
    Lost,
}

#[derive(Default)]
struct Pending {
    /// Requests without a reply; `None` for those whose reply nobody waits for.
    waiting: BTreeMap<u32, Option<mpsc::Sender<Reply>>>,
    last: u32,
    is_lost: bool,
}

/// A connection. Dropping it closes it.
pub(crate) struct Wire {
    sink: Mutex<Box<dyn Write + Send>>,
    pending: Arc<Mutex<Pending>>,
    close: Arc<dyn Fn() + Send + Sync>,
}

/// A request that was sent.
pub(crate) struct Sent {
    reply: Receiver<Reply>,
    close: Arc<dyn Fn() + Send + Sync>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// Starts the receiving thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(
        mut source: Box<dyn Read + Send>,
        sink: Box<dyn Write + Send>,
        close: Box<dyn Fn() + Send + Sync>,
    ) -> io::Result<Wire> {
        let close: Arc<dyn Fn() + Send + Sync> = Arc::from(close);
        let pending = Arc::new(Mutex::new(Pending::default()));
        let (replies, closer) = (Arc::clone(&pending), Arc::clone(&close));
        let receive = move || {
            while let Ok(body) = receive_packet(source.as_mut()) {
                let Ok((id, reply)) = Reply::decode(body) else { break };
                match lock(&replies).waiting.remove(&id) {
                    // The waiting thread may have given up.
                    Some(Some(sender)) => drop(sender.send(reply)),
                    Some(None) => {}
                    // A reply to no request: nothing that follows can be trusted.
                    None => break,
                }
            }
            closer();
            let mut replies = lock(&replies);
            replies.is_lost = true;
            replies.waiting.clear();
        };
        thread::Builder::new().name("wirefs-sftp".into()).spawn(receive)?;
        Ok(Wire { sink: Mutex::new(sink), pending, close })
    }

    pub(crate) fn is_lost(&self) -> bool {
        lock(&self.pending).is_lost
    }

    /// Sends a request without waiting for its reply. The server executes requests about one object in the order in
    /// which they were sent.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn send(&self, request: &Request<'_>) -> Result<Sent, Fault> {
        let (sender, reply) = mpsc::channel();
        self.begin(request, Some(sender))?;
        Ok(Sent { reply, close: Arc::clone(&self.close) })
    }

    /// Sends a request whose reply nobody needs.
    pub(crate) fn send_without_reply(&self, request: &Request<'_>) {
        // A lost connection has lost all that the request could be about.
        let _lost = self.begin(request, None);
    }

    fn begin(&self, request: &Request<'_>, sender: Option<mpsc::Sender<Reply>>) -> Result<(), Fault> {
        let id = {
            let mut pending = lock(&self.pending);
            if pending.is_lost {
                return Err(Fault::Lost);
            }
            // Four billion requests later, an id is free again.
            pending.last = pending.last.wrapping_add(1);
            let id = pending.last;
            pending.waiting.insert(id, sender);
            id
        };
        // INVARIANT: a request is written whole, or the connection ends.
        lock(&self.sink).write_all(&request.encode(id)).map_err(|_| {
            (self.close)();
            Fault::Lost
        })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        (self.close)();
    }
}

impl Sent {
    /// Waits for the reply.
    ///
    /// # Errors
    /// The connection is lost.
    fn reply(self) -> Result<Reply, Fault> {
        self.reply.recv().map_err(|_| Fault::Lost)
    }

    fn of<T>(self, read: impl FnOnce(Reply) -> Option<T>) -> Result<T, Fault> {
        let close = Arc::clone(&self.close);
        match self.reply()? {
            Reply::Status(status) if status != Status::Ok => Err(Fault::Refused(status)),
            reply => read(reply).ok_or_else(|| {
                // A reply of another kind: nothing that follows can be trusted.
                close();
                Fault::Lost
            }),
        }
    }

    pub(crate) fn done(self) -> Result<(), Fault> {
        self.of(|reply| matches!(reply, Reply::Status(Status::Ok)).then_some(()))
    }

    pub(crate) fn handle(self) -> Result<Bytes, Fault> {
        self.of(|reply| match reply {
            Reply::Handle(handle) => Some(handle),
            _ => None,
        })
    }

    pub(crate) fn attributes(self) -> Result<Attributes, Fault> {
        self.of(|reply| match reply {
            Reply::Attributes(attributes) => Some(attributes),
            _ => None,
        })
    }

    pub(crate) fn extended(self) -> Result<Bytes, Fault> {
        self.of(|reply| match reply {
            Reply::Extended(body) => Some(body),
            _ => None,
        })
    }

    /// Returns read data; none at the end of the file.
    pub(crate) fn data(self, length: u32) -> Result<Bytes, Fault> {
        let data = self.of(|reply| match reply {
            Reply::Data(data) if data.len() <= length as usize => Some(data),
            _ => None,
        });
        if data == Err(Fault::Refused(Status::End)) { Ok(Bytes::new()) } else { data }
    }

    /// Returns names; none at the end of the listing.
    pub(crate) fn names(self) -> Result<Vec<NameEntry>, Fault> {
        let names = self.of(|reply| match reply {
            Reply::Names(names) => Some(names),
            _ => None,
        });
        if names == Err(Fault::Refused(Status::End)) { Ok(Vec::new()) } else { names }
    }
}

/// Receives one packet without its length.
pub(crate) fn receive_packet(source: &mut dyn Read) -> io::Result<Bytes> {
    let mut length = [0; 4];
    source.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length == 0 || length > PACKET_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    source.read_exact(&mut body)?;
    Ok(Bytes::from(body))
}
