//! A connection to a 9P server: requests of several threads, and one thread that receives the replies.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use wirefs_ninep::limits::MSIZE_MAX;
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::limits::MESSAGE_BYTES_MIN;
use wirefs_op::{Errno, NOTAG, Tag};

/// The requests of one connection at a time, at most.
const REQUESTS_MAX: usize = 1024;
/// The interval at which a request that waits looks whether anybody still wants its reply.
const LOOK_EACH: Duration = Duration::from_millis(200);
/// The wait for the reply to a Tflush, at most.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// A connected socket, as two sides and a way to close both.
pub(crate) struct Pipe {
    source: Box<dyn Read + Send>,
    sink: Box<dyn Write + Send>,
    close: Box<dyn Fn() + Send + Sync>,
}

impl Pipe {
    pub(crate) fn unix(stream: UnixStream) -> io::Result<Pipe> {
        let (source, closer) = (stream.try_clone()?, stream.try_clone()?);
        let close = Box::new(move || drop(closer.shutdown(Shutdown::Both)));
        Ok(Pipe { source: Box::new(source), sink: Box::new(stream), close })
    }

    pub(crate) fn tcp(stream: TcpStream) -> io::Result<Pipe> {
        stream.set_nodelay(true)?;
        let (source, closer) = (stream.try_clone()?, stream.try_clone()?);
        let close = Box::new(move || drop(closer.shutdown(Shutdown::Both)));
        Ok(Pipe { source: Box::new(source), sink: Box::new(stream), close })
    }
}

#[derive(Default)]
struct Pending {
    /// Requests without a reply; `None` for those whose reply nobody waits for.
    waiting: BTreeMap<Tag, Option<mpsc::Sender<Rmessage>>>,
    last: u16,
    is_lost: bool,
}

/// A connection. Dropping it closes it.
pub(crate) struct NineWire {
    sink: Mutex<Box<dyn Write + Send>>,
    pending: Arc<Mutex<Pending>>,
    close: Arc<dyn Fn() + Send + Sync>,
}

/// A request that was sent.
pub(crate) struct Sent<'a> {
    wire: &'a NineWire,
    tag: Tag,
    reply: Receiver<Rmessage>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NineWire {
    /// Starts the receiving thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(pipe: Pipe) -> io::Result<NineWire> {
        let Pipe { mut source, sink, close } = pipe;
        let close: Arc<dyn Fn() + Send + Sync> = Arc::from(close);
        let pending = Arc::new(Mutex::new(Pending::default()));
        let (answers, closer) = (Arc::clone(&pending), Arc::clone(&close));
        let receive = move || {
            while let Ok(Some((tag, reply))) = receive_one(source.as_mut()) {
                match lock(&answers).waiting.remove(&tag) {
                    // The one who asked may have gone.
                    Some(Some(sender)) => drop(sender.send(reply)),
                    Some(None) => {}
                    // A reply to no request: nothing that follows can be trusted.
                    None => break,
                }
            }
            closer();
            let mut answers = lock(&answers);
            answers.is_lost = true;
            answers.waiting.clear();
        };
        thread::Builder::new().name("wirefs-9p".into()).spawn(receive)?;
        Ok(NineWire { sink: Mutex::new(sink), pending, close })
    }

    pub(crate) fn is_lost(&self) -> bool {
        lock(&self.pending).is_lost
    }

    /// Sends a request without waiting for its reply.
    ///
    /// # Errors
    /// `EIO`: the connection is lost. `EAGAIN`: too many requests wait.
    pub(crate) fn send(&self, request: &Tmessage) -> Result<Sent<'_>, Errno> {
        let (sender, reply) = mpsc::channel();
        let tag = self.begin(request, Some(sender))?;
        Ok(Sent { wire: self, tag, reply })
    }

    /// Sends a request whose reply nobody needs.
    pub(crate) fn tell(&self, request: &Tmessage) {
        // A lost connection has lost all that the request could be about.
        let _lost = self.begin(request, None);
    }

    fn begin(&self, request: &Tmessage, sender: Option<mpsc::Sender<Rmessage>>) -> Result<Tag, Errno> {
        let tag = {
            let mut pending = lock(&self.pending);
            if pending.is_lost {
                return Err(Errno::Io);
            }
            if pending.waiting.len() >= REQUESTS_MAX {
                return Err(Errno::WouldBlock);
            }
            let tag = pending.free_tag(matches!(request, Tmessage::Version { .. }));
            pending.waiting.insert(tag, sender);
            tag
        };
        let frame = request.encode(tag);
        let bytes = [&frame.head[..], &frame.data].concat();
        // INVARIANT: a request is written whole, or the connection ends.
        lock(&self.sink).write_all(&bytes).map_err(|_| {
            (self.close)();
            Errno::Io
        })?;
        Ok(tag)
    }
}

