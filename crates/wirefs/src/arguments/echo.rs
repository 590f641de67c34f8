//! Arguments of `wirefs echo`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use wirefs_echo::Redundancy;

use super::parse_size;

const EXAMPLES: &str = "\
The blocks of this file system are in ICMP echo packets on their way to the
hosts and back, and nowhere else: what is lost there is lost. Only the hosts
that are named are pinged; name hosts that are yours. docs/PINGFS.md says what
is polite, and how much fits: rate x round trip x payload / copies.

Examples:
  wirefs echo ~/p --host 192.0.2.1                       one copy, ended with `wirefs umount --discard ~/p`
  wirefs echo ~/p --host a --host b --copies 2 --save ~/p.tree
  wirefs echo ~/p --host a --host b --host c --code 4+2 --load ~/p.tree
  wirefs echo ~/p --host a --node 1 --key ~/p.key --peer 192.0.2.7
                                                         one tree on several machines: the same on 192.0.2.7 with its number
  wirefs echo status --watch                             what is under way";

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
    /// Show what is under way
    Status(EchoStatus),
    /// Give a mount one more host
    Add(EchoHost),
    /// Empty a host of a mount to the others, then ping it no more
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
    /// The mount; without it the only one of this user's
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: Option<PathBuf>,
    /// Again each second, until it is unmounted or interrupted
    #[arg(long)]
    pub(crate) watch: bool,
    /// For programs: an object, with --watch one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The data kept in memory about each block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    /// At most 32 bytes of each block, to notice a loss and repair it
    #[default]
    Index,
    /// Nothing but the root's id and the key
    Root,
}

#[derive(Debug, Args)]
pub(crate) struct EchoMount {
    /// The directory to mount it on
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: PathBuf,
    /// A host to ping, by address or name; several share the blocks
    #[arg(long = "host", value_name = "HOST", required = true)]
    pub(crate) hosts: Vec<String>,
    /// Packets that carry each block, spread over the round trip
    #[arg(long, value_name = "N", conflicts_with = "code", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) copies: Option<u8>,
    /// Cut each block into K packets and add M, any K of which are enough
    #[arg(long, value_name = "K+M", value_parser = parse_code)]
    pub(crate) code: Option<Redundancy>,
    /// What is remembered of blocks
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) keep: Keep,
    /// Packets a second to each host [default: found, and held where nothing is delayed or lost]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// Find the rate, and go no higher [default: 10000]
    #[arg(long, value_name = "COUNT", conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate_max: Option<u32>,
    /// Memory for contents that were used last, such as 64M; without it none are in memory
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) ram: Option<usize>,
    /// The payload of a packet at most, in bytes; less where the path passes less [default: 1472]
    #[arg(long, value_name = "BYTES")]
    pub(crate) payload: Option<usize>,
    /// Packets of each host that may wait in the receive buffer [default: 4096 for hosts nearer than 1 ms, else 256]
    #[arg(long, value_name = "COUNT")]
    pub(crate) park: Option<u64>,
    /// The receive buffer of each host at most [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) buffer: Option<usize>,
    /// Write the tree to this file when it is unmounted
    #[arg(long, value_name = "FILE", conflicts_with = "discard")]
    pub(crate) save: Option<PathBuf>,
    /// Begin with the tree that --save wrote to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Option<PathBuf>,
    /// Let unmounting be the end of the data, without a question
    #[arg(long)]
    pub(crate) discard: bool,
    /// Have the tree together with other nodes, as the one with this number
    #[arg(long, value_name = "ID", requires = "key", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) node: Option<u16>,
    /// Another node's address, as its hosts know it; one that comes names all who are there
    #[arg(long = "peer", value_name = "ADDR", requires = "node")]
    pub(crate) peers: Vec<String>,
    /// A file of 16 bytes or more, which all nodes have and nobody else
    #[arg(long, value_name = "FILE", requires = "node")]
    pub(crate) key: Option<PathBuf>,
    /// Options as in /etc/fstab, separated by commas
    #[arg(short = 'o', value_name = "OPT,…")]
    pub(crate) options: Vec<String>,
    /// Stay in the foreground with a live line of what happens; Ctrl-C unmounts
    #[arg(short = 'f', long)]
    pub(crate) foreground: bool,
    /// Let other users of this machine in
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Set by the process that starts the background one: report on standard output.
    #[arg(long, hide = true)]
    pub(crate) reports: bool,
}

/// Parses `4+2`.
fn parse_code(text: &str) -> Result<Redundancy, String> {
    let wrong = || format!("`{text}` is not a code; write 4+2: four packets are enough, of six");
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
