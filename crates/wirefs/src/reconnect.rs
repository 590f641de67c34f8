//! `wirefs reconnect`: lets a mount over ssh ask for a password again.
//!
//! ```text
//!  ssh ── prompt ── this program as SSH_ASKPASS ── socket ── wirefs reconnect ── the user's terminal
//!   └── of the mount's process, which sees no answer
//! ```

mod answers;
mod askpass;
mod secret_line;

pub(crate) use askpass::{pass_on, prompts_socket};

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::arguments::AtMount;
use crate::control::ControlRequest;
use crate::failure::failure;
use crate::status::connect;
use crate::sys::{self, Signals};
use crate::terminal::say;
use answers::{Answered, PromptSocket};

/// The signals that end the command; one that suspends it would leave the terminal without echo.
const ENDING: [i32; 5] = [sys::INTERRUPT, sys::TERMINATE, sys::HANG_UP, sys::QUIT, sys::SUSPEND];

/// Connects a mount again, and asks the user what ssh asks.
pub(crate) fn run(arguments: &AtMount) -> Result<ExitCode> {
    let mountpoint = &arguments.mountpoint;
    let signals = Signals::take(&ENDING)?;
    let mut process = connect(mountpoint)?;
    if process.user() != Some(rustix::process::geteuid()) {
        return Err(failure(
            format!("{} is a mount of another user", mountpoint.display()),
            "run `wirefs reconnect` as that user: ssh asks for the user's password there",
        ));
    }
    let socket = PromptSocket::open()?;
    process.send(ControlRequest::Reconnect { prompts: socket.path().to_owned() }).map_err(no_answer)?;
    loop {
        let mut watched = [
            PollFd::new(&process, PollFlags::IN),
            PollFd::new(&signals, PollFlags::IN),
            PollFd::new(socket.listener(), PollFlags::IN),
        ];
        match poll(&mut watched, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        let [answered, signaled, asked] = watched.map(|watched| !watched.revents().is_empty());
        if signaled {
            return Ok(ended_by(signals.wait()?));
        }
        if answered {
            return outcome(process.answer().map_err(no_answer)?.outcome()?, mountpoint);
        }
        if asked && let Answered::Ended(signal) = socket.answer(&process, &signals)? {
            return Ok(ended_by(signal));
        }
    }
}

fn outcome(outcome: std::result::Result<(), String>, mountpoint: &Path) -> Result<ExitCode> {
    outcome.map_err(|message| {
        failure(
            format!("cannot connect {} again: {message}", mountpoint.display()),
            "try again, or mount again",
        )
    })?;
    say!("connected {} again", mountpoint.display());
    Ok(ExitCode::SUCCESS)
}

fn no_answer(error: std::io::Error) -> anyhow::Error {
    anyhow!("the process that serves the mount does not answer: {error}")
}

/// Returns the exit status of a program that a signal ended.
fn ended_by(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}
