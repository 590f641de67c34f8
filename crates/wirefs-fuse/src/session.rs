//! The threads that serve a mount.

use crate::answer::{Expects, encode_error};
use crate::device::{Connection, Device, Received};
use crate::inbox::Inbox;
use crate::init::{self, Agreed, Offer, Outcome};
use crate::nearness::{self, Nearness};
use crate::notifier::Notifier;
use crate::reading::{Reading, Turns};
use crate::reply::Reply;
use crate::request::{self, Body, Header, Malformed};
use crate::{FileSystem, abi};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use wirefs_client::call::{Answer, Call, CallId, Caller, ROOT};
use wirefs_op::Errno;

/// How a mount is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads that read requests, at least 1.
    pub threads: usize,
    /// Bytes that one write carries at most; between 4 KiB and [`SessionOptions::WRITE_BYTES_MAX`].
    pub max_write: u32,
    /// Requests that the kernel sends without waiting for them (reading ahead, releases), at most.
    pub background_max: u16,
    /// Access control lists: the kernel reads them as extended attributes and checks them.
    pub posix_acl: bool,
    /// The kernel drops a file's pages when it sees another size or time of change; else only when told.
    pub auto_inval_data: bool,
    /// The kernel asks for attributes with a listing only where it saw them used; else always.
    pub readdirplus_auto: bool,
    /// Answers STATX from attributes. As long as there is no birth time to tell it only costs: a program that asks for
    /// one (each `stat(1)`, each Rust program) makes the kernel ask once for each file that it knows already.
    pub statx: bool,
    /// Uses that newer kernels (Linux 6.16) can be told to forget all names at once; else treats them like older ones.
    pub forgets_names: bool,
    /// The kernel opens and closes directories without asking, and keeps each listing that it has read to its end until it is told to
    /// drop it: the file system has to do that (`Invalidate::Listing`). READDIR comes with handle 0 then.
    pub spares_opendir: bool,
    /// One thread reads at a time, and looks for the next request before it sleeps: for a file system that answers most calls sooner than a
    /// thread wakes. Else all threads wait for requests.
    pub reads_in_turn: bool,
}

impl SessionOptions {
    /// The most that one write may carry, in bytes: what Linux allows by default.
    pub const WRITE_BYTES_MAX: u32 = 1024 * 1024;

    pub(crate) fn write_bytes_max(&self) -> u32 {
        self.max_write.clamp(4096, SessionOptions::WRITE_BYTES_MAX)
    }
}

impl Default for SessionOptions {
    /// A thread for each processor, 2 to 8; writes of 1 MiB; 64 requests in the background; data invalidated
    /// automatically; no access control lists; all that the kernel can.
    fn default() -> SessionOptions {
        SessionOptions {
            threads: thread::available_parallelism().map_or(2, usize::from).clamp(2, 8),
            max_write: SessionOptions::WRITE_BYTES_MAX,
            background_max: 64,
            posix_acl: false,
            auto_inval_data: true,
            readdirplus_auto: false,
            statx: false,
            forgets_names: true,
            spares_opendir: false,
            reads_in_turn: true,
        }
    }
}

/// How a session came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The mount was unmounted.
    Unmounted,
    /// The connection was cut by force.
    Aborted,
}

