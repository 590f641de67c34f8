//! A program of this machine that serves Op on its standard input and output, started as ssh is.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::child::SshProcess;
use super::dial::{EXIT_TIME, RemoteAnswer, await_answer};
use super::source::SshSource;
use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;
use crate::dial::{Dial, DialError};
use crate::stream::{Stream, StreamSink, StreamSource, shut};

/// The time until the program answers: it connects to a server of its own first.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// Starts a program for each connection.
#[derive(Clone, Debug)]
pub struct ProgramDial {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl ProgramDial {
    /// Returns a dialer of the server that a program is.
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }
}

impl Dial for ProgramDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        let program = self.program.display().to_string();
        let (ours, theirs) = UnixStream::pair().map_err(DialError::Resources)?;
        let input = OwnedFd::from(theirs);
        let output = input.try_clone().map_err(DialError::Resources)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        let child = match SshProcess::spawn(command, input.into(), output.into()) {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DialError::ProgramMissing { program });
            }
            Err(error) => return Err(DialError::Resources(error)),
        };
        let socket = Arc::new(OwnedFd::from(ours));
        let closer = Closer::new({
            let (socket, child) = (Arc::clone(&socket), child.clone());
            move || {
                shut(&socket);
                child.stop();
            }
        });
        let Ok(RemoteAnswer::Greeting(assembly)) = await_answer(&socket, Instant::now() + ANSWER_TIME) else {
            closer.close();
            let (_, stderr) = child.await_exit(EXIT_TIME);
            return Err(DialError::ProgramFailed { program, stderr });
        };
        let source = StreamSource::resume(Stream::Socket(Arc::clone(&socket)), closer.clone(), assembly);
        Ok(Carrier {
            source: Box::new(SshSource::new(source, child, closer.clone())),
            sink: Box::new(StreamSink::new(Stream::Socket(socket), closer.clone())),
            closer,
            peer: PeerInfo::plain("program", program),
        })
    }
}
