//! The command line: one file per subcommand.

mod bench;
mod cards;
mod check;
mod host_pair;
mod link;
mod many;
mod up;

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use wirefs_lab::{control, namespace};

/// Hosts as network namespaces, joined by a link of any delay, loss and rate. Needs root.
#[derive(Parser)]
#[command(name = "wirefs-lab", version)]
struct CommandLine {
    #[command(subcommand)]
    subcommand: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    /// Creates a server and a client, runs a command on one of them, and removes both.
    Link(link::LinkArguments),
    /// Creates a server and a client, prints their names, and keeps them until a signal arrives.
    Up(up::UpArguments),
    /// Runs a command in a namespace; its mounts are visible outside (unlike with `ip netns exec`).
    Exec {
        /// The namespace, as listed by `ip netns`.
        namespace: String,
        /// The command and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Sends a line to a control socket: cut, heal, counters, set --rtt 10ms …
    Control {
        /// The socket of the option `--control`.
        socket: PathBuf,
        /// The line.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Measures workloads on wirefs and other file systems over links of several round-trip times.
    Bench(bench::BenchArguments),
    /// Runs one step of a workload; `bench` starts it.
    #[command(hide = true)]
    Work(bench::WorkArguments),
    /// Walks a tree of a million files and reports the memory of both sides and the state of a second mount.
    Many(many::ManyArguments),
    /// Measures the read of a large file from a node over TLS: over one card, over two, and with one of the two cut
    /// during the read.
    Cards(cards::CardsArguments),
    /// Measures the lab itself: rate, delay error, round trips.
    Check(check::CheckArguments),
}

/// Parses the command line and runs its subcommand.
pub(crate) fn run() -> ExitCode {
    let done = match CommandLine::parse().subcommand {
        LabCommand::Link(arguments) => link::run(&arguments),
        LabCommand::Up(arguments) => up::run(&arguments),
        LabCommand::Exec { namespace, command } => exec(&namespace, &command),
        LabCommand::Control { socket, words } => {
            control::send(&socket, &words.join(" ")).map_err(Into::into).map(|reply| {
                println!("{reply}");
                ExitCode::from(u8::from(reply.starts_with("{\"error\"")))
            })
        }
        LabCommand::Bench(arguments) => bench::run(&arguments),
        LabCommand::Work(arguments) => bench::work(&arguments),
        LabCommand::Many(arguments) => many::run(&arguments),
        LabCommand::Cards(arguments) => cards::run(&arguments),
        LabCommand::Check(arguments) => check::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("wirefs-lab: {error:#}");
        ExitCode::from(2)
    })
}

/// Replaces this process with the command; returns only if that fails.
fn exec(namespace: &str, command: &[String]) -> anyhow::Result<ExitCode> {
    let (program, arguments) = command.split_first().ok_or_else(|| anyhow::anyhow!("no command is given"))?;
    let error = namespace::command_inside(namespace, program)?.args(arguments).exec();
    Err(anyhow::Error::new(error).context(format!("run {program}")))
}
