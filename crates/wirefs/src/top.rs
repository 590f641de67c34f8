//! `wirefs top`: the mounts of this user, live in the terminal.

mod screen;

use std::io::{IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::activity::Sample;
use crate::arguments;
use crate::control::{self, ControlClient, ControlReply, ControlRequest};
use crate::terminal::say;

/// The refresh interval.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// The default size of a terminal.
const SIZE_DEFAULT: (usize, usize) = (80, 24);

/// Shows the mounts until a signal; once with `--once` or without a terminal.
pub(crate) fn run(arguments: &arguments::Top) -> Result<()> {
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&samples())?);
        return Ok(());
    }
    if arguments.once || !std::io::stdout().is_terminal() {
        say!("{}", screen::draw(&[], &samples(), Duration::ZERO, (size().0, usize::MAX)));
        return Ok(());
    }
    let mut before = Vec::new();
    let mut at = Instant::now();
    loop {
        let now = samples();
        let text = screen::draw(&before, &now, at.elapsed(), size());
        at = Instant::now();
        // Goes to the top left corner, and erases each line's rest and all lines below.
        let text = text.replace('\n', "\x1b[K\n");
        if write!(std::io::stdout(), "\x1b[H{text}\x1b[J").and_then(|()| std::io::stdout().flush()).is_err() {
            return Ok(());
        }
        before = now;
        thread::sleep(REFRESH_INTERVAL);
    }
}

/// Returns the columns and rows of the terminal.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            (usize::from(size.ws_col), usize::from(size.ws_row))
        }
        Ok(_) | Err(_) => SIZE_DEFAULT,
    }
}

/// Returns the present samples of all mounts of this user that answer.
pub(crate) fn samples() -> Vec<Sample> {
    let mut clients = control::find_all();
    // At once: a process that does not answer must not delay the others.
    thread::scope(|scope| {
        let asked: Vec<_> = clients.iter_mut().map(|client| scope.spawn(|| sample(client).ok())).collect();
        asked.into_iter().filter_map(|answer| answer.join().ok().flatten()).collect()
    })
}

fn sample(client: &mut ControlClient) -> std::io::Result<Sample> {
    client.send(ControlRequest::Sample)?;
    match client.answer()? {
        ControlReply::Sample(sample) => Ok(*sample),
        ControlReply::Status(_)
        | ControlReply::Echo(_)
        | ControlReply::Progress(_)
        | ControlReply::Ended(_)
        | ControlReply::Done => Err(std::io::Error::other("it sent an unexpected answer")),
        ControlReply::Failed { message } => Err(std::io::Error::other(message)),
    }
}
