//! The client side of ssh.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::child::SshProcess;
use super::command::{self, EXIT_NO_PROGRAM, Questions, SshOptions};
use super::prompts::{PromptAttempt, UserPrompts};
use super::source::SshSource;
use super::upload::{self, MISSING, UploadFailure, UploadProgress};
use crate::address::Login;
use crate::assembly::Assembly;
use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;
use crate::dial::{Dial, DialError};
use crate::printable::printable_lines;
use crate::stdio::GREETING;
use crate::stream::{Stream, StreamSink, StreamSource, shut, wait};

/// Bytes that login scripts may print before wirefs answers.
const BANNER_BYTES_MAX: usize = 64 * 1024;
/// Time of a background dial beyond the connect timeout: key exchange and the start of the remote wirefs.
const BACKGROUND_EXTRA: Duration = Duration::from_secs(20);
/// Bytes of a login's output that an error shows.
const OUTPUT_BYTES_MAX: usize = 1024;
/// The words of OpenSSH's `internal-sftp` to a client that starts a program.
const SFTP_ONLY: &str = "allows sftp connections only";
/// The time for the child to end after the end of its output.
pub(super) const EXIT_TIME: Duration = Duration::from_secs(5);

/// Dials through ssh. [`Dial::dial`] lets ssh ask for passwords on the terminal. [`Dial::dial_again`] lets ssh ask only
/// a user who waits for questions in [`Dial::prompts`].
#[derive(Clone, Debug)]
pub struct SshDial {
    login: Login,
    path: Vec<u8>,
    options: SshOptions,
    prompts: Arc<UserPrompts>,
}

impl SshDial {
    /// Returns a dialer that serves `path` of the login's machine; empty: its home directory.
    pub fn new(login: Login, path: Vec<u8>, options: SshOptions) -> Self {
        Self { login, path, options, prompts: Arc::default() }
    }

    fn connect(
        &self,
        questions: Questions<'_>,
        attempt: Option<&PromptAttempt<'_>>,
    ) -> Result<Carrier, DialError> {
        let time = match questions {
            Questions::Terminal | Questions::Route(_) => self.options.answer_timeout,
            Questions::None => self.options.connect_timeout + BACKGROUND_EXTRA,
        };
        let (ours, theirs) = UnixStream::pair().map_err(DialError::Resources)?;
        let input = OwnedFd::from(theirs);
        let output = input.try_clone().map_err(DialError::Resources)?;
        let serve = command::serve(&self.path, &self.options.programs.ids());
        let command = self.options.command(&self.login, questions, &serve);
        let remote = SshProcess::spawn(command, input.into(), output.into()).map_err(DialError::Resources)?;

        let socket = Arc::new(OwnedFd::from(ours));
        let closer = Closer::new({
            let (socket, remote) = (Arc::clone(&socket), remote.clone());
            move || {
                // Ends the child's input after the bytes already sent; the child gets time to forward them.
                shut(&socket);
                remote.stop();
            }
        });
        if let Some(attempt) = attempt {
            attempt.attach(&closer);
        }
        let greeted = match await_answer(&socket, Instant::now() + time) {
            Ok(RemoteAnswer::Greeting(assembly)) => Ok(assembly),
            Ok(RemoteAnswer::Missing(machine)) => {
                let is_shown = matches!(questions, Questions::Terminal);
                self.copy_program(&socket, &remote, &machine, is_shown)
            }
            // ssh takes its time to end after the user has left.
            Err(_) if attempt.is_some_and(PromptAttempt::is_over) => Err(DialError::NotAnswered),
            Err(failure) => Err(self.explain(failure, &remote, time, questions)),
        };
        let assembly = greeted.inspect_err(|_| closer.close())?;
        let path = String::from_utf8_lossy(&self.path);
        let source = StreamSource::resume(Stream::Socket(Arc::clone(&socket)), closer.clone(), assembly);
        Ok(Carrier {
            source: Box::new(SshSource::new(source, remote, closer.clone())),
            sink: Box::new(StreamSink::new(Stream::Socket(socket), closer.clone())),
            closer,
            peer: PeerInfo::plain("ssh", format!("{}:{path}", self.login)),
        })
    }

