//! The command line: one file per verb.

mod bench;
mod cards;
mod check;
mod contend;
mod fetch;
mod link;
mod many;
mod pair;
mod published;
mod up;

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use wirefs_lab::{control, namespace};

/// Hosts as network namespaces, joined by a link that is as long and as bad as you want. Needs root.
#[derive(Parser)]
#[command(name = "wirefs-lab", version)]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Makes a server and a client, runs a command on one of them, and removes both.
    Link(link::LinkArguments),
    /// Makes a server and a client, says their names, and keeps them until it is stopped.
    Up(up::UpArguments),
    /// Runs a command in a namespace; what it mounts is seen outside (unlike under `ip netns exec`).
    Exec {
        /// The namespace, as `ip netns` knows it.
        namespace: String,
        /// The command and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Sends a line to a control socket: cut, heal, counters, set --rtt 10ms …
    Control {
        /// The socket that `--control` named.
        socket: PathBuf,
        /// The line.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Measures workloads on wirefs and its peers over links of several lengths.
    Bench(bench::BenchArguments),
    /// Does one step of a workload; `bench` runs it so.
    #[command(hide = true)]
    Work(bench::WorkArguments),
    /// Walks a tree of very many files, and says what memory both sides needed, and what the next mount still knows.
    Many(many::ManyArguments),
    /// Measures how long it takes to fetch files over one card and two, with load, beside what the source published.
    Fetch(fetch::FetchArguments),
    /// Measures how long a large file takes from a node over TLS, over one card, over two, and with one of the two cut on the way.
    Cards(cards::CardsArguments),
    /// Measures what SNFS and an AFS-like system published of themselves, killed servers included, beside their figures.
    Published(published::PublishedArguments),
    /// Writes a file in pieces and kills a server on the way; `published` runs it so.
    #[command(hide = true)]
    WriteBatch(published::BatchArguments),
    /// Is one program of a test of locks; the tests run it so.
    #[command(hide = true, subcommand)]
    Contend(contend::Contender),
    /// Measures the lab itself: rate, delay error, round trips.
    Check(check::CheckArguments),
}

/// Reads the command line and does what it says.
pub(crate) fn run() -> ExitCode {
    let done = match Line::parse().verb {
        Verb::Link(arguments) => link::run(&arguments),
        Verb::Up(arguments) => up::run(&arguments),
        Verb::Exec { namespace, command } => exec(&namespace, &command),
        Verb::Control { socket, words } => {
            control::send(&socket, &words.join(" ")).map_err(Into::into).map(|answer| {
                println!("{answer}");
                ExitCode::from(u8::from(answer.starts_with("{\"error\"")))
            })
        }
        Verb::Bench(arguments) => bench::run(&arguments),
        Verb::Work(arguments) => bench::work(&arguments),
        Verb::Many(arguments) => many::run(&arguments),
        Verb::Fetch(arguments) => fetch::run(&arguments),
        Verb::Cards(arguments) => cards::run(&arguments),
        Verb::Published(arguments) => published::run(&arguments),
        Verb::WriteBatch(arguments) => published::write(&arguments),
        Verb::Contend(contender) => contend::run(&contender),
        Verb::Check(arguments) => check::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("wirefs-lab: {error:#}");
        ExitCode::from(2)
    })
}

/// Becomes the command; comes back only when that fails.
fn exec(namespace: &str, command: &[String]) -> anyhow::Result<ExitCode> {
    let (program, arguments) = command.split_first().ok_or_else(|| anyhow::anyhow!("no command is named"))?;
    let error = namespace::command_inside(namespace, program)?.args(arguments).exec();
    Err(anyhow::Error::new(error).context(format!("run {program}")))
}
