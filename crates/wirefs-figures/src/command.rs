//! The command line: one file per subcommand.

mod fetch;
mod picture;
mod published;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Replicas of the evaluations in published papers, measured beside the papers' figures. Needs root.
#[derive(Parser)]
#[command(name = "wirefs-figures", version)]
struct CommandLine {
    #[command(subcommand)]
    subcommand: Replica,
}

#[derive(Subcommand)]
enum Replica {
    /// Measures how long it takes to fetch files over one network card and two, under load, as the PODOS File System did.
    Fetch(fetch::FetchArguments),
    /// Repeats the measurements of SNFS and of an AFS-like system, with killed servers.
    Published(published::PublishedArguments),
    /// Draws the picture of the README from the tables of the bench.
    Picture(picture::PictureArguments),
    /// Writes a file in pieces and kills a server meanwhile; `published` starts it.
    #[command(hide = true)]
    WriteBatch(published::BatchArguments),
}

/// Parses the command line and runs its subcommand.
pub(crate) fn run() -> ExitCode {
    let done = match CommandLine::parse().subcommand {
        Replica::Fetch(arguments) => fetch::run(&arguments),
        Replica::Published(arguments) => published::run(&arguments),
        Replica::Picture(arguments) => picture::run(&arguments),
        Replica::WriteBatch(arguments) => published::write(&arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("wirefs-figures: {error:#}");
        ExitCode::from(2)
    })
}
