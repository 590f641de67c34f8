//! Arguments of `wirefs quarantine`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  wirefs quarantine list
  wirefs quarantine take 0f3a5b7c9d1e2f40-42 ~/rescued
  wirefs quarantine take documents/report.odt ~/rescued.odt
  wirefs quarantine drop 0f3a5b7c9d1e2f40-42

With a journal, a change succeeds before the server has it. If the server then
rejects it, the change stays here, with its data, until you drop it.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Quarantine {
    #[command(subcommand)]
    pub(crate) action: QuarantineAction,
}

/// Actions on quarantined changes.
#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineAction {
    /// List all changes, ordered within a mount; writes to one file share a line
    List {
        /// Print JSON: a list of all changes
        #[arg(long)]
        json: bool,
    },
    /// Show one change and the reason
    Show {
        /// The name of the change in the list
        #[arg(value_name = "CHANGE")]
        change: String,
    },
    /// Copy the data of a change to a new file; the change stays
    Take {
        /// The name of the change; or the path of a file, for all writes to that file
        #[arg(value_name = "CHANGE")]
        change: String,
        /// The new file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Drop a change and its data
    Drop {
        /// The name of the change in the list
        #[arg(value_name = "CHANGE", required_unless_present = "all")]
        change: Option<String>,
        /// Drop all changes
        #[arg(long, conflicts_with = "change")]
        all: bool,
    },
}
