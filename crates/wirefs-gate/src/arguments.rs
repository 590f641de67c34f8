//! The command line.

use crate::nine::NineAddress;
use clap::Parser;
use wirefs_gate::SourceOptions;

const EXAMPLES: &str = "Examples:
  wirefs-gate ~/project --9p unix:/run/user/1000/project.9p
  wirefs-gate host:project --9p 127.0.0.1:5640
  mount -t 9p -o trans=tcp,port=5640,version=9p2000.L 127.0.0.1 /mnt";

/// Serves a directory, or any source that wirefs mounts, to clients of another protocol
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) source: SourceOptions,
    /// Serve 9P2000 and 9P2000.L here: unix:PATH or HOST:PORT; may be given several times
    #[arg(long = "9p", value_name = "ADDR", required = true, value_parser = NineAddress::parse)]
    pub(crate) nine: Vec<NineAddress>,
    /// Serve addresses that other machines reach: 9P neither encrypts nor authenticates
    #[arg(long)]
    pub(crate) unprotected: bool,
}
