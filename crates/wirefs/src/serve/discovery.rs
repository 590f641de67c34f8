//! `wirefs serve --announce`: lets `wirefs find-servers` on the same segment find this server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Result;
use wirefs_carrier::tls::Identity;
use wirefs_carrier::{Address, Listener};
use wirefs_node::NodeKey;
use wirefs_node::discovery::ServerOffer;
use wirefs_nodehost::announce_server;

use crate::failure::failure;
use crate::user_dirs;

/// Announces the first TLS listener that other machines reach by IPv4, with the names of its exports. A listener at one
/// address is announced on the segment of that card only.
///
/// # Errors
/// There is none, or the system has no socket left.
pub(super) fn start(listeners: &[Listener], exports: Vec<String>) -> Result<()> {
    let reachable = listeners.iter().filter(|listener| matches!(listener.address(), Address::Tls(_)));
    let (address, port) =
        reachable.filter_map(Listener::socket_address).find_map(announced).ok_or_else(|| {
            failure(
                "--announce needs an IPv4 address that other machines reach",
                "listen on all addresses, or on a tls:// address of a network card, or leave out --announce",
            )
        })?;
    let identity = Identity::open(&user_dirs::config_dir()?)?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let key = NodeKey(*identity.public_key().raw());
    announce_server(ServerOffer { port, key, host, exports, has_more: false }, address)
        .map_err(|error| failure(error, "leave out --announce"))
}

/// Returns the address and port to announce; the address is unspecified for a socket at all addresses.
fn announced(socket: SocketAddr) -> Option<(Ipv4Addr, u16)> {
    let address = match socket.ip().to_canonical() {
        IpAddr::V4(address) if address.is_loopback() => return None,
        IpAddr::V4(address) => address,
        IpAddr::V6(address) if address.is_unspecified() => Ipv4Addr::UNSPECIFIED,
        IpAddr::V6(_) => return None,
    };
    Some((address, socket.port()))
}
