//! A line that is typed at the terminal without being shown.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::sys::Signals;

/// The controlling terminal.
const TERMINAL: &str = "/dev/tty";
/// The longest line, in bytes: that of a terminal's line discipline.
const LINE_BYTES_MAX: usize = 4096;

/// The end of a question.
pub(super) enum Line {
    /// The typed line, without its end.
    Typed(Vec<u8>),
    /// The question is not asked any more, or the terminal has no more input.
    Over,
    /// A signal has arrived.
    Signal(i32),
}

/// The terminal without echo. Dropping it restores the terminal.
pub(super) struct SecretTerminal {
    file: File,
    before: Termios,
}

impl Drop for SecretTerminal {
    fn drop(&mut self) {
        let _closed = tcsetattr(&self.file, OptionalActions::Flush, &self.before);
    }
}

impl SecretTerminal {
    /// Turns the echo off, and drops input that was typed before: it was meant for another program.
    ///
    /// # Errors
    /// The process has no terminal.
    pub(super) fn open() -> io::Result<SecretTerminal> {
        let file = OpenOptions::new().read(true).write(true).open(TERMINAL)?;
        let before = tcgetattr(&file)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(&file, OptionalActions::Flush, &silent)?;
        Ok(SecretTerminal { file, before })
    }

    /// Asks, and waits for a line. Ends early if `process` or `asker` has something to read, as at its end.
    ///
    /// # Errors
    /// The terminal fails.
    pub(super) fn ask(
        &mut self,
        question: &str,
        process: &impl AsFd,
        asker: &impl AsFd,
        signals: &Signals,
    ) -> io::Result<Line> {
        self.file.write_all(question.as_bytes())?;
        // The asker has sent all: it can be read at its end only, which does not show as input again.
        let hung_up = PollFlags::HUP | PollFlags::ERR;
        loop {
            let mut watched = [
                PollFd::new(&self.file, PollFlags::IN),
                PollFd::new(signals, PollFlags::IN),
                PollFd::new(process, PollFlags::IN),
                PollFd::new(asker, PollFlags::empty()),
            ];
            match poll(&mut watched, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            let [typed, signaled, answered, asking] = watched.map(|watched| watched.revents());
            if !signaled.is_empty() {
                self.file.write_all(b"\n")?;
                return Ok(Line::Signal(signals.wait()?));
            }
            if !answered.is_empty() || asking.intersects(hung_up) {
                self.file.write_all(b"\n")?;
                return Ok(Line::Over);
            }
            if !typed.is_empty() {
                return self.read_line();
            }
        }
    }

    /// Reads the line that the terminal has.
    fn read_line(&mut self) -> io::Result<Line> {
        let mut line = vec![0; LINE_BYTES_MAX];
        let count = self.file.read(&mut line)?;
        line.truncate(count);
        match line.pop() {
            Some(b'\n') => Ok(Line::Typed(line)),
            Some(last) => {
                line.push(last);
                Ok(Line::Typed(line))
            }
            None => Ok(Line::Over),
        }
    }
}
