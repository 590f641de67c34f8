//! The threads that serve a mount.

use crate::affinity::{self, CallerAffinity, Mover};
use crate::answer::{Expects, encode_error};
use crate::device::{Connection, Device, Received};
use crate::init::{self, Negotiated, Offer, Outcome};
use crate::notifier::Notifier;
use crate::reader::{ReaderElection, ReaderRole};
use crate::receive_buffer::ReceiveBuffer;
use crate::reply::Reply;
use crate::request::{self, Body, MalformedRequest, RequestHeader};
use crate::{FileSystem, abi};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use wirefs_client::call::{Answer, Call, CallId, Caller, ROOT};
use wirefs_op::Errno;

/// Options for serving a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads that read requests, at least 1.
    pub threads: usize,
    /// The largest write in bytes, between 4 KiB and [`SessionOptions::WRITE_BYTES_MAX`].
    pub max_write: u32,
    /// The limit of background requests (read-ahead, releases).
    pub background_max: u16,
    /// Whether POSIX ACLs are enabled: the kernel reads them as extended attributes and enforces them.
    pub posix_acl: bool,
    /// Whether the kernel invalidates a file's pages if its size or modification time has changed; if not, only
    /// after a notification.
    pub auto_inval_data: bool,
    /// Whether the kernel requests attributes with a listing only after their use; if not, always.
    pub readdirplus_auto: bool,
    /// Whether the kernel keeps the targets of symbolic links; if not, it asks at each use.
    pub keeps_links: bool,
    /// Whether STATX is answered. Without a birth time it only costs: a program that requests the birth time (each
    /// `stat(1)`, each Rust program) causes one call for each cached file.
    pub statx: bool,
    /// Whether newer kernels (Linux 6.16) are used to invalidate all names at once; if not, they are treated like
    /// older ones.
    pub invalidates_all_names: bool,
    /// Whether the kernel opens and closes directories without calls, and caches each listing that was read to its
    /// end. The file system must invalidate it (`Invalidate::Listing`). READDIR has handle 0 then.
    pub no_opendir: bool,
    /// Whether one thread reads at a time, and polls for the next request before it sleeps. This suits a file
    /// system that answers most calls faster than a thread wakes. If not, all threads wait for requests.
    pub single_reader: bool,
}

impl SessionOptions {
    /// The largest write in bytes: the default limit of Linux.
    pub const WRITE_BYTES_MAX: u32 = 1024 * 1024;

    pub(crate) fn write_bytes_max(&self) -> u32 {
        self.max_write.clamp(4096, SessionOptions::WRITE_BYTES_MAX)
    }
}

impl Default for SessionOptions {
    /// One thread per CPU, 2 to 8; writes of 1 MiB; 64 background requests; automatic invalidation of data; no
    /// ACLs; all features of the kernel.
    fn default() -> SessionOptions {
        SessionOptions {
            threads: thread::available_parallelism().map_or(2, usize::from).clamp(2, 8),
            max_write: SessionOptions::WRITE_BYTES_MAX,
            background_max: 64,
            posix_acl: false,
            auto_inval_data: true,
            readdirplus_auto: false,
            keeps_links: true,
            statx: false,
            invalidates_all_names: true,
            no_opendir: false,
            single_reader: true,
        }
    }
}

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The mount was unmounted.
    Unmounted,
    /// The connection was aborted.
    Aborted,
}