impl Drop for NineWire {
    fn drop(&mut self) {
        (self.close)();
    }
}

impl Pending {
    /// INVARIANT: fewer requests than tags.
    fn free_tag(&mut self, is_version: bool) -> Tag {
        if is_version {
            return NOTAG;
        }
        loop {
            self.last = if self.last >= NOTAG.0 - 1 { 0 } else { self.last + 1 };
            if !self.waiting.contains_key(&Tag(self.last)) {
                return Tag(self.last);
            }
        }
    }
}

impl Sent<'_> {
    /// Waits for the reply, as long as it is wanted.
    ///
    /// # Errors
    /// The error that the server replied with; `EIO` if the connection is lost; `EINTR` if nobody wants it any more.
    pub(crate) fn wait(self, is_stopped: &dyn Fn() -> bool) -> Result<Rmessage, Errno> {
        loop {
            match self.reply.recv_timeout(LOOK_EACH) {
                Ok(Rmessage::Lerror { errno }) => {
                    return Err(Errno::from_code(u16::try_from(errno).unwrap_or(u16::MAX)));
                }
                Ok(Rmessage::Error { text }) => return Err(errno_of(&text.0)),
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Disconnected) => return Err(Errno::Io),
                Err(RecvTimeoutError::Timeout) if is_stopped() => {
                    self.flush();
                    return Err(Errno::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Cancels the request at the server; its tag is free again behind the reply to that.
    fn flush(&self) {
        if let Ok(flush) = self.wire.send(&Tmessage::Flush { old: self.tag.0 })
            && flush.reply.recv_timeout(FLUSH_MAX).is_ok()
        {
            lock(&self.wire.pending).waiting.remove(&self.tag);
        }
    }
}

/// Receives one message; `None` at the end of the connection.
fn receive_one(source: &mut dyn Read) -> io::Result<Option<(Tag, Rmessage)>> {
    let mut size = [0; 4];
    if source.read_exact(&mut size).is_err() {
        return Ok(None);
    }
    let size = u32::from_le_bytes(size);
    if size > MSIZE_MAX || (size as usize) < MESSAGE_BYTES_MIN {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; size as usize - 4];
    source.read_exact(&mut body)?;
    Rmessage::decode(Bytes::from(body))
        .map(Some)
        .map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))
}

/// The texts of errors that servers of 9P2000 use, each a part of theirs, with the meaning.
const TEXTS: [(&str, Errno); 16] = [
    ("not found", Errno::NotFound),
    ("does not exist", Errno::NotFound),
    ("no such file", Errno::NotFound),
    ("permission denied", Errno::AccessDenied),
    ("not permitted", Errno::NotPermitted),
    ("already exists", Errno::Exists),
    ("file exists", Errno::Exists),
    ("not a directory", Errno::NotDirectory),
    ("is a directory", Errno::IsDirectory),
    ("not empty", Errno::NotEmpty),
    ("read-only", Errno::ReadOnly),
    ("no space", Errno::NoSpace),
    ("not supported", Errno::NotSupported),
    ("interrupted", Errno::Interrupted),
    ("busy", Errno::Busy),
    ("invalid", Errno::Invalid),
];

fn errno_of(text: &[u8]) -> Errno {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let known = Errno::ALL.into_iter().find(|errno| errno.text() == text);
    known
        .or_else(|| TEXTS.iter().find(|(part, _)| text.contains(part)).map(|(_, errno)| *errno))
        .unwrap_or(Errno::Io)
}
