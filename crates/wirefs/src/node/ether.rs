//! The Ethernet cards of a node.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use wirefs_carrier::ether::{EtherAddress, EtherCards, drop_net_raw, has_right};
use wirefs_carrier::tls::Identity;
use wirefs_carrier::{Address, ListenOptions, Listener};
use wirefs_node::NodeKey;
use wirefs_node::limits::CARDS_MAX;
use wirefs_nodehost::{CardNetwork, NodeDial, NodeEther, NodeHost, Route, Via, card_networks};

use crate::arguments::NodeUp;
use crate::failure::failure;
use crate::terminal::note;

/// The open cards of a node.
#[derive(Default)]
pub(super) struct NodeCards {
    /// The cards; `None`: none are open.
    pub(super) ether: Option<NodeEther>,
    /// The listener for other nodes over the cards.
    pub(super) listener: Option<Listener>,
}

impl NodeCards {
    /// Opens the node's cards, and drops CAP_NET_RAW.
    ///
    /// # Errors
    /// Fails if Ethernet was requested and cannot be used; the error names the next step.
    pub(super) fn open(arguments: &NodeUp, identity: &Arc<Identity>, keys: PathBuf) -> Result<NodeCards> {
        let is_wanted = match arguments.via {
            Via::Tls => return Ok(NodeCards::default()),
            Via::Ether => true,
            Via::Auto => false,
        };
        if !has_right() {
            return match is_wanted {
                true => Err(failure(
                    "--via ether opens raw sockets, which needs CAP_NET_RAW",
                    "run it as root, or without --via; `wirefs doctor` shows the capabilities",
                )),
                false => Ok(NodeCards::default()),
            };
        }
        let mut networks = card_networks(&arguments.nic).context("cannot find the network cards")?;
        networks.truncate(CARDS_MAX);
        let shares = arguments.share.is_some();
        let opened = match networks.is_empty() {
            true => Err(anyhow::anyhow!("no network card is up and has an IPv4 address")),
            false => NodeCards::over(networks, identity, &keys, shares),
        };
        let offer = match opened {
            Err(error) if is_wanted => {
                return Err(error.context("no network card for --via ether; name cards with --nic"));
            }
            Err(error) => {
                note!("wirefs: only TLS is used between nodes: {error:#}");
                NodeCards::default()
            }
            Ok(offer) => offer,
        };
        drop_net_raw()?;
        Ok(offer)
    }

    /// Opens all of these cards, or the usable ones.
    fn over(
        networks: Vec<CardNetwork>,
        identity: &Arc<Identity>,
        keys: &Path,
        shares: bool,
    ) -> Result<NodeCards> {
        let open = |networks: Vec<CardNetwork>| NodeCards::over_all(networks, identity, keys, shares);
        let error = match open(networks.clone()) {
            Ok(offer) => return Ok(offer),
            Err(error) => error,
        };
        // A card that is no Ethernet card, or is in use by another server, does not affect the others.
        let is_usable = |network: &CardNetwork| open(vec![network.clone()]).is_ok();
        let usable: Vec<CardNetwork> = networks.into_iter().filter(is_usable).collect();
        if usable.is_empty() { Err(error) } else { open(usable) }
    }

    fn over_all(
        networks: Vec<CardNetwork>,
        identity: &Arc<Identity>,
        keys: &Path,
        shares: bool,
    ) -> Result<NodeCards> {
        let names: Vec<String> = networks.iter().map(|network| network.card.clone()).collect();
        if !shares {
            let cards = EtherCards::open(&names, Arc::clone(identity))?;
            return Ok(NodeCards {
                ether: Some(NodeEther { cards, networks, is_answering: false }),
                listener: None,
            });
        }
        let options =
            ListenOptions { identity: Some(Arc::clone(identity)), authorized_keys: Some(keys.to_owned()) };
        let place = EtherAddress { remotes: Vec::new(), cards: names };
        let listener = Listener::bind(&Address::Ether(place), &options)?;
        let cards = listener.ether_cards();
        let ether = cards.map(|cards| NodeEther { cards, networks, is_answering: true });
        Ok(NodeCards { ether, listener: Some(listener) })
    }
}

/// The dialers of nodes by key, which record the carriers used last.
#[derive(Clone, Default)]
pub(super) struct Dials(Arc<Mutex<BTreeMap<NodeKey, Arc<NodeDial>>>>);

impl Dials {
    /// Adds the dialer of a node, and removes those of unknown nodes.
    pub(super) fn add(&self, host: &NodeHost, key: NodeKey, dial: Arc<NodeDial>) {
        let known: Vec<NodeKey> = host.nodes().iter().map(|node| node.record.key).collect();
        let mut dials = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        dials.retain(|key, _| known.contains(key));
        dials.insert(key, dial);
    }

    /// Returns the carrier and the paths used last for a node.
    pub(super) fn route(&self, key: &NodeKey) -> Route {
        let dial = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).map(Arc::clone);
        dial.map(|dial| dial.route()).unwrap_or_default()
    }
}
