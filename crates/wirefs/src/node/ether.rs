//! Ethernet as a node offers it: which cards are opened, and how nodes were reached.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use wirefs_carrier::ether::{EtherCards, EtherPlace, give_up_right, has_right};
use wirefs_carrier::tls::Identity;
use wirefs_carrier::{Address, ListenOptions, Listener};
use wirefs_driver::node::{CardNetwork, NodeDial, NodeEther, NodeHost, Taken, Via, card_networks};
use wirefs_node::NodeKey;
use wirefs_node::limits::CARDS_MAX;

use crate::arguments::NodeUp;
use crate::failure::failure;
use crate::terminal::note;

/// What a node has of Ethernet.
#[derive(Default)]
pub(super) struct Offer {
    /// Its cards; `None`: none are open.
    pub(super) ether: Option<NodeEther>,
    /// Where others arrive over them.
    pub(super) listener: Option<Listener>,
}

impl Offer {
    /// Opens the cards that the node is to speak over, and gives up the right to open others.
    ///
    /// # Errors
    /// Ethernet was asked for, and there is none to be had; the text says what to do.
    pub(super) fn open(arguments: &NodeUp, identity: &Arc<Identity>, keys: PathBuf) -> Result<Offer> {
        let is_wanted = match arguments.via {
            Via::Tls => return Ok(Offer::default()),
            Via::Ether => true,
            Via::Auto => false,
        };
        if !has_right() {
            return match is_wanted {
                true => Err(failure(
                    "--via ether opens raw sockets, which takes the right CAP_NET_RAW",
                    "run it as root, or leave --via away; `wirefs doctor` shows the rights",
                )),
                false => Ok(Offer::default()),
            };
        }
        let mut networks = card_networks(&arguments.nic).context("cannot find the network cards")?;
        networks.truncate(CARDS_MAX);
        let shares = arguments.share.is_some();
        let opened = match networks.is_empty() {
            true => Err(anyhow::anyhow!("no network card is up and has an IPv4 address")),
            false => Offer::over(networks, identity, &keys, shares),
        };
        let offer = match opened {
            Err(error) if is_wanted => {
                return Err(error.context("there is no card for --via ether; name some with --nic"));
            }
            Err(error) => {
                note!("wirefs: nodes are reached over TLS alone: {error:#}");
                Offer::default()
            }
            Ok(offer) => offer,
        };
        give_up_right()?;
        Ok(offer)
    }

    /// Opens all of these cards, or those of them that can be opened.
    fn over(
        networks: Vec<CardNetwork>,
        identity: &Arc<Identity>,
        keys: &Path,
        shares: bool,
    ) -> Result<Offer> {
        let open = |networks: Vec<CardNetwork>| Offer::over_all(networks, identity, keys, shares);
        let error = match open(networks.clone()) {
            Ok(offer) => return Ok(offer),
            Err(error) => error,
        };
        // One that is no Ethernet card, or serves somebody else, takes none of the others along.
        let is_usable = |network: &CardNetwork| open(vec![network.clone()]).is_ok();
        let usable: Vec<CardNetwork> = networks.into_iter().filter(is_usable).collect();
        if usable.is_empty() { Err(error) } else { open(usable) }
    }

    fn over_all(
        networks: Vec<CardNetwork>,
        identity: &Arc<Identity>,
        keys: &Path,
        shares: bool,
    ) -> Result<Offer> {
        let names: Vec<String> = networks.iter().map(|network| network.card.clone()).collect();
        if !shares {
            let cards = EtherCards::open(&names, Arc::clone(identity))?;
            return Ok(Offer {
                ether: Some(NodeEther { cards, networks, is_answering: false }),
                listener: None,
            });
        }
        let options =
            ListenOptions { identity: Some(Arc::clone(identity)), authorized_keys: Some(keys.to_owned()) };
        let place = EtherPlace { remotes: Vec::new(), cards: names };
        let listener = Listener::bind(&Address::Ether(place), &options)?;
        let cards = listener.ether_cards();
        let ether = cards.map(|cards| NodeEther { cards, networks, is_answering: true });
        Ok(Offer { ether, listener: Some(listener) })
    }
}

/// The dials of all nodes that were wanted, by their keys: what each took last.
#[derive(Clone, Default)]
pub(super) struct Dials(Arc<Mutex<BTreeMap<NodeKey, Arc<NodeDial>>>>);

impl Dials {
    /// Remembers the dial of a node, and forgets those of nodes that are no longer known.
    pub(super) fn add(&self, host: &NodeHost, key: NodeKey, dial: Arc<NodeDial>) {
        let known: Vec<NodeKey> = host.nodes().iter().map(|node| node.record.key).collect();
        let mut dials = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        dials.retain(|key, _| known.contains(key));
        dials.insert(key, dial);
    }

    /// How a node was reached last.
    pub(super) fn taken(&self, key: &NodeKey) -> Taken {
        let dial = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).map(Arc::clone);
        dial.map(|dial| dial.taken()).unwrap_or_default()
    }
}
