//! `wirefs serve --announce`: lets `wirefs find-servers` on the same segment find this server.

use std::net::IpAddr;

use anyhow::Result;
use wirefs_carrier::tls::Identity;
use wirefs_carrier::{Address, Listener};
use wirefs_node::NodeKey;
use wirefs_node::discovery::ServerOffer;
use wirefs_nodehost::announce_server;

use crate::failure::failure;
use crate::user_dirs;

/// Announces the first TLS listener that other machines reach, with the names of its exports.
///
/// # Errors
/// There is none, or the system has no socket left.
pub(super) fn start(listeners: &[Listener], exports: Vec<String>) -> Result<()> {
    let port = listeners.iter().find_map(|listener| reachable_port(listener.address())).ok_or_else(|| {
        failure(
            "--announce needs an address that other machines reach",
            "listen on a tls:// address other than the loopback, or leave out --announce",
        )
    })?;
    let identity = Identity::open(&user_dirs::config_dir()?)?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let key = NodeKey(*identity.public_key().raw());
    announce_server(ServerOffer { port, key, host, exports, has_more: false })
        .map_err(|error| failure(error, "leave out --announce"))
}

fn reachable_port(address: &Address) -> Option<u16> {
    match address {
        Address::Tls(place) => {
            let is_loopback = place.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
            (!is_loopback).then_some(place.port)
        }
        Address::Unix(_) | Address::TcpPlain(_) | Address::Ssh(_) | Address::Ether(_) => None,
    }
}
