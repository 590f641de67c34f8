//! `wirefs-lab link … -- COMMAND`: a command on one of two hosts.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};
use wirefs_lab::{EndSignals, LinkOptions};

use super::pair::Pair;

/// One of the two hosts.
#[derive(Clone, Copy, ValueEnum)]
enum Side {
    Server,
    Client,
}

#[derive(Args)]
pub(crate) struct LinkArguments {
    #[command(flatten)]
    options: LinkOptions,
    /// The host that the command runs on.
    #[arg(long, value_enum, default_value_t = Side::Client)]
    on: Side,
    /// Makes a socket at this path, by which `wirefs-lab control` changes the link.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Writes the link's counters as JSON to standard error at the end.
    #[arg(long)]
    json: bool,
    /// The command. It finds the names of the hosts in WIREFS_LAB_SERVER and WIREFS_LAB_CLIENT, their addresses in
    /// WIREFS_LAB_SERVER_ADDRESS and WIREFS_LAB_CLIENT_ADDRESS, this program in WIREFS_LAB.
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

/// Runs the command and ends as it does.
pub(crate) fn run(arguments: &LinkArguments) -> anyhow::Result<ExitCode> {
    let signals = EndSignals::block().context("block signals")?;
    let pair = Pair::new("link", &arguments.options, arguments.control.as_deref())?;
    let (program, rest) = arguments.command.split_first().context("no command is named")?;
    let host = match arguments.on {
        Side::Server => &pair.server,
        Side::Client => &pair.client,
    };
    let mut command = host.command(program);
    command.args(rest).envs(pair.variables());
    command.env("WIREFS_LAB", std::env::current_exe().context("find this program")?);
    let mut child = command.spawn().with_context(|| format!("run {program}"))?;
    pass_on(signals, child.id());
    let status = child.wait().with_context(|| format!("wait for {program}"))?;
    if arguments.json {
        eprintln!("{}", pair.link.counters().to_json());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Hands signals that ask this program to end to the command, whose end then ends this program in order.
fn pass_on(signals: EndSignals, child: u32) {
    thread::spawn(move || {
        while let Ok(number) = signals.wait() {
            let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
            if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(number)) {
                // A command that has just ended needs no signal.
                kill_process(pid, signal).ok();
            }
        }
    });
}
