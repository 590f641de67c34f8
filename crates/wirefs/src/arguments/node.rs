//! Arguments of `wirefs node`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use wirefs_cache::Mode;
use wirefs_carrier::HostPort;
use wirefs_node::NodeName;
use wirefs_node::invitation::InvitationCode;
use wirefs_nodehost::{EtcdPlace, INVITATION_PORT_DEFAULT, Via};

const UP_EXAMPLES: &str = "\
Examples:
  wirefs node invite                           prints a code for one more machine
  wirefs node up --join k7-4fm-q2x             on that machine: exchanges keys with this one, and joins
  wirefs node up --share /srv                  on each machine of a LAN; then: ls /net
  wirefs node up --name linus1 --share ~/work --at ~/net
  wirefs node up --peer 10.8.0.7:6440          also find nodes of another network
  wirefs node up --registry etcd://10.8.0.2    also find nodes that are registered there
  wirefs node up --mode linus2:window=5s       the mode for the mount of one node
  wirefs node up --nic eth0,eth1               use both cards at once between nodes that have both

Nodes of one LAN find each other; a --peer connects to another network. Only keys
in the authorized-keys file may join. An invitation adds keys to that file, and so
does `wirefs allow` with the output of `wirefs identity` on the other machine. WITH --open, EVERYONE WHO CAN SEND TO UDP PORT 6440 OF THIS MACHINE MAY
JOIN AND READ THE SHARED FILES. With --nic or --listen ADDR, only packets on these
cards or this address count, and packets of a --peer.";

const INVITE_EXAMPLES: &str = "\
Examples:
  wirefs node invite
  wirefs node up --join k7-4fm-q2x             on the other machine, in the same network segment
  wirefs node up --join k7-4fm-q2x@10.8.0.7    there, if it is in another network
  wirefs node up --join -                      there, to type the code where no list of processes shows it

Both machines get the other's key in their authorized-keys files. The code is good
once, for ten minutes and three tries. Whoever has it may join.";

#[derive(Debug, Args)]
pub(crate) struct Node {
    #[command(subcommand)]
    pub(crate) command: NodeCommand,
}

/// Actions on the node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Join the other nodes, in the background
    Up(Box<NodeUp>),
    /// Print a code with which one more machine can join
    Invite(NodeInvite),
    /// List the nodes
    List(NodeList),
    /// Leave the other nodes and unmount /net
    Down,
}

#[derive(Debug, Args)]
#[command(after_help = UP_EXAMPLES)]
pub(crate) struct NodeUp {
    /// The name of this node [default: the host name]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<NodeName>,
    /// The directory to share at /net/NAME [default: none]
    #[arg(long, value_name = "DIR")]
    pub(crate) share: Option<PathBuf>,
    /// Reject all changes by other nodes
    #[arg(long, requires = "share")]
    pub(crate) read_only: bool,
    /// The directory in which nodes appear [default: /net, or ~/net for an ordinary user]
    #[arg(long, value_name = "DIR")]
    pub(crate) at: Option<PathBuf>,
    /// The address to listen on: UDP for nodes, TCP for mounts [default: 0.0.0.0:6440]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The address of a node in another network
    #[arg(long, value_name = "ADDR", value_parser = parse_peer)]
    pub(crate) peer: Vec<SocketAddr>,
    /// An etcd server that lists nodes of other networks: etcd://HOST[:2379][/PREFIX], without TLS
    #[arg(long, value_name = "URL", value_parser = EtcdPlace::parse)]
    pub(crate) registry: Option<EtcdPlace>,
    /// The network cards to use; on other cards only packets of a --peer or of a registered node count [default: all]
    #[arg(long, value_name = "IF", value_delimiter = ',')]
    pub(crate) nic: Vec<String>,
    /// The transport between nodes: tls, ether (raw Ethernet, needs CAP_NET_RAW), or auto: ether between nodes that share
    /// several cards, else tls. A node that does not answer over ether is reached over tls
    #[arg(long, value_name = "CARRIER", default_value = "auto", value_parser = parse_via, hide_default_value = true)]
    pub(crate) via: Via,
    /// The mode of mounts, as in `wirefs mount --mode`; NODE:MODE sets it for one node
    #[arg(long, value_name = "[NODE:]MODE", value_parser = NodeMode::parse)]
    pub(crate) mode: Vec<NodeMode>,
    /// No journal for mounts in mode lease: if this process is killed, unsent changes are lost
    #[arg(long)]
    pub(crate) no_journal: bool,
    /// The keys that may join [default: ~/.config/wirefs/authorized_keys]
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized: Option<PathBuf>,
    /// First exchange keys with the machine whose `wirefs node invite` printed this code; `-` reads the code from standard input
    #[arg(long, value_name = "CODE[@HOST[:PORT]]", value_parser = JoinPlace::parse, conflicts_with = "open")]
    pub(crate) join: Option<JoinPlace>,
    /// Let everyone join who can send packets to this machine: they can read, and without --read-only change, the share
    #[arg(long, conflicts_with = "authorized")]
    pub(crate) open: bool,
    /// Stay in the foreground; Ctrl-C leaves the other nodes
    #[arg(short = 'f', long)]
    pub(crate) foreground: bool,
    /// Set by the process that starts the background one: report on standard output.
    #[arg(long, hide = true)]
    pub(crate) reports: bool,
}

#[derive(Debug, Args)]
#[command(after_help = INVITE_EXAMPLES)]
pub(crate) struct NodeInvite {
    /// The name of this machine in the other's authorized-keys file [default: the host name]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<NodeName>,
    /// The address to listen on, UDP and TCP [default: 0.0.0.0:6443]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The file for the other machine's key [default: ~/.config/wirefs/authorized_keys]
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized: Option<PathBuf>,
}

/// The place of an invitation's code.
#[derive(Clone, Debug)]
pub(crate) enum JoinPlace {
    /// On the command line.
    Typed(JoinCode),
    /// On standard input.
    FromInput,
}

impl JoinPlace {
    fn parse(text: &str) -> Result<JoinPlace, String> {
        match text {
            "-" => Ok(JoinPlace::FromInput),
            code => JoinCode::parse(code).map(JoinPlace::Typed),
        }
    }
}

/// The code of an invitation, and the inviting host unless it is in the same segment.
#[derive(Clone, Debug)]
pub(crate) struct JoinCode {
    pub(crate) code: InvitationCode,
    pub(crate) host: Option<(String, u16)>,
}

impl JoinCode {
    /// Parses `CODE[@HOST[:PORT]]`.
    ///
    /// # Errors
    /// The text is something else.
    pub(crate) fn parse(text: &str) -> Result<JoinCode, String> {
        let (code, host) = text.split_once('@').map_or((text, None), |(code, host)| (code, Some(host)));
        let code = InvitationCode::parse(code)
            .ok_or_else(|| "this is no code; codes look like k7-4fm-q2x".to_owned())?;
        let host = host.map(|host| HostPort::parse(host, INVITATION_PORT_DEFAULT)).transpose();
        let host = host.map_err(|error| error.to_string())?.map(|HostPort { host, port }| (host, port));
        Ok(JoinCode { code, host })
    }
}

#[derive(Debug, Args)]
pub(crate) struct NodeList {
    /// Print JSON: a list of objects
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the list again at each change
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