    /// Copies a program to a host without wirefs, which then runs it.
    fn copy_program(
        &self,
        socket: &OwnedFd,
        remote: &SshProcess,
        machine: &str,
        is_shown: bool,
    ) -> Result<Assembly, DialError> {
        let login = self.login.to_string();
        let command = self.options.shown(&self.login);
        if self.options.programs.is_empty() {
            return Err(DialError::RemoteMissing { login, command });
        }
        let not_copied = |what: String, stderr| DialError::NotCopied { login: login.clone(), what, stderr };
        let Some(program) = self.options.programs.of_machine(machine) else {
            let theirs = if machine.is_empty() { "of an unknown kind" } else { machine };
            let what = format!("it is {theirs}, and there is no program here for that; install wirefs there");
            return Err(not_copied(what, String::new()));
        };
        let packed = program
            .pack()
            .map_err(|error| not_copied(format!("this program cannot be read: {error}"), String::new()))?;
        let report = |sent, of| {
            if is_shown {
                (self.options.report)(UploadProgress { login: login.clone(), sent, of });
            }
        };
        let sent = upload::send(socket, &packed, report);
        let time = self.options.answer_timeout;
        let failure = match sent {
            Ok(()) => match await_answer(socket, Instant::now() + time) {
                Ok(RemoteAnswer::Greeting(assembly)) => return Ok(assembly),
                Ok(RemoteAnswer::Missing(_)) => Failure::Ended(String::new()),
                Err(failure) => failure,
            },
            Err(UploadFailure::Ended) => Failure::Ended(String::new()),
            Err(UploadFailure::Stalled) => {
                return Err(not_copied(
                    "it took no more bytes for a minute; try again".to_owned(),
                    String::new(),
                ));
            }
            Err(UploadFailure::Io(error)) => Failure::Io(error),
        };
        let (exit, stderr) = remote.await_exit(EXIT_TIME);
        match exit.and_then(|exit| exit.code()).and_then(upload::failure) {
            Some(what) => Err(not_copied(what.to_owned(), stderr)),
            None => Err(self.explain(failure, remote, time, Questions::Terminal)),
        }
    }

    fn explain(
        &self,
        failure: Failure,
        remote: &SshProcess,
        time: Duration,
        questions: Questions<'_>,
    ) -> DialError {
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
            Failure::Ended(output) => {
                let (exit, stderr) = remote.await_exit(EXIT_TIME);
                let command = self.options.shown(&self.login);
                match exit.as_ref().and_then(ExitStatus::code) {
                    Some(255) if matches!(questions, Questions::None) && is_refused(&stderr) => {
                        DialError::LoginNeeded { login, stderr }
                    }
                    Some(255) => DialError::SshFailed { login, command, stderr },
                    Some(127) => DialError::RemoteMissing { login, command },
                    Some(EXIT_NO_PROGRAM) => {
                        DialError::SshMissing { program: self.options.program(), error: io::ErrorKind::NotFound.into() }
                    }
                    Some(_) if output.contains(SFTP_ONLY) => DialError::SftpOnly { login, output },
                    Some(code) => failed(format!("ended with status {code}"), format!("{output}\n{stderr}")),
                    None => failed("ended unexpectedly".into(), stderr),
                }
            }
        }
    }
}

impl Dial for SshDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        self.connect(Questions::Terminal, None)
    }

    fn dial_again(&self) -> Result<Carrier, DialError> {
        let Some(attempt) = self.prompts.take() else { return self.connect(Questions::None, None) };
        let dialed = self.connect(Questions::Route(&attempt.route), Some(&attempt));
        attempt.finish(dialed.as_ref().map(|_| ()).map_err(ToString::to_string));
        dialed
    }

    fn prompts(&self) -> Option<&UserPrompts> {
        Some(&self.prompts)
    }
}

/// The first answer of the remote script.
pub(super) enum RemoteAnswer {
    /// wirefs runs; with the bytes after its greeting.
    Greeting(Assembly),
    /// There is no wirefs; with `uname -sm`.
    Missing(String),
}

pub(super) enum Failure {
    /// The stream ended; with the end of what the login printed.
    Ended(String),
    Late,
    Noisy,
    Io(io::Error),
}

/// Skips the output of login scripts up to an answer.
pub(super) fn await_answer(socket: &OwnedFd, deadline: Instant) -> Result<RemoteAnswer, Failure> {
    let mut received = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !wait(socket, PollFlags::IN, None, Some(left)).map_err(Failure::Io)? {
            return Err(Failure::Late);
        }
        match rustix::net::recv(socket, &mut chunk, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(Failure::Ended(end_of(&received))),
            Ok((_, count)) => {
                received.extend_from_slice(chunk.get(..count).unwrap_or_default());
                if let Some(at) = received.windows(GREETING.len()).position(|window| window == GREETING) {
                    let mut assembly = Assembly::new();
                    assembly.append(received.get(at + GREETING.len()..).unwrap_or_default());
                    return Ok(RemoteAnswer::Greeting(assembly));
                }
                if let Some(machine) = missing(&received) {
                    return Ok(RemoteAnswer::Missing(machine));
                }
                if received.len() > BANNER_BYTES_MAX {
                    return Err(Failure::Noisy);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::CONNRESET) => return Err(Failure::Ended(end_of(&received))),
            Err(errno) => return Err(Failure::Io(errno.into())),
        }
    }
}

/// Returns the machine of a host that announces that wirefs is missing.
fn missing(received: &[u8]) -> Option<String> {
    let at = received.windows(MISSING.len()).position(|window| window == MISSING)?;
    let rest = received.get(at + MISSING.len()..)?;
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    Some(printable_lines(rest.get(..end)?).trim().to_owned())
}

/// Returns whether the login may succeed with a user's answers, by the words of OpenSSH.
fn is_refused(stderr: &str) -> bool {
    ["Permission denied", "Host key verification failed"].iter().any(|words| stderr.contains(words))
}

/// Returns the end of a login's output, as text.
fn end_of(received: &[u8]) -> String {
    let from = received.len().saturating_sub(OUTPUT_BYTES_MAX);
    printable_lines(received.get(from..).unwrap_or_default())
}
