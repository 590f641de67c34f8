//! Arguments of `wirefs quarantine`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  wirefs quarantine list
  wirefs quarantine take 0f3a5b7c9d1e2f40-42 ~/rescued
  wirefs quarantine take documents/report.odt ~/rescued.odt
  wirefs quarantine drop 0f3a5b7c9d1e2f40-42

A mount with a journal tells programs that a change is done before the server
has it. What the server refuses then is here, with its bytes, until it is
dropped.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Quarantine {
    #[command(subcommand)]
    pub(crate) action: QuarantineAction,
}

/// Actions on quarantined changes.
#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineAction {
    /// Show all of them, those of a mount in their order; writes to one file are one line
    List {
        /// For programs: a list of all changes
        #[arg(long)]
        json: bool,
    },
    /// Show one, with the reason
    Show {
        /// Its name in the list
        #[arg(value_name = "CHANGE")]
        change: String,
    },
    /// Write the bytes that it was to write to a file that is not there yet; the change stays
    Take {
        /// Its name in the list; or the path of a file, for all that was to be written to it
        #[arg(value_name = "CHANGE")]
        change: String,
        /// The file to write to
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Let it go, with its bytes
    Drop {
        /// Its name in the list
        #[arg(value_name = "CHANGE", required_unless_present = "all")]
        change: Option<String>,
        /// All of them
        #[arg(long, conflicts_with = "change")]
        all: bool,
    },
}
