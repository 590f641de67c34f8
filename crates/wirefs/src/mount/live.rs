//! The status line of a mount in the foreground.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use wirefs_client::LinkState;
use wirefs_mount::{MountControl, MountStatus};

use crate::status::{bytes, span};
use crate::terminal::{note, say};

/// The refresh interval.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// The default terminal width, in characters.
const COLUMNS_DEFAULT: usize = 80;

/// Prints that the mount is ready, and on a terminal shows a status line.
pub(super) fn start(source: &OsStr, mountpoint: &Path, control: MountControl) {
    say!("mounted {} on {}", source.to_string_lossy(), mountpoint.display());
    if !std::io::stderr().is_terminal() {
        return;
    }
    let spawned = thread::Builder::new().name("wirefs-live".into()).spawn(move || show(&control));
    if let Err(error) = spawned {
        note!("wirefs: no status line: {error}");
    }
}

/// Ends the line, so that further output begins a new one.
pub(super) fn end() {
    if std::io::stderr().is_terminal() {
        note!("");
    }
}

fn show(control: &MountControl) {
    let mut before = control.status();
    loop {
        thread::sleep(REFRESH_INTERVAL);
        let now = control.status();
        let text: String = line(&before, &now).chars().take(columns() - 1).collect();
        // Returns to the first column, and erases the rest of the old line.
        if write!(std::io::stderr(), "\r{text}\x1b[K").is_err() {
            return;
        }
        before = now;
    }
}

/// Returns the terminal's width, at least 2; 0 means unknown.
fn columns() -> usize {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).max(2),
        Ok(_) | Err(_) => COLUMNS_DEFAULT,
    }
}

fn line(before: &MountStatus, now: &MountStatus) -> String {
    let (old, new) = (&before.snapshot, &now.snapshot);
    let link = match new.link {
        LinkState::Up(_) => new.rtt.map_or("up".to_owned(), |rtt| format!("RTT {}", span(rtt))),
        LinkState::Down(since) => format!("NOT CONNECTED for {}", span(new.at.since(since))),
    };
    let seconds = new.at.since(old.at).as_secs_f64().max(1e-3);
    let rate = |now: u64, before: u64| bytes((now.saturating_sub(before) as f64 / seconds) as u64);
    let in_flight: u64 = new.in_flight.values().sum();
    let hits = new.counters.name_hits + new.counters.data_hits;
    let all = hits + new.counters.name_misses + new.counters.data_misses;
    let share =
        (hits * 100).checked_div(all).map_or(String::new(), |share| format!(" · {share} % from memory"));
    format!(
        "{link} · {} calls · {in_flight} requests in flight · in {}/s · out {}/s{share}",
        new.counters.calls,
        rate(new.counters.bytes_in, old.counters.bytes_in),
        rate(new.counters.bytes_out, old.counters.bytes_out),
    )
}
