//! A shell on a terminal of its own: for programs that ask, or that Ctrl-C ends.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::sys;

/// The timeout of all waits.
const WAIT_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The program whose child has the terminal as its own: it starts a session, and takes standard input as its terminal.
pub const STARTER: &str = "setsid";
/// The keys that interrupt the program in front.
pub const CTRL_C: &str = "\x03";

/// A shell on a terminal.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: File,
    output: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// Runs a shell script on a terminal. `command` is the program [`STARTER`] in its environment, without arguments.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(mut command: Command, script: &str) -> io::Result<Terminal> {
        let (keys, terminal) = sys::open_terminal()?;
        // A script in the background of another one inherits that Ctrl-C is ignored; a session at a terminal does not.
        command.args(["--ctty", "env", "--default-signal", "sh", "-c", script]);
        command.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal);
        let child = command.spawn()?;
        // Only the child has the terminal now, so that its output ends with it.
        drop(command);
        let output = Arc::new(Mutex::new(String::new()));
        let (mut screen, text) = (keys.try_clone()?, Arc::clone(&output));
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 1024];
            while let Ok(count @ 1..) = screen.read(&mut chunk) {
                let read = String::from_utf8_lossy(chunk.get(..count).unwrap_or_default());
                text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&read);
            }
        });
        Ok(Terminal { child, keys, output, reader })
    }

    /// Returns all output so far.
    pub fn text(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the output has this text so many times.
    ///
    /// # Errors
    /// It did not come within a minute; the error is the output.
    pub fn await_text(&self, text: &str, count: usize) -> Result<(), String> {
        let deadline = Instant::now() + WAIT_MAX;
        while self.text().matches(text).count() < count {
            if Instant::now() >= deadline {
                return Err(format!("waited in vain for {count} × {text:?} in: {}", self.text()));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Types keys.
    ///
    /// # Errors
    /// The terminal is closed.
    pub fn types(&self, keys: &str) -> io::Result<()> {
        (&self.keys).write_all(keys.as_bytes())
    }

    /// Waits for the end, and returns the exit status with all output.
    ///
    /// # Errors
    /// It did not end within a minute; the error is the output.
    pub fn end(mut self) -> Result<(Option<i32>, String), String> {
        let deadline = Instant::now() + WAIT_MAX;
        let status = loop {
            match self.child.try_wait() {
                // The screen ends with the last program on the terminal.
                Ok(Some(status)) if self.reader.is_finished() => break status,
                Ok(_) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
                Ok(_) | Err(_) => {
                    let _gone = self.child.kill();
                    return Err(format!("no end after: {}", self.text()));
                }
            }
        };
        Ok((status.code(), self.text()))
    }
}
