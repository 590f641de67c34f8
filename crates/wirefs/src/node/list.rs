//! `wirefs node list`.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use wirefs_carrier::tls::PublicKey;
use wirefs_node::Liveness;
use wirefs_nodehost::{NodeInfo, Route, TlsPath};

use super::control::NodeRequest;
use crate::arguments;
use crate::failure::failure;
use crate::status::{Path, bytes, span};
use crate::terminal::say;

/// A card with connections to a node, or whose last connection was lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CardConnections {
    /// Our card; empty if the address is in none of our networks.
    card: String,
    /// The node's address.
    remote: String,
    /// 0: the last one was lost.
    connections: usize,
}

impl CardConnections {
    fn of(way: &TlsPath) -> CardConnections {
        let TlsPath { card, remote, connections } = way;
        CardConnections { card: card.clone(), remote: remote.to_string(), connections: *connections }
    }

    /// Returns the identifying name: our card, or the address if there is none.
    fn taken(&self) -> &str {
        if self.card.is_empty() { &self.remote } else { &self.card }
    }

    fn line(&self) -> String {
        let card = if self.card.is_empty() { "a router" } else { &self.card };
        let state = match self.connections {
            0 => "BROKEN".to_owned(),
            1 => "1 connection".to_owned(),
            count => format!("{count} connections"),
        };
        format!("\n    way      {card} to {}: {state}", self.remote)
    }
}

/// A node in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Listed {
    /// Its name.
    pub(super) name: String,
    /// `alive`, `suspect`, `dead`, `left`.
    pub(super) state: String,
    /// The duration of the state, in seconds.
    pub(super) state_for_s: f64,
    /// This node.
    pub(super) own: bool,
    /// Another node holds the name.
    pub(super) name_taken: bool,
    /// The fingerprint of its key.
    pub(super) key: String,
    /// Grows with each start and refutation.
    pub(super) incarnation: u64,
    /// Its addresses, best first.
    pub(super) addresses: Vec<String>,
    /// Its port, UDP and TCP.
    pub(super) port: u16,
    /// Its exports.
    pub(super) exports: Vec<String>,
    /// Load average over a minute.
    pub(super) load: f64,
    /// Free space of the exported file system, in bytes.
    pub(super) free_bytes: u64,
    /// Total space of the exported file system, in bytes.
    pub(super) all_bytes: u64,
    /// Cards on which it answers Ethernet frames.
    #[serde(default)]
    pub(super) cards: Vec<String>,
    /// The carrier of the last connection: `ether` or `tcp+tls`; none if there was no connection.
    #[serde(default)]
    pub(super) via: Option<String>,
    /// The network paths of this carrier, if it has several.
    #[serde(default)]
    pub(super) paths: Vec<Path>,
    /// The cards of its connections over TLS.
    #[serde(default)]
    pub(super) ways: Vec<CardConnections>,
    /// The reason why Ethernet failed, if it was tried.
    #[serde(default)]
    pub(super) no_ether: Option<String>,
    /// Of this node: the registry, and whether it is reachable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) registry: Option<String>,
    /// Of this node: the protocol periods that have passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turns: Option<u64>,
}

impl Listed {
    /// Returns the list entry of a node.
    pub(super) fn of(node: &NodeInfo, turns: u64, route: &Route) -> Listed {
        let record = &node.record;
        let state = match node.state {
            Liveness::Alive => "alive",
            Liveness::Suspect => "suspect",
            Liveness::Dead => "dead",
            Liveness::Left => "left",
        };
        Listed {
            name: record.name.to_string(),
            state: state.to_owned(),
            state_for_s: node.state_for.as_secs_f64(),
            own: node.is_own,
            name_taken: node.state.is_up() && !node.holds_name,
            key: PublicKey::from_raw(record.key.0).fingerprint().to_string(),
            incarnation: record.incarnation,
            addresses: record.addresses.iter().map(ToString::to_string).collect(),
            port: record.port,
            exports: record.exports.iter().map(|export| export.name.to_string()).collect(),
            load: f64::from(record.load_percent) / 100.0,
            free_bytes: record.free_bytes,
            all_bytes: record.all_bytes,
            cards: record.cards.iter().map(|card| hardware(card.hardware)).collect(),
            via: route.carrier.map(str::to_owned),
            paths: route.paths.iter().map(Path::of).collect(),
            ways: route.tls_paths.iter().map(CardConnections::of).collect(),
            no_ether: route.ether_failure.clone(),
            registry: None,
            turns: node.is_own.then_some(turns),
        }
    }
}

