//! Arguments of `wirefs node`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use wirefs_cache::Mode;
use wirefs_driver::node::{EtcdPlace, Via};
use wirefs_node::NodeName;

const UP_EXAMPLES: &str = "\
Examples:
  wirefs node up --share /srv                  on each machine of a segment; then: ls /net
  wirefs node up --name linus1 --share ~/work --at ~/net
  wirefs node up --peer 10.8.0.7:6440          nodes of another segment, too
  wirefs node up --registry etcd://10.8.0.2    nodes anywhere that are registered there
  wirefs node up --mode linus2:window=5s       how one node is mounted
  wirefs node up --nic eth0,eth1               both cards are used at once, where another node has both, too

Nodes find each other by themselves on a segment, and through one --peer past it.
Whose keys are in the authorized-keys file may join; WITHOUT THAT FILE WHOEVER
CAN SEND TO UDP PORT 6440 OF THIS MACHINE MAY, from another network too, and has
the files that are shared. `wirefs identity` prints a machine's line for that
file. With --nic or --listen ADDR only what comes by these is heard, and what
comes from a --peer.";

#[derive(Debug, Args)]
pub(crate) struct Node {
    #[command(subcommand)]
    pub(crate) command: NodeCommand,
}

/// Actions on the node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Join the others, in the background
    Up(Box<NodeUp>),
    /// Show who is there
    List(NodeList),
    /// Leave the others, and take /net away
    Down,
}

#[derive(Debug, Args)]
#[command(after_help = UP_EXAMPLES)]
pub(crate) struct NodeUp {
    /// What this node is called [default: the machine's name]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<NodeName>,
    /// The directory that the others see at /net/NAME; without it this node shares nothing
    #[arg(long, value_name = "DIR")]
    pub(crate) share: Option<PathBuf>,
    /// Refuse all changes by others
    #[arg(long, requires = "share")]
    pub(crate) read_only: bool,
    /// The directory that has the nodes in it [default: /net, or ~/net for an ordinary user]
    #[arg(long, value_name = "DIR")]
    pub(crate) at: Option<PathBuf>,
    /// Where to listen, for nodes over UDP and for their mounts over TCP [default: 0.0.0.0:6440]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// A node of another segment
    #[arg(long, value_name = "ADDR", value_parser = parse_peer)]
    pub(crate) peer: Vec<SocketAddr>,
    /// An etcd server in which nodes of other segments are found: etcd://HOST[:2379][/PREFIX], without TLS
    #[arg(long, value_name = "URL", value_parser = EtcdPlace::parse)]
    pub(crate) registry: Option<EtcdPlace>,
    /// The network cards whose segments it joins; by others only a --peer, or who is registered, is heard [default: all]
    #[arg(long, value_name = "IF", value_delimiter = ',')]
    pub(crate) nic: Vec<String>,
    /// By which carrier others are reached: ether (Ethernet packets beside IP, takes CAP_NET_RAW), tls, or auto: ether
    /// where two nodes share more than one card, so that all of them are used. Where ether does not answer, tls
    #[arg(long, value_name = "CARRIER", default_value = "auto", value_parser = parse_via, hide_default_value = true)]
    pub(crate) via: Via,
    /// How nodes are mounted, as `wirefs mount --mode` has it; NODE:MODE is for one
    #[arg(long, value_name = "[NODE:]MODE", value_parser = NodeMode::parse)]
    pub(crate) mode: Vec<NodeMode>,
    /// Keep no journal of what is changed on nodes that are mounted in mode lease: should this process be killed, what they
    /// did not have yet is lost
    #[arg(long)]
    pub(crate) no_journal: bool,
    /// The keys that may join [default: ~/.config/wirefs/authorized_keys, where there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized: Option<PathBuf>,
    /// Stay in the foreground; Ctrl-C leaves
    #[arg(short = 'f', long)]
    pub(crate) foreground: bool,
    /// Set by the process that starts the background one: report on standard output.
    #[arg(long, hide = true)]
    pub(crate) reports: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NodeList {
    /// For programs: a list of objects
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it anew whenever it changes
    #[arg(long)]
    pub(crate) watch: bool,
}

/// The mode of mounts of one node, or of all.
#[derive(Clone, Debug)]
pub(crate) struct NodeMode {
    pub(crate) node: Option<NodeName>,
    pub(crate) mode: Mode,
}

impl NodeMode {
    fn parse(text: &str) -> Result<NodeMode, String> {
        match text.split_once(':') {
            Some((node, mode)) => Ok(NodeMode { node: Some(parse_name(node)?), mode: Mode::parse(mode)? }),
            None => Ok(NodeMode { node: None, mode: Mode::parse(text)? }),
        }
    }
}

fn parse_name(text: &str) -> Result<NodeName, String> {
    NodeName::new(text).ok_or_else(|| {
        format!("`{text}` is not a node's name; write letters, digits, `-`, `_`, `.`, 63 at most")
    })
}

fn parse_via(text: &str) -> Result<Via, String> {
    match text {
        "auto" => Ok(Via::Auto),
        "ether" => Ok(Via::Ether),
        "tls" => Ok(Via::Tls),
        _ => Err(format!("`{text}` is no carrier of nodes; write auto, ether or tls")),
    }
}

/// Parses an address with a port, or without one: then with the default port.
fn parse_peer(text: &str) -> Result<SocketAddr, String> {
    let with_port = || text.parse().ok().map(|ip| SocketAddr::new(ip, wirefs_carrier::TLS_PORT_DEFAULT));
    let parsed = text.parse().ok().or_else(with_port);
    parsed.ok_or_else(|| format!("`{text}` is not an address; write 10.0.0.7 or 10.0.0.7:6440"))
}
