//! `wirefs node list`.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use wirefs_carrier::tls::PublicKey;
use wirefs_driver::node::{NodeInfo, Taken, Way};
use wirefs_node::Liveness;

use super::control::Asked;
use crate::arguments;
use crate::failure::failure;
use crate::status::{Path, bytes, span};
use crate::terminal::say;

/// A card that connections to a node go over, or went over until they broke.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ListedWay {
    /// Ours; empty where the address is in none of our networks.
    card: String,
    /// The node's address.
    remote: String,
    /// 0: the last one broke.
    connections: usize,
}

impl ListedWay {
    fn of(way: &Way) -> ListedWay {
        let Way { card, remote, connections } = way;
        ListedWay { card: card.clone(), remote: remote.to_string(), connections: *connections }
    }

    /// What names it: our card, or the address where there is none.
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

/// A node as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Listed {
    /// Its name.
    pub(super) name: String,
    /// `alive`, `suspect`, `dead`, `left`.
    pub(super) state: String,
    /// For how long, in seconds.
    pub(super) state_for_s: f64,
    /// It is this one.
    pub(super) own: bool,
    /// The name is another's, who was there before.
    pub(super) name_taken: bool,
    /// The fingerprint of its key.
    pub(super) key: String,
    /// Grows with each start and refutation.
    pub(super) incarnation: u64,
    /// Its addresses, the best first.
    pub(super) addresses: Vec<String>,
    /// Its port, UDP and TCP.
    pub(super) port: u16,
    /// What it shares.
    pub(super) exports: Vec<String>,
    /// Processes that ran or wanted to, on average over a minute.
    pub(super) load: f64,
    /// Room that is left where its export is, in bytes.
    pub(super) free_bytes: u64,
    /// All room there, in bytes.
    pub(super) all_bytes: u64,
    /// Where it answers Ethernet packets.
    #[serde(default)]
    pub(super) cards: Vec<String>,
    /// The carrier over which it was reached last: `ether` or `tcp+tls`; none: it was not.
    #[serde(default)]
    pub(super) via: Option<String>,
    /// The ways that this carrier takes, where it has several.
    #[serde(default)]
    pub(super) paths: Vec<Path>,
    /// The cards that its connections go over, where it is reached over TLS.
    #[serde(default)]
    pub(super) ways: Vec<ListedWay>,
    /// Why it is not reached over Ethernet, where that was tried.
    #[serde(default)]
    pub(super) no_ether: Option<String>,
    /// Of this one: where nodes are registered, and whether that is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) registry: Option<String>,
    /// Of this one: the periods of the protocol that passed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turns: Option<u64>,
}

impl Listed {
    /// A node as the table has it, after `turns` periods of this one's.
    pub(super) fn of(node: &NodeInfo, turns: u64, taken: &Taken) -> Listed {
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
            via: taken.carrier.map(str::to_owned),
            paths: taken.paths.iter().map(Path::of).collect(),
            ways: taken.ways.iter().map(ListedWay::of).collect(),
            no_ether: taken.no_ether.clone(),
            registry: None,
            turns: node.is_own.then_some(turns),
        }
    }
}

impl Listed {
    /// How it is reached, in a word.
    fn via(&self) -> String {
        let paths = self.paths.iter().filter(|path| path.is_up).count();
        // Two addresses over one card are one way; where none of our cards leads there, each is one.
        let cards = |ways: &mut dyn Iterator<Item = &ListedWay>| {
            ways.map(ListedWay::taken).collect::<BTreeSet<_>>().len()
        };
        let ways = cards(&mut self.ways.iter().filter(|way| way.connections > 0));
        match (self.via.as_deref(), self.paths.len(), cards(&mut self.ways.iter())) {
            (None, ..) => "-".to_owned(),
            (Some(carrier), 0, 0 | 1) => carrier.to_owned(),
            (Some(carrier), 0, count) => format!("{carrier} {ways}/{count}"),
            (Some(carrier), count, _) => format!("{carrier} {paths}/{count}"),
        }
    }

    /// How it is reached, at length; none: it is not.
    pub(crate) fn reached(&self) -> Option<String> {
        let carrier = self.via.as_ref()?;
        let why = self.no_ether.as_ref().map(|why| format!(" (not ether: {why})")).unwrap_or_default();
        let paths = self.paths.iter().map(|path| format!("\n    path     {path}"));
        let below: String = paths.chain(self.ways.iter().map(ListedWay::line)).collect();
        Some(format!("  {}: {}, over {carrier}{why}{below}", self.name, self.state))
    }
}

fn hardware(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// The nodes of this user's node that were reached, as lines for people; none: there is no node, or it reached none.
pub(crate) fn reached() -> Vec<String> {
    let nodes = super::control::NodeLine::find().and_then(|mut line| line.list().ok()).unwrap_or_default();
    nodes.iter().filter_map(Listed::reached).collect()
}

/// All nodes that were reached, as `wirefs status` shows them; in JSON all nodes.
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
        true => "no node was reached yet; `wirefs node list` shows all".to_owned(),
        false => lines.join("\n"),
    })
}

/// One node, however it is reached.
///
/// # Errors
/// The node does not answer, or knows none of this name.
pub(crate) fn of_one(name: &str, json: bool) -> Result<String> {
    let nodes = super::find()?.list().context("the node does not answer")?;
    let node = nodes.iter().find(|node| node.name == name && !node.name_taken);
    let node =
        node.ok_or_else(|| failure(format!("no node has the name {name}"), "`wirefs node list` shows all"))?;
    if json {
        return Ok(serde_json::to_string_pretty(node)?);
    }
    let unreached =
        || format!("  {}: {}, not reached yet; it is dialed when it is first used", node.name, node.state);
    Ok(node.reached().unwrap_or_else(unreached))
}

/// Prints who is there, once or whenever it changes.
pub(super) fn run(arguments: &arguments::NodeList) -> Result<()> {
    let mut line = super::find()?;
    if !arguments.watch {
        let nodes = line.list().context("the node does not answer")?;
        return print(&nodes, arguments.json);
    }
    line.ask(Asked::Watch).context("the node does not answer")?;
    let mut before: Option<Vec<String>> = None;
    while let Ok(nodes) = line.answer::<Listed>(None) {
        // Times pass; what is shown anew is what changed.
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
            (true, true) => " (this one; the name is another's)",
            (true, false) => " (this one)",
            (false, true) => " (the name is another's)",
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