/// The reason why a session could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Reading or writing the device failed.
    #[error("the kernel's FUSE device failed: {0}")]
    Device(#[source] io::Error),
    /// The mount was unmounted before the session started.
    #[error("the mount was taken away before it was served")]
    Gone,
    /// The kernel's interface is too old.
    #[error("this kernel speaks FUSE {major}.{minor}; 7.31 is needed: use Linux 5.4 or newer")]
    KernelTooOld {
        /// The major version of its interface.
        major: u32,
        /// The minor version of its interface.
        minor: u32,
    },
    /// The kernel's first request violates its interface.
    #[error("the kernel's first FUSE request is not INIT")]
    Unexpected,
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(#[source] io::Error),
}

/// A mount that is served until it is unmounted. Dropping this does not stop the threads; [`Session::join`] waits
/// for them.
#[derive(Debug)]
pub struct Session {
    connection: Arc<Connection>,
    negotiated: Negotiated,
    threads: Vec<JoinHandle<io::Result<Ended>>>,
    /// Receives a message from each thread that notices the end of the mount.
    gone: mpsc::Receiver<Ended>,
}

impl Session {
    /// Negotiates with the kernel and starts the threads.
    ///
    /// # Errors
    /// The kernel is too old, the device fails, or a thread cannot be started. The mount is then dead and must be
    /// unmounted.
    pub fn start(
        device: Device,
        file_system: Arc<dyn FileSystem>,
        options: SessionOptions,
    ) -> Result<Session, StartError> {
        let threads = options.threads.max(1);
        let connection = Connection::new(device, threads, options.single_reader)
            .map_err(|error| StartError::Device(error.into()))?;
        let (connection, election) =
            (Arc::new(connection), options.single_reader.then(|| Arc::new(ReaderElection::new())));
        let negotiated = shake_hands(&connection, &options)?;
        connection.name_cache().negotiate(
            negotiated.invalidates_all_names,
            negotiated.maps_uncached(),
            negotiated.prunes(),
        );
        let mover = Mover::start().map_err(StartError::Thread)?;
        let (sender, gone) = mpsc::channel();
        let mut session = Session { connection, negotiated, threads: Vec::with_capacity(threads), gone };
        for lane in 0..threads {
            let server = Server {
                connection: Arc::clone(&session.connection),
                election: election.clone(),
                mover: mover.clone(),
                lane,
                file_system: Arc::clone(&file_system),
                negotiated,
            };
            let sender = sender.clone();
            let serve = move || {
                server.serve().inspect(|ended| {
                    let _ignored = sender.send(*ended);
                })
            };
            let thread = thread::Builder::new()
                .name(format!("wirefs-fuse-{lane}"))
                .spawn(serve)
                .map_err(StartError::Thread)?;
            session.threads.push(thread);
        }
        Ok(session)
    }

    /// The negotiated parameters.
    pub fn negotiated(&self) -> Negotiated {
        self.negotiated
    }

    /// Sends invalidations to the kernel.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(Arc::downgrade(&self.connection))
    }

    /// Waits until the mount is gone. Calls may still be in progress.
    pub fn wait_until_unmounted(&self) {
        // An error means that reading failed in all threads.
        let _ended = self.gone.recv();
    }

    /// Waits until the mount is gone and all threads have ended.
    ///
    /// # Errors
    /// Reading requests failed in a thread; the others continued.
    pub fn join(self) -> io::Result<Ended> {
        let mut ended = Ok(Ended::Unmounted);
        for thread in self.threads {
            let end = thread.join().unwrap_or_else(|_| Err(io::Error::other("a FUSE thread panicked")));
            match (&ended, &end) {
                (Ok(Ended::Unmounted), _) | (Ok(Ended::Aborted), Err(_)) => ended = end,
                (Ok(Ended::Aborted), Ok(_)) | (Err(_), _) => {}
            }
        }
        ended
    }
}

/// Requests before the end of the negotiation at most: the kernel sends one, a newer one two.
const OFFERS_MAX: usize = 4;

fn shake_hands(connection: &Connection, options: &SessionOptions) -> Result<Negotiated, StartError> {
    let page_bytes = u32::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut buffer = vec![0; abi::READ_SLACK_BYTES];
    let reply = |message: &[u8]| {
        connection.send_notification(message).map_err(|error| StartError::Device(error.into()))
    };
    for _ in 0..OFFERS_MAX {
        let (call, offer) = receive_offer(connection, &mut buffer)?;
        match init::negotiate(&offer, options, page_bytes) {
            Outcome::Negotiated(negotiated) => {
                reply(&negotiated.encode(call))?;
                return Ok(negotiated);
            }
            Outcome::OfferAgain => reply(&init::encode_offer_again(call))?,
            Outcome::TooOld => {
                reply(&encode_error(call, Errno::Protocol))?;
                return Err(StartError::KernelTooOld { major: offer.major, minor: offer.minor });
            }
        }
    }
    Err(StartError::Unexpected)
}