/// Why a session could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Reading or writing the device failed.
    #[error("the kernel's FUSE device failed: {0}")]
    Device(#[source] io::Error),
    /// The mount went before it began.
    #[error("the mount was taken away before it was served")]
    Gone,
    /// The kernel's interface is too old.
    #[error("this kernel speaks FUSE {major}.{minor}; 7.31 is needed: use Linux 5.4 or newer")]
    KernelTooOld {
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// The kernel did not begin as its interface says.
    #[error("the kernel's first FUSE request is not INIT")]
    Unexpected,
    /// No thread could be made.
    #[error("a thread could not be started: {0}")]
    Thread(#[source] io::Error),
}

/// A mount that is served until it is unmounted. Dropping this lets the threads go on; [`Session::join`] waits for them.
#[derive(Debug)]
pub struct Session {
    connection: Arc<Connection>,
    agreed: Agreed,
    threads: Vec<JoinHandle<io::Result<Ended>>>,
    /// Gets word from each thread that learns that the mount is gone.
    gone: mpsc::Receiver<Ended>,
}

impl Session {
    /// Agrees with the kernel on the interface and starts the threads.
    ///
    /// # Errors
    /// When the kernel is too old, the device fails, or a thread cannot be made. The mount is then dead: unmount it.
    pub fn start(
        device: Device,
        file_system: Arc<dyn FileSystem>,
        options: SessionOptions,
    ) -> Result<Session, StartError> {
        let threads = options.threads.max(1);
        let connection = Connection::new(device, threads, options.reads_in_turn)
            .map_err(|error| StartError::Device(error.into()))?;
        let (connection, turns) =
            (Arc::new(connection), options.reads_in_turn.then(|| Arc::new(Turns::new())));
        let agreed = shake_hands(&connection, &options)?;
        connection.beliefs().agree(agreed.forgets_names, agreed.maps_unkept(), agreed.prunes());
        let (tell, gone) = mpsc::channel();
        let mut session = Session { connection, agreed, threads: Vec::with_capacity(threads), gone };
        for lane in 0..threads {
            let server = Server {
                connection: Arc::clone(&session.connection),
                turns: turns.clone(),
                lane,
                file_system: Arc::clone(&file_system),
                agreed,
            };
            let tell = tell.clone();
            let serve = move || {
                server.serve().inspect(|ended| {
                    let _unheard = tell.send(*ended);
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

    /// What was agreed on with the kernel.
    pub fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// Tells the kernel what to forget.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(Arc::downgrade(&self.connection))
    }

    /// Waits until the mount is gone. Calls may still be under way in threads.
    pub fn until_gone(&self) {
        // Nobody is left to tell where reading failed in all threads.
        let _ended = self.gone.recv();
    }

    /// Waits until the mount is gone, and no thread serves it any more.
    ///
    /// # Errors
    /// When reading requests failed in a thread. The others went on.
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

/// Requests before INIT is agreed on, at most: the kernel sends one, a newer one two.
const OFFERS_MAX: usize = 4;

fn shake_hands(connection: &Connection, options: &SessionOptions) -> Result<Agreed, StartError> {
    let page_bytes = u32::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut buffer = vec![0; abi::READ_SLACK_BYTES];
    let reply =
        |message: &[u8]| connection.send_unasked(message).map_err(|error| StartError::Device(error.into()));
    for _ in 0..OFFERS_MAX {
        let (call, offer) = receive_offer(connection, &mut buffer)?;
        match init::agree(&offer, options, page_bytes) {
            Outcome::Agreed(agreed) => {
                reply(&agreed.encode(call))?;
                return Ok(agreed);
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

/// One thread's share of the serving.
struct Server {
    connection: Arc<Connection>,
    /// `None`: all threads read.
    turns: Option<Arc<Turns>>,
    lane: usize,
    file_system: Arc<dyn FileSystem>,
    agreed: Agreed,
}

impl Server {
    fn serve(self) -> io::Result<Ended> {
        let mut inbox = Inbox::new(self.agreed.write_bytes_max);
        let mut near = Nearness::default();
        let reading = Reading::new(self.turns.as_ref());
        loop {
            let (head, rest) = inbox.room();
            match reading.receive(&self.connection, self.lane, head, rest)? {
                Received::Request(bytes) => {
                    let agreed = self.agreed.dialect();
                    inbox.open(bytes, |request| self.dispatch(request.decode(agreed), &mut near, &reading));
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
        request: Result<(Header, Body<'_>), Malformed>,
        near: &mut Nearness,
        reading: &Reading<'_>,
    ) {
        let (header, body) = match request {
            Ok(request) => request,
            Err(Malformed { call: Some(call) }) => return drop(self.reply(call, Expects::Done)),
            Err(Malformed { call: None }) => return,
        };
        let Header { call: id, caller, node, .. } = header;
        match body {
            Body::Call(call, expects) => {
                let lookup = match call {
                    Call::Lookup { parent, name } => Some(self.connection.beliefs().looked_up(parent, name)),
                    _ => None,
                };
                let reply = Reply::new(&self.connection, self.lane, id, expects, node, lookup);
                if nearness::has_much_data(&call) {
                    reading.hand_over();
                }
                self.call(caller, call, reply, reading);
                // Who is awake when it is asked need not be near. Else behind the answer, which is not to wait for it.
                if reading.has_looked() {
                    *near = Nearness::default();
                } else if near.called(caller.pid, &call) {
                    nearness::go_to(caller.pid);
                }
            }
            Body::Forgets(forgets) => {
                for forget in forgets {
                    self.call(caller, forget, self.reply(id, Expects::Nothing), reading);
                }
            }
            Body::Interrupt(interrupted) => self.interrupt(id, interrupted),
            Body::Destroy => self.reply(id, Expects::Done).answer(Answer::Done),
            Body::Ignored => {}
            Body::Refused(errno) => self.reply(id, Expects::Done).answer(Answer::Fail(errno)),
            Body::Init(_) => self.reply(id, Expects::Done).answer(Answer::Fail(Errno::Io)),
        }
    }

    /// A panic in the file system costs the call that caused it (its reply is dropped, so it fails) and not the mount.
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, reading: &Reading<'_>) {
        let guarded = AssertUnwindSafe(|| self.file_system.call(caller, call, reply, reading));
        drop(catch_unwind(guarded));
    }

    fn interrupt(&self, interrupt: CallId, interrupted: CallId) {
        let guarded = AssertUnwindSafe(|| self.file_system.interrupt(interrupted));
        let known = catch_unwind(guarded).unwrap_or(true);
        if !known {
            self.connection.ask_interrupt_again(interrupt);
            // The thread that read the interrupted call is about to hand it over.
            thread::yield_now();
        }
    }
}
