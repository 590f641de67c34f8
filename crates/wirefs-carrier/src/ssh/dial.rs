//! The client's side of ssh.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::child::Remote;
use super::command::{self, EXIT_NO_PROGRAM, SshOptions};
use super::source::SshSource;
use crate::address::Login;
use crate::assembly::Assembly;
use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;
use crate::dial::{Dial, DialError};
use crate::stdio::GREETING;
use crate::stream::{Stream, StreamSink, StreamSource, shut, wait};

/// What login scripts may print before wirefs answers, in bytes.
const NOISE_BYTES_MAX: usize = 64 * 1024;
/// Time for a dial in the background, beyond the connection itself: key exchange and the start of wirefs there.
const BACKGROUND_EXTRA: Duration = Duration::from_secs(20);
/// Time for the child to end once its output has.
const EXIT_TIME: Duration = Duration::from_secs(5);

/// Dials through ssh. [`Dial::dial`] lets ssh ask for passwords on the terminal, [`Dial::dial_again`] does not.
#[derive(Clone, Debug)]
pub struct SshDial {
    login: Login,
    path: Vec<u8>,
    options: SshOptions,
}

impl SshDial {
    /// Will serve `path` of the login's machine; an empty one is its home.
    pub fn new(login: Login, path: Vec<u8>, options: SshOptions) -> Self {
        Self { login, path, options }
    }

    fn connect(&self, asks: bool) -> Result<Carrier, DialError> {
        let time =
            if asks { self.options.answer_timeout } else { self.options.connect_timeout + BACKGROUND_EXTRA };
        let (ours, theirs) = UnixStream::pair().map_err(DialError::Resources)?;
        let input = OwnedFd::from(theirs);
        let output = input.try_clone().map_err(DialError::Resources)?;
        let command = self.options.command(&self.login, asks, &command::serve(&self.path));
        let remote = Remote::spawn(command, input.into(), output.into()).map_err(DialError::Resources)?;

        let socket = Arc::new(OwnedFd::from(ours));
        let closer = Closer::new({
            let (socket, remote) = (Arc::clone(&socket), remote.clone());
            move || {
                // Ends the child's input behind what is already sent; it gets time to pass that on.
                shut(&socket);
                remote.stop();
            }
        });
        let assembly = match await_greeting(&socket, Instant::now() + time) {
            Ok(assembly) => assembly,
            Err(failure) => {
                let error = self.explain(failure, &remote, time);
                closer.close();
                return Err(error);
            }
        };
        let path = String::from_utf8_lossy(&self.path);
        let source = StreamSource::resume(Stream::Socket(Arc::clone(&socket)), closer.clone(), assembly);
        Ok(Carrier {
            source: Box::new(SshSource::new(source, remote, closer.clone())),
            sink: Box::new(StreamSink::new(Stream::Socket(socket), closer.clone())),
            closer,
            peer: PeerInfo::plain("ssh", format!("{}:{path}", self.login)),
        })
    }

    fn explain(&self, failure: Failure, remote: &Remote, time: Duration) -> DialError {
        let login = self.login.to_string();
        let failed = |what: String, stderr| DialError::RemoteFailed { login: login.clone(), what, stderr };
        match failure {
            Failure::Late => failed(
                format!("did not answer within {} seconds", time.as_secs()),
                remote.await_exit(Duration::ZERO).1,
            ),
            Failure::Noisy => failed(
                "cannot be reached: the login prints too much text; its start-up files should print nothing without a terminal".into(),
                String::new(),
            ),
            Failure::Io(error) => DialError::Resources(error),
            Failure::Ended => {
                let (exit, stderr) = remote.await_exit(EXIT_TIME);
                match exit.as_ref().and_then(ExitStatus::code) {
                    Some(255) => DialError::SshFailed { login, stderr },
                    Some(127) => DialError::RemoteMissing { login },
                    Some(EXIT_NO_PROGRAM) => {
                        DialError::SshMissing { program: self.options.program(), error: io::ErrorKind::NotFound.into() }
                    }
                    Some(code) => failed(format!("ended with status {code}"), stderr),
                    None => failed("ended unexpectedly".into(), stderr),
                }
            }
        }
    }
}

impl Dial for SshDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        self.connect(true)
    }

    fn dial_again(&self) -> Result<Carrier, DialError> {
        self.connect(false)
    }
}

enum Failure {
    Ended,
    Late,
    Noisy,
    Io(io::Error),
}

/// Reads past what the login prints, up to the greeting; keeps what came behind it.
fn await_greeting(socket: &OwnedFd, deadline: Instant) -> Result<Assembly, Failure> {
    let mut heard = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !wait(socket, PollFlags::IN, None, Some(left)).map_err(Failure::Io)? {
            return Err(Failure::Late);
        }
        match rustix::net::recv(socket, &mut chunk, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(Failure::Ended),
            Ok((_, count)) => {
                heard.extend_from_slice(chunk.get(..count).unwrap_or_default());
                if let Some(at) = heard.windows(GREETING.len()).position(|window| window == GREETING) {
                    let mut assembly = Assembly::new();
                    assembly.append(heard.get(at + GREETING.len()..).unwrap_or_default());
                    return Ok(assembly);
                }
                if heard.len() > NOISE_BYTES_MAX {
                    return Err(Failure::Noisy);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::CONNRESET) => return Err(Failure::Ended),
            Err(errno) => return Err(Failure::Io(errno.into())),
        }
    }
}
