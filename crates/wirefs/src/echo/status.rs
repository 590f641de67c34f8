//! `wirefs echo status`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::ending::Plan;
use super::nodes::Nodes;
use super::report::{EchoReport, Host};
use crate::arguments::EchoStatus;
use crate::control::{self, ControlClient, ControlReply, ControlRequest};
use crate::failure::failure;
use crate::mountpoint;
use crate::status::{bytes, connect, span};
use crate::terminal::say;

/// The refresh interval of `--watch`.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Prints the status, once or repeatedly.
pub(super) fn run(arguments: &EchoStatus) -> Result<()> {
    let mut line = match &arguments.mountpoint {
        Some(path) => connect(path)?,
        None => only()?,
    };
    show(&ask(&mut line)?, arguments);
    if arguments.watch {
        loop {
            std::thread::sleep(REFRESH_INTERVAL);
            match ask(&mut line) {
                Ok(report) => show(&report, arguments),
                // Ends with the mount.
                Err(_) => return Ok(()),
            }
        }
    }
    Ok(())
}

fn show(report: &EchoReport, arguments: &EchoStatus) {
    match (arguments.json, arguments.watch) {
        (true, true) => say!("{}", serde_json::to_string(report).unwrap_or_default()),
        (true, false) => say!("{}", serde_json::to_string_pretty(report).unwrap_or_default()),
        (false, is_again) => {
            if is_again && std::io::stdout().is_terminal() {
                // Clears the screen.
                let _written = std::io::stdout().write_all(b"\x1b[2J\x1b[H");
            }
            say!("{}", page(report));
        }
    }
}

/// Returns the only PingFS mount of this user.
fn only() -> Result<ControlClient> {
    let mounted = mountpoint::mounted().into_iter().map(|mount| mount.mountpoint);
    let ours = mounted.filter(|path| super::is_echo(path));
    let mut found: Vec<(PathBuf, ControlClient)> =
        ours.filter_map(|path| control::find(&path).map(|line| (path, line))).collect();
    let last = found.pop();
    match (last, found.first()) {
        (Some((_, line)), None) => Ok(line),
        (None, _) => {
            Err(failure("this user has mounted no PingFS", "`wirefs echo MOUNTPOINT --host HOST` mounts one"))
        }
        (Some(_), Some((first, _))) => Err(failure(
            format!("{} PingFS are mounted", found.len() + 1),
            format!("name one, as in `wirefs echo status {}`", first.display()),
        )),
    }
}

fn ask(line: &mut ControlClient) -> Result<EchoReport> {
    line.send(ControlRequest::Echo)?;
    match line.answer()? {
        ControlReply::Echo(report) => Ok(*report),
        ControlReply::Failed { message } => Err(failure(message, "`wirefs status` shows what it is")),
        ControlReply::Status(_)
        | ControlReply::Sample(_)
        | ControlReply::Progress(_)
        | ControlReply::Ended(_)
        | ControlReply::Done => Err(failure(
            "the process sent an unexpected answer",
            "it is another version of wirefs; unmount and mount again",
        )),
    }
}

fn page(report: &EchoReport) -> String {
    let blocks = report.blocks.map_or("unknown".to_owned(), |count| count.to_string());
    let of = |ms: Option<u64>| ms.map_or("unknown".to_owned(), |ms| span(Duration::from_millis(ms)));
    let ending = match &report.ending {
        Plan::Undecided => "undecided: `wirefs umount` asks".to_owned(),
        Plan::Discard => "discarded".to_owned(),
        Plan::Save(file) => format!("saved to {}", file.display()),
    };
    let refused = &report.refused;
    let mut lines = vec![
        format!(
            "blocks      {blocks} of {} ({} free), {} each, {}, keep {}",
            report.blocks_max,
            report.blocks_free,
            bytes(report.block_bytes),
            report.redundancy,
            report.keep
        ),
        format!(
            "lost        {} blocks; {} packets rebuilt, {} came late",
            report.blocks_lost, report.rebuilt, report.late
        ),
        format!("oldest      {}; up for {}", of(report.oldest_ms), of(Some(report.up_ms))),
        format!(
            "packets     {} sent on, {} new, {} empty; up to {} of {} wait here",
            report.circulated, report.launched, report.ballast, report.parked_max, report.packets_max
        ),
        format!(
            "refused     {} forged or damaged, {} seen before, {} of dropped blocks, {} foreign, {} other",
            refused.forged, refused.replayed, refused.dropped, refused.foreign, refused.other
        ),
        format!(
            "in memory   index {}, on the way out {}, for readers {}",
            bytes(report.memory.index),
            bytes(report.memory.outbox),
            bytes(report.memory.gathered)
        ),
        format!("at the end  {ending}"),
    ];
    lines.extend(report.nodes.iter().flat_map(Nodes::lines));
    lines.extend([
        String::new(),
        format!(
            "{:<24} {:<9} {:>9} {:>9} {:>9} {:>11} {:>9} {:>9} {:>7}",
            "host", "", "RTT", "lap", "rate/s", "packets", "of", "bytes", "lost"
        ),
    ]);
    lines.extend(report.hosts.iter().map(row));
    lines.extend(report.broken.as_ref().map(|why| format!("BROKEN: {why}")));
    lines.join("\n")
}

fn row(host: &Host) -> String {
    let of = |us: Option<u64>| us.map_or("-".to_owned(), |us| span(Duration::from_micros(us)));
    format!(
        "{:<24} {:<9} {:>9} {:>9} {:>9} {:>11} {:>9} {:>9} {:>7}",
        host.host,
        host.standing,
        of(host.rtt_us),
        of(host.lap_us),
        host.rate,
        host.packets,
        host.packets_max,
        bytes(host.bytes),
        host.lost
    )
}