fn receive_offer(connection: &Connection, buffer: &mut [u8]) -> Result<(CallId, Offer), StartError> {
    loop {
        let received =
            connection.receive(0, buffer, &mut []).map_err(|error| StartError::Device(error.into()))?;
        let bytes = match received {
            Received::Request(bytes) => bytes,
            Received::Nothing => continue,
            Received::Unmounted | Received::Aborted => return Err(StartError::Gone),
        };
        let request = buffer.get(..bytes).unwrap_or_default();
        return match request::decode(request, request::Dialect::default()) {
            Ok((header, Body::Init(offer))) => Ok((header.call, offer)),
            Ok(_) | Err(_) => Err(StartError::Unexpected),
        };
    }
}

/// The state of one thread.
struct Server {
    connection: Arc<Connection>,
    /// `None`: all threads read.
    election: Option<Arc<ReaderElection>>,
    mover: Mover,
    lane: usize,
    file_system: Arc<dyn FileSystem>,
    negotiated: Negotiated,
}

impl Server {
    fn serve(self) -> io::Result<Ended> {
        let mut receive_buffer = ReceiveBuffer::new(self.negotiated.write_bytes_max);
        let mut affinity = CallerAffinity::default();
        let role = ReaderRole::new(self.election.as_ref());
        loop {
            let (head, rest) = receive_buffer.room();
            match role.receive(&self.connection, self.lane, head, rest)? {
                Received::Request(bytes) => {
                    let negotiated = self.negotiated.dialect();
                    receive_buffer.open(bytes, |request| {
                        self.dispatch(request.decode(negotiated), &mut affinity, &role)
                    });
                }
                Received::Nothing => {}
                Received::Unmounted => return Ok(Ended::Unmounted),
                Received::Aborted => return Ok(Ended::Aborted),
            }
        }
    }

    fn reply(&self, call: CallId, expects: Expects) -> Reply {
        Reply::new(&self.connection, self.lane, call, expects, ROOT, None)
    }

    fn dispatch(
        &self,
        request: Result<(RequestHeader, Body<'_>), MalformedRequest>,
        affinity: &mut CallerAffinity,
        role: &ReaderRole<'_>,
    ) {
        let (header, body) = match request {
            Ok(request) => request,
            Err(MalformedRequest { call: Some(call) }) => return drop(self.reply(call, Expects::Done)),
            Err(MalformedRequest { call: None }) => return,
        };
        let RequestHeader { call: id, caller, node, .. } = header;
        match body {
            Body::Call(call, expects) => {
                let lookup = match call {
                    Call::Lookup { parent, name } => {
                        Some(self.connection.name_cache().begin_lookup(parent, name))
                    }
                    _ => None,
                };
                let reply = Reply::new(&self.connection, self.lane, id, expects, node, lookup);
                if affinity::has_much_data(&call) {
                    role.hand_over();
                }
                self.call(caller, call, reply, role);
                // A thread that polls for its requests need not move.
                if role.has_polled() {
                    *affinity = CallerAffinity::default();
                } else if affinity.called(caller.pid, &call) {
                    self.mover.move_to(caller.pid);
                }
            }
            Body::Forgets(forgets) => {
                for forget in forgets {
                    self.call(caller, forget, self.reply(id, Expects::Nothing), role);
                }
            }
            Body::Interrupt(interrupted) => self.interrupt(id, interrupted),
            Body::Destroy => self.reply(id, Expects::Done).answer(Answer::Done),
            Body::Ignored => {}
            Body::Refused(errno) => self.reply(id, Expects::Done).answer(Answer::Fail(errno)),
            Body::Init(_) => self.reply(id, Expects::Done).answer(Answer::Fail(Errno::Io)),
        }
    }

    /// Runs a call. A panic in the file system fails only this call (its reply is dropped) and not the mount.
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, role: &ReaderRole<'_>) {
        let guarded = AssertUnwindSafe(|| self.file_system.call(caller, call, reply, role));
        drop(catch_unwind(guarded));
    }

    fn interrupt(&self, interrupt: CallId, interrupted: CallId) {
        let guarded = AssertUnwindSafe(|| self.file_system.interrupt(interrupted));
        let is_known = catch_unwind(guarded).unwrap_or(true);
        if !is_known {
            self.connection.request_interrupt_again(interrupt);
            // The thread that read the interrupted call is about to register it.
            thread::yield_now();
        }
    }
}
