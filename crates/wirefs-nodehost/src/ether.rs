//! The cards over which a node sends Ethernet packets, beside IP.

use std::io;
use std::net::Ipv4Addr;
use wirefs_carrier::ether::{EtherCards, HardwareAddress};
use wirefs_node::{EtherCard, NodeRecord, pair_cards};

/// The routes of this thread's network namespace.
const ROUTES: &str = "/proc/thread-self/net/route";
/// The loopback, which is no segment.
const LOOPBACK: &str = "lo";

/// The choice of a carrier between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// Ethernet where two nodes share more than one card, else TLS. TLS if Ethernet does not answer.
    #[default]
    Auto,
    /// Ethernet where two nodes share a card; TLS if it does not answer.
    Ether,
    /// TLS only.
    Tls,
}

impl Via {
    /// Returns whether Ethernet is tried first, for a number of shared cards.
    pub fn prefers_ether(self, shared: usize) -> bool {
        match self {
            Via::Auto => shared >= 2,
            Via::Ether => shared >= 1,
            Via::Tls => false,
        }
    }
}

/// A card and its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardNetwork {
    /// The card's name.
    pub card: String,
    /// The network's address.
    pub network: Ipv4Addr,
    /// The prefix length in bits.
    pub prefix: u8,
}

/// Returns the cards of this machine that are up and in a network: those named, or all but the loopback.
///
/// # Errors
/// The routes cannot be read.
pub fn card_networks(names: &[String]) -> io::Result<Vec<CardNetwork>> {
    let table = std::fs::read_to_string(ROUTES)?;
    let mut found: Vec<CardNetwork> = Vec::new();
    for network in table.lines().filter_map(parse) {
        let is_meant =
            if names.is_empty() { network.card != LOOPBACK } else { names.contains(&network.card) };
        if is_meant && !found.iter().any(|known| known.card == network.card) {
            found.push(network);
        }
    }
    // In the order of the names, so that cards are paired as the user named them.
    let place = |found: &CardNetwork| names.iter().position(|name| *name == found.card);
    found.sort_by_key(place);
    Ok(found)
}

/// Parses a route to a segment: `card destination gateway flags … mask …`, in the machine's byte order.
fn parse(line: &str) -> Option<CardNetwork> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| u32::from_str_radix(fields.get(index)?, 16).ok();
    let (network, gateway, mask) = (number(1)?, number(2)?, u32::from_be(number(7)?));
    let is_segment = gateway == 0 && mask != 0;
    is_segment.then(|| CardNetwork {
        card: fields.first().copied().unwrap_or_default().to_owned(),
        network: Ipv4Addr::from(u32::from_be(network)),
        prefix: u8::try_from(mask.count_ones()).unwrap_or(0),
    })
}

/// The open cards of a node.
#[derive(Clone, Debug)]
pub struct NodeEther {
    /// The cards.
    pub cards: EtherCards,
    /// Their networks, in the same order.
    pub networks: Vec<CardNetwork>,
    /// Other nodes may connect over the cards.
    pub is_answering: bool,
}

impl NodeEther {
    /// Returns the cards for the node's record.
    pub(super) fn announced_cards(&self) -> Vec<EtherCard> {
        if self.is_answering { self.all() } else { Vec::new() }
    }

    fn all(&self) -> Vec<EtherCard> {
        let card = |(hardware, network): (HardwareAddress, &CardNetwork)| EtherCard {
            hardware: hardware.0,
            network: network.network,
            prefix: network.prefix,
        };
        self.cards.hardware().into_iter().zip(&self.networks).map(card).collect()
    }

    /// Pairs our cards with the hardware addresses of the node of a record.
    pub(super) fn paths_to(&self, record: &NodeRecord) -> Vec<(usize, HardwareAddress)> {
        let ours = self.all();
        pair_cards(&ours, &record.cards)
            .into_iter()
            .map(|(index, card)| (index, HardwareAddress(card.hardware)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_to_a_segment_tell_its_network_and_others_none() {
        let segment = "eth0\t00004D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0";
        let (card, network) = ("eth0".to_owned(), Ipv4Addr::new(10, 77, 0, 0));
        assert_eq!(parse(segment), Some(CardNetwork { card, network, prefix: 24 }));
        let past_a_gateway = "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0";
        assert_eq!(parse(past_a_gateway), None);
        assert_eq!(parse("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU"), None);
    }

    #[test]
    fn one_shared_card_is_left_to_tls_unless_ether_is_asked_for() {
        let tried = |via: Via| [0, 1, 2].map(|shared| via.prefers_ether(shared));
        assert_eq!(tried(Via::Auto), [false, false, true]);
        assert_eq!(tried(Via::Ether), [false, true, true]);
        assert_eq!(tried(Via::Tls), [false; 3]);
    }
}
