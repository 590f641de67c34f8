//! The command line.

use crate::nine::NineAddress;
use clap::Parser;
use std::ffi::OsString;
use std::path::PathBuf;
use wirefs_cache::Mode;

const EXAMPLES: &str = "Examples:
  wirefs-gate ~/project --9p unix:/run/user/1000/project.9p
  wirefs-gate host:project --9p 127.0.0.1:5640
  mount -t 9p -o trans=tcp,port=5640,version=9p2000.L 127.0.0.1 /mnt";

/// Serves a directory, or any source that wirefs mounts, to clients of another protocol
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A directory here, or a source as `wirefs mount` takes it: [user@]host:dir, tls://host/dir, unix:///socket
    #[arg(value_name = "SOURCE")]
    pub(crate) source: OsString,
    /// Serve 9P2000 and 9P2000.L here: unix:PATH or HOST:PORT; may be given several times
    #[arg(long = "9p", value_name = "ADDR", required = true, value_parser = NineAddress::parse)]
    pub(crate) nine: Vec<NineAddress>,
    /// Serve addresses that other machines reach: 9P neither encrypts nor authenticates
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Refuse changes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// When to check, send and fetch, as of `wirefs mount`
    #[arg(long, value_name = "MODE", default_value = "lease", value_parser = Mode::parse)]
    pub(crate) mode: Mode,
    /// Memory for cached contents, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub(crate) cache_size: u16,
    /// Seconds that a call waits for a silent server; 0: for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) deadline: u64,
    /// The directory of our key and of known hosts, for tls:// sources
    #[arg(long, value_name = "DIR")]
    pub(crate) identity: Option<PathBuf>,
}
