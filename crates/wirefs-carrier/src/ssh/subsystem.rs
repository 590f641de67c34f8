//! A subsystem of the remote sshd, such as `sftp`: a stream of bytes in both directions.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::Arc;

use super::child::SshProcess;
use super::command::{EXIT_NO_PROGRAM, Questions, SshOptions};
use super::dial::EXIT_TIME;
use crate::address::Login;
use crate::closer::Closer;
use crate::dial::DialError;
use crate::stream::shut;

/// Connects to a subsystem of a login's machine.
#[derive(Clone, Debug)]
pub struct SubsystemDial {
    login: Login,
    name: &'static str,
    options: SshOptions,
}

/// A connected subsystem.
pub struct Subsystem {
    /// The bytes from the subsystem.
    pub source: Box<dyn Read + Send>,
    /// The bytes to the subsystem.
    pub sink: Box<dyn Write + Send>,
    /// Ends the connection.
    pub closer: Closer,
    /// The ssh process, which explains the end of the source.
    pub process: SubsystemProcess,
}

/// The ssh process of a subsystem.
pub struct SubsystemProcess {
    remote: SshProcess,
    dial: SubsystemDial,
}

impl SubsystemDial {
    /// Returns a dialer of the subsystem `name`.
    pub fn new(login: Login, name: &'static str, options: SshOptions) -> Self {
        Self { login, name, options }
    }

    /// Returns `[user@]host`, for messages.
    pub fn login(&self) -> String {
        self.login.to_string()
    }

    /// Starts ssh. `is_interactive`: a user can answer its questions. Returns before the login is complete; the end of
    /// the source tells of a failure, which [`SubsystemProcess::explain`] names.
    ///
    /// # Errors
    /// The system gives no process or descriptor.
    pub fn dial(&self, is_interactive: bool) -> Result<Subsystem, DialError> {
        let (ours, theirs) = UnixStream::pair().map_err(DialError::Resources)?;
        let input = OwnedFd::from(theirs);
        let output = input.try_clone().map_err(DialError::Resources)?;
        let questions = if is_interactive { Questions::Terminal } else { Questions::None };
        let command = self.options.subsystem(&self.login, questions, self.name);
        let remote = SshProcess::spawn(command, input.into(), output.into()).map_err(DialError::Resources)?;
        let halves = ours.try_clone().and_then(|source| Ok((source, ours.try_clone()?)));
        let (source, sink) = halves.map_err(DialError::Resources)?;
        let socket = Arc::new(OwnedFd::from(ours));
        let closer = Closer::new({
            let remote = remote.clone();
            move || {
                shut(&socket);
                remote.stop();
            }
        });
        let process = SubsystemProcess { remote, dial: self.clone() };
        Ok(Subsystem { source: Box::new(source), sink: Box::new(sink), closer, process })
    }
}

impl SubsystemProcess {
    /// Returns the reason for an end of the streams, once the process has ended.
    pub fn explain(&self) -> DialError {
        let SubsystemDial { login, name, options } = &self.dial;
        let (login, name) = (login.to_string(), *name);
        let failed =
            |what: String, stderr| DialError::SubsystemFailed { login: login.clone(), name, what, stderr };
        let (exit, stderr) = self.remote.await_exit(EXIT_TIME);
        match exit.as_ref().and_then(ExitStatus::code) {
            Some(EXIT_NO_PROGRAM) => {
                DialError::SshMissing { program: options.program(), error: io::ErrorKind::NotFound.into() }
            }
            // OpenSSH uses this status for a refused subsystem too, and then prints that.
            Some(255) if stderr.contains("subsystem request failed") => {
                failed("is not offered there".into(), stderr)
            }
            Some(255) => DialError::SshFailed { command: options.shown(&self.dial.login), login, stderr },
            Some(code) => failed(format!("ended with status {code}"), stderr),
            None => failed("does not answer as the protocol demands".into(), stderr),
        }
    }
}