impl Listed {
    /// Returns the carrier in one word.
    fn via(&self) -> String {
        let paths = self.paths.iter().filter(|path| path.is_up).count();
        // Two addresses over one card are one path; without a local card each address is one.
        let cards = |ways: &mut dyn Iterator<Item = &CardConnections>| {
            ways.map(CardConnections::taken).collect::<BTreeSet<_>>().len()
        };
        let ways = cards(&mut self.ways.iter().filter(|way| way.connections > 0));
        match (self.via.as_deref(), self.paths.len(), cards(&mut self.ways.iter())) {
            (None, ..) => "-".to_owned(),
            (Some(carrier), 0, 0 | 1) => carrier.to_owned(),
            (Some(carrier), 0, count) => format!("{carrier} {ways}/{count}"),
            (Some(carrier), count, _) => format!("{carrier} {paths}/{count}"),
        }
    }

    /// Returns the carrier in detail; `None` if there was no connection.
    pub(crate) fn reached(&self) -> Option<String> {
        let carrier = self.via.as_ref()?;
        let why = self.no_ether.as_ref().map(|why| format!(" (not ether: {why})")).unwrap_or_default();
        let paths = self.paths.iter().map(|path| format!("\n    path     {path}"));
        let below: String = paths.chain(self.ways.iter().map(CardConnections::line)).collect();
        Some(format!("  {}: {}, over {carrier}{why}{below}", self.name, self.state))
    }
}

fn hardware(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// Returns the connected nodes as lines of text; empty without a node or connections.
pub(crate) fn reached() -> Vec<String> {
    let nodes = super::control::NodeClient::find().and_then(|mut line| line.list().ok()).unwrap_or_default();
    nodes.iter().filter_map(Listed::reached).collect()
}

/// Returns all connected nodes in the format of `wirefs status`; in JSON all nodes.
///
/// # Errors
/// The node does not answer.
pub(crate) fn of_all(json: bool) -> Result<String> {
    let nodes = super::find()?.list().context("the node does not answer")?;
    if json {
        return Ok(serde_json::to_string_pretty(&nodes)?);
    }
    let lines: Vec<String> = nodes.iter().filter_map(Listed::reached).collect();
    Ok(match lines.is_empty() {
        true => "no node was contacted yet; `wirefs node list` shows all".to_owned(),
        false => lines.join("\n"),
    })
}

/// Returns one node, connected or not.
///
/// # Errors
/// The node does not answer, or knows no node of this name.
pub(crate) fn of_one(name: &str, json: bool) -> Result<String> {
    let nodes = super::find()?.list().context("the node does not answer")?;
    let node = nodes.iter().find(|node| node.name == name && !node.name_taken);
    let node =
        node.ok_or_else(|| failure(format!("no node has the name {name}"), "`wirefs node list` shows all"))?;
    if json {
        return Ok(serde_json::to_string_pretty(node)?);
    }
    let unreached =
        || format!("  {}: {}, not mounted yet; the first access mounts it", node.name, node.state);
    Ok(node.reached().unwrap_or_else(unreached))
}

/// Prints the nodes, once or after each change.
pub(super) fn run(arguments: &arguments::NodeList) -> Result<()> {
    let mut line = super::find()?;
    if !arguments.watch {
        let nodes = line.list().context("the node does not answer")?;
        return print(&nodes, arguments.json);
    }
    line.send(NodeRequest::Watch).context("the node does not answer")?;
    let mut before: Option<Vec<String>> = None;
    while let Ok(nodes) = line.answer::<Listed>(None) {
        // Durations change constantly; only other changes are printed again.
        let now: Vec<String> =
            nodes.iter().map(|node| format!("{} {} {}", node.name, node.state, node.key)).collect();
        if before.as_ref() != Some(&now) {
            if std::io::stdout().is_terminal() && !arguments.json {
                say!("\x1b[H\x1b[2J");
            }
            print(&nodes, arguments.json)?;
            before = Some(now);
        }
    }
    Ok(())
}

fn print(nodes: &[Listed], json: bool) -> Result<()> {
    if json {
        say!("{}", serde_json::to_string(nodes)?);
        return Ok(());
    }
    let width = nodes.iter().map(|node| node.name.len()).max().unwrap_or(0).max(4);
    say!(
        "{:width$}  {:7}  {:>8}  {:>6}  {:>9}  {:21}  {:11}  SHARES",
        "NODE",
        "STATE",
        "FOR",
        "LOAD",
        "FREE",
        "ADDRESS",
        "VIA"
    );
    for node in nodes {
        let address = node.addresses.first().map(|ip| format!("{ip}:{}", node.port)).unwrap_or_default();
        let notes = match (node.own, node.name_taken) {
            (true, true) => " (this one; the name belongs to another node)",
            (true, false) => " (this one)",
            (false, true) => " (the name belongs to another node)",
            (false, false) => "",
        };
        let lasted = span(std::time::Duration::from_secs_f64(node.state_for_s.max(0.0)));
        say!(
            "{:width$}  {:7}  {lasted:>8}  {:>6.2}  {:>9}  {address:21}  {:11}  {}{notes}",
            node.name,
            node.state,
            node.load,
            bytes(node.free_bytes),
            node.via(),
            node.exports.join(","),
        );
    }
    for registry in nodes.iter().filter_map(|node| node.registry.as_ref()) {
        say!("registry {registry}");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
