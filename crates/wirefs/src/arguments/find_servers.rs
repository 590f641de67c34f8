//! Arguments of `wirefs find-servers`.

use std::time::Duration;

use clap::Args;

use super::parse_span;

const EXAMPLES: &str = "\
Only servers that were started with `wirefs serve --announce` answer. Anyone on the
segment can answer, with any name and key: compare the key that the first mount
prints with the one that `wirefs serve` printed there.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FindServers {
    /// The network cards to ask on [default: all]
    #[arg(long, value_name = "IF", value_delimiter = ',')]
    pub(crate) nic: Vec<String>,
    /// How long to wait for answers
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = parse_span)]
    pub(crate) wait: Duration,
    /// Print JSON: a list of objects
    #[arg(long)]
    pub(crate) json: bool,
}
