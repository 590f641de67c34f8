//! `wirefs-lab link … -- COMMAND`: runs a command on one of two hosts.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};
use wirefs_lab::{EndSignals, LinkOptions};

use super::host_pair::HostPair;

/// One of the two hosts.
#[derive(Clone, Copy, ValueEnum)]
enum HostChoice {
    Server,
    Client,
}

#[derive(Args)]
pub(crate) struct LinkArguments {
    #[command(flatten)]
    options: LinkOptions,
    /// The host that the command runs on.
    #[arg(long, value_enum, default_value_t = HostChoice::Client)]
    on: HostChoice,
    /// Creates a socket at this path; `wirefs-lab control` changes the link through it.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Writes the link's counters as JSON to standard error at the end.
    #[arg(long)]
    json: bool,
    /// The command. Its environment has the hosts' names in WIREFS_LAB_SERVER and WIREFS_LAB_CLIENT, their addresses in
    /// WIREFS_LAB_SERVER_ADDRESS and WIREFS_LAB_CLIENT_ADDRESS, and this program in WIREFS_LAB.
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

/// Runs the command and returns its exit code.
pub(crate) fn run(arguments: &LinkArguments) -> anyhow::Result<ExitCode> {
    let signals = EndSignals::block().context("block signals")?;
    let pair = HostPair::new("link", &arguments.options, arguments.control.as_deref())?;
    let (program, rest) = arguments.command.split_first().context("no command is given")?;
    let host = match arguments.on {
        HostChoice::Server => &pair.server,
        HostChoice::Client => &pair.client,
    };
    let mut command = host.command(program);
    command.args(rest).envs(pair.variables());
    command.env("WIREFS_LAB", std::env::current_exe().context("find this program")?);
    let mut child = command.spawn().with_context(|| format!("run {program}"))?;
    forward_signals(signals, child.id());
    let status = child.wait().with_context(|| format!("wait for {program}"))?;
    if arguments.json {
        eprintln!("{}", pair.link.counters().to_json());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Forwards termination signals to the command; this program ends when the command does.
fn forward_signals(signals: EndSignals, child: u32) {
    thread::spawn(move || {
        while let Ok(number) = signals.wait() {
            let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
            if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(number)) {
                // The command may have ended already.
                kill_process(pid, signal).ok();
            }
        }
    });
}
