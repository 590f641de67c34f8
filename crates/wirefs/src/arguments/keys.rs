//! Arguments of `wirefs allow`, `keys` and `revoke`.

use std::path::PathBuf;

use clap::Args;
use wirefs_carrier::tls::Network;

const ALLOW_EXAMPLES: &str = "\
Examples:
  wirefs allow wirefs-ed25519 BASE64 ann@laptop
  wirefs allow --read-only --from 192.168.0.0/16 wirefs-ed25519 BASE64 ann@laptop

KEY is the output of `wirefs identity` at the client. Running servers use the
new line at once. An earlier line of the same key is replaced.";

#[derive(Debug, Args)]
#[command(after_help = ALLOW_EXAMPLES)]
pub(crate) struct Allow {
    /// The key, as `wirefs identity` prints it at the client
    #[arg(value_name = "KEY", required = true)]
    pub(crate) key: Vec<String>,
    /// The export that the key may use; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) export: Vec<String>,
    /// Reject all changes by this key
    #[arg(long)]
    pub(crate) read_only: bool,
    /// The network from which the key may connect, as 192.168.0.0/16; may be repeated [default: all]
    #[arg(long, value_name = "CIDR", value_parser = parse_network)]
    pub(crate) from: Vec<Network>,
    /// The authorized-keys file [default: ~/.config/wirefs/authorized_keys]
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Keys {
    /// The authorized-keys file [default: ~/.config/wirefs/authorized_keys]
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The key, its fingerprint, or its comment
    #[arg(value_name = "KEY", required = true)]
    pub(crate) key: Vec<String>,
    /// The authorized-keys file [default: ~/.config/wirefs/authorized_keys]
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized: Option<PathBuf>,
}

fn parse_network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| format!("`{text}` is no network; write 192.168.0.0/16 or fd00::/8"))
}
