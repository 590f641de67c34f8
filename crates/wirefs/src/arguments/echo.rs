//! Arguments of `wirefs echo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use wirefs_echo::Redundancy;

use super::parse_size;

const EXAMPLES: &str = "\
The blocks of this file system exist only in ICMP echo packets between this
machine and the hosts. A lost packet is a lost copy. wirefs pings only the hosts
that you name: name your own. The capacity is rate x round trip x payload /
copies. docs/PINGFS.md has the details, and the rules of politeness.

Examples:
  wirefs echo ~/p --host 192.0.2.1                       one copy; `wirefs umount --discard ~/p` ends it
  wirefs echo ~/p --host a --host b --copies 2 --save ~/p.tree
  wirefs echo ~/p --host a --host b --host c --code 4+2 --load ~/p.tree
  wirefs echo ~/p --host a --node 1 --key ~/p.key --peer 192.0.2.7
                                                         one tree on several machines; run it on 192.0.2.7, too
  wirefs echo status --watch                             show the packets in flight";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, arg_required_else_help = true)]
pub(crate) struct Echo {
    #[command(subcommand)]
    pub(crate) command: Option<EchoCommand>,
    #[command(flatten)]
    pub(crate) mount: Option<EchoMount>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EchoCommand {
    /// Show the packets in flight
    Status(EchoStatus),
    /// Add a host to a mount
    Add(EchoHost),
    /// Move the blocks of a host to the other hosts, then stop pinging it
    Drain(EchoHost),
}

#[derive(Debug, Args)]
pub(crate) struct EchoHost {
    /// The mount
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: PathBuf,
    /// The host, by address or name
    #[arg(long, value_name = "HOST")]
    pub(crate) host: String,
}

#[derive(Debug, Args)]
pub(crate) struct EchoStatus {
    /// The mountpoint [default: the only PingFS of this user]
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: Option<PathBuf>,
    /// Repeat each second until unmount or Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print JSON: an object, with --watch one on each line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The data kept in memory about each block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    /// Up to 32 bytes for each block, to detect and repair losses
    #[default]
    Index,
    /// Only the id of the root and the key
    Root,
}

#[derive(Debug, Args)]
pub(crate) struct EchoMount {
    /// The directory to mount on
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: PathBuf,
    /// A host to ping, by address or name; blocks are spread over several hosts
    #[arg(long = "host", value_name = "HOST", required = true)]
    pub(crate) hosts: Vec<String>,
    /// Copies of each block in flight
    #[arg(long, value_name = "N", conflicts_with = "code", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) copies: Option<u8>,
    /// Erasure code: K data packets and M parity packets for each block; any K suffice
    #[arg(long, value_name = "K+M", value_parser = parse_code)]
    pub(crate) code: Option<Redundancy>,
    /// The data kept in memory about blocks
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) keep: Keep,
    /// Packets per second to each host [default: the highest rate without delay and loss]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// The upper limit of the automatic rate [default: 10000]
    #[arg(long, value_name = "COUNT", conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate_max: Option<u32>,
    /// Serve metrics and a live page over HTTP on this address, such as 127.0.0.1:9440
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Memory for a cache of recent contents, such as 64M [default: none]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) ram: Option<usize>,
    /// The largest payload of a packet, in bytes; less on a path with a smaller MTU [default: 1472]
    #[arg(long, value_name = "BYTES")]
    pub(crate) payload: Option<usize>,
    /// Packets of each host that may wait in the receive buffer [default: 4096 below 1 ms RTT, else 256]
    #[arg(long, value_name = "COUNT")]
    pub(crate) park: Option<u64>,
    /// The largest receive buffer of each host [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) buffer: Option<usize>,
    /// Save the tree to this file at unmount
    #[arg(long, value_name = "FILE", conflicts_with = "discard")]
    pub(crate) save: Option<PathBuf>,
    /// Load the tree from a file that --save wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Option<PathBuf>,
    /// Discard the data at unmount, without a question
    #[arg(long)]
    pub(crate) discard: bool,
    /// Share the tree with other nodes; the number of this node
    #[arg(long, value_name = "ID", requires = "key", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) node: Option<u16>,
    /// The address of another node of the tree; a joining node names all members
    #[arg(long = "peer", value_name = "ADDR", requires = "node")]
    pub(crate) peers: Vec<String>,
    /// A secret file of at least 16 bytes, the same on all nodes
    #[arg(long, value_name = "FILE", requires = "node")]
    pub(crate) key: Option<PathBuf>,
    /// Options as in /etc/fstab, separated by commas
    #[arg(short = 'o', value_name = "OPT,…")]
    pub(crate) options: Vec<String>,
    /// Stay in the foreground with a live status line; Ctrl-C unmounts
    #[arg(short = 'f', long)]
    pub(crate) foreground: bool,
    /// Admit other users of this machine
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Set by the process that starts the background one: report on standard output.
    #[arg(long, hide = true)]
    pub(crate) reports: bool,
}

/// Parses `4+2`.
fn parse_code(text: &str) -> Result<Redundancy, String> {
    let wrong = || format!("`{text}` is not a code; write 4+2: any four of six packets suffice");
    let (pieces, extra) = text.split_once('+').ok_or_else(wrong)?;
    let (pieces, extra) =
        (pieces.parse::<u8>().map_err(|_| wrong())?, extra.parse::<u8>().map_err(|_| wrong())?);
    let is_good = pieces >= 1 && usize::from(pieces) + usize::from(extra) <= wirefs_echo::limits::LANES_MAX;
    if is_good { Ok(Redundancy::Code { pieces, extra }) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_two_numbers_of_at_most_32_together() {
        assert_eq!(parse_code("4+2"), Ok(Redundancy::Code { pieces: 4, extra: 2 }));
        assert_eq!(parse_code("1+0"), Ok(Redundancy::Code { pieces: 1, extra: 0 }));
        for wrong in ["", "4", "0+2", "20+13", "4+", "+2", "4+-1", "300+1", "4 + 2"] {
            assert!(parse_code(wrong).is_err(), "{wrong}");
        }
    }
}
