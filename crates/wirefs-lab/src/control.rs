//! A socket by which scripts change a running link: one line in, one line of JSON out.
//!
//! | line | what |
//! |---|---|
//! | `cut`, `heal` | cuts or heals both directions |
//! | `set --rtt 10ms --loss 2%` | changes what is named |
//! | `counters` | nothing; the answer holds the counters, as every good answer does |

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

/// The longest line, in bytes.
const LINE_BYTES_MAX: u64 = 4_096;
/// How long a connection may be idle before the next one is served.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// A line as it was written.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
enum Line {
    /// Cuts both directions.
    Cut,
    /// Heals both directions.
    Heal,
    /// Changes what is named.
    Set(LinkOptions),
    /// Reads the counters.
    Counters,
}

/// A running control socket; dropping it closes and removes it.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlSocket {
    /// Listens at `path` for lines that change `link`. Connections are served one after another.
    ///
    /// # Errors
    /// [`LabError::Io`], also when something stands at `path` already.
    pub fn open(path: &Path, link: LinkHandle) -> Result<ControlSocket, LabError> {
        let listener = UnixListener::bind(path)
            .map_err(|error| LabError::io(format!("listen at {}", path.display()), error))?;
        let closed = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&closed);
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                let connections = listener.incoming().take_while(|_| !seen.load(Ordering::Acquire));
                for connection in connections.flatten() {
                    // A script that hangs up early hurts only itself.
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
        // Connecting ends the wait for a connection; where that fails the thread has ended by itself.
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
        let answer = match obey(&line, link) {
            Ok(()) => link.counters().to_json(),
            Err(problem) => format!("{{\"error\":{}}}", quoted(&problem)),
        };
        writeln!(&*connection, "{answer}")?;
    }
}

fn obey(line: &str, link: &LinkHandle) -> Result<(), String> {
    match Line::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())? {
        Line::Cut => link.cut(),
        Line::Heal => link.heal(),
        Line::Set(options) => {
            link.set_profile(options.apply(link.profile())).map_err(|error| error.to_string())?;
        }
        Line::Counters => {}
    }
    Ok(())
}

/// Sends one line to the control socket at `path` and gives the answer.
///
/// # Errors
/// [`LabError::Io`] when nobody listens there, or no answer comes within 5 s.
pub fn send(path: &Path, line: &str) -> Result<String, LabError> {
    let exchange = || -> io::Result<String> {
        let connection = UnixStream::connect(path)?;
        connection.set_read_timeout(Some(IDLE_MAX))?;
        writeln!(&connection, "{line}")?;
        let mut answer = String::new();
        BufReader::new(&connection).read_line(&mut answer)?;
        Ok(answer.trim_end().to_owned())
    };
    exchange().map_err(|error| LabError::io(format!("talk to {}", path.display()), error))
}

/// `text` as a JSON string.
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
