//! A Unix socket for changes of a running link: a request is one line, the reply one line of JSON.
//!
//! | line | effect |
//! |---|---|
//! | `cut`, `heal` | cuts or restores both directions |
//! | `set --rtt 10ms --loss 2%` | changes the given properties |
//! | `counters` | none; every successful reply has the counters |

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io};

use clap::Parser;

use crate::emulator::LinkHandle;
use crate::error::LabError;
use crate::options::LinkOptions;

/// The maximum length of a line, in bytes.
const LINE_BYTES_MAX: u64 = 4_096;
/// The maximum idle time of a connection; the next one is served after it.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// A parsed request.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
enum ControlLine {
    /// Cuts both directions.
    Cut,
    /// Restores both directions.
    Heal,
    /// Changes the given properties.
    Set(LinkOptions),
    /// Reads the counters.
    Counters,
}

/// A running control socket, closed and removed on drop.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlSocket {
    /// Listens at `path` for changes of `link`. Connections are served one after another.
    ///
    /// # Errors
    /// [`LabError::Io`], also if `path` exists already.
    pub fn open(path: &Path, link: LinkHandle) -> Result<ControlSocket, LabError> {
        let listener = UnixListener::bind(path)
            .map_err(|error| LabError::io(format!("listen at {}", path.display()), error))?;
        let closed = Arc::new(AtomicBool::new(false));
        let is_closed = Arc::clone(&closed);
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                let connections = listener.incoming().take_while(|_| !is_closed.load(Ordering::Acquire));
                for connection in connections.flatten() {
                    // A client that disconnects early loses only its own reply.
                    serve(&connection, &link).ok();
                }
            })
            .map_err(|error| LabError::io("start a thread", error))?;
        Ok(ControlSocket { path: path.to_owned(), closed, thread: Some(thread) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        // The connection unblocks `accept`; if it fails, the thread has ended already.
        UnixStream::connect(&self.path).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
        fs::remove_file(&self.path).ok();
    }
}

fn serve(connection: &UnixStream, link: &LinkHandle) -> io::Result<()> {
    connection.set_read_timeout(Some(IDLE_MAX))?;
    connection.set_write_timeout(Some(IDLE_MAX))?;
    let mut lines = BufReader::new(connection);
    loop {
        let mut line = String::new();
        if (&mut lines).take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let reply = match execute(&line, link) {
            Ok(()) => link.counters().to_json(),
            Err(problem) => format!("{{\"error\":{}}}", quoted(&problem)),
        };
        writeln!(&*connection, "{reply}")?;
    }
}

fn execute(line: &str, link: &LinkHandle) -> Result<(), String> {
    match ControlLine::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())? {
        ControlLine::Cut => link.cut(),
        ControlLine::Heal => link.heal(),
        ControlLine::Set(options) => {
            link.set_profile(options.apply(link.profile())).map_err(|error| error.to_string())?;
        }
        ControlLine::Counters => {}
    }
    Ok(())
}

/// Sends one line to the control socket at `path` and returns the reply.
///
/// # Errors
/// [`LabError::Io`] if nothing listens there, or no reply arrives within 5 s.
pub fn send(path: &Path, line: &str) -> Result<String, LabError> {
    let exchange = || -> io::Result<String> {
        let connection = UnixStream::connect(path)?;
        connection.set_read_timeout(Some(IDLE_MAX))?;
        writeln!(&connection, "{line}")?;
        let mut reply = String::new();
        BufReader::new(&connection).read_line(&mut reply)?;
        Ok(reply.trim_end().to_owned())
    };
    exchange().map_err(|error| LabError::io(format!("talk to {}", path.display()), error))
}

/// Returns `text` as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
