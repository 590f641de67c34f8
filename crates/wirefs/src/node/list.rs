//! `wirefs node list`.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use wirefs_carrier::tls::PublicKey;
use wirefs_driver::node::NodeInfo;
use wirefs_node::Liveness;

use super::control::Asked;
use crate::arguments;
use crate::status::{bytes, span};
use crate::terminal::say;

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
    /// Of this one: the periods of the protocol that passed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turns: Option<u64>,
}

impl Listed {
    /// A node as the table has it, after `turns` periods of this one's.
    pub(super) fn of(node: &NodeInfo, turns: u64) -> Listed {
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
            turns: node.is_own.then_some(turns),
        }
    }
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
    while let Ok(nodes) = line.answer(None) {
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
        "{:width$}  {:7}  {:>8}  {:>6}  {:>9}  {:21}  SHARES",
        "NODE",
        "STATE",
        "FOR",
        "LOAD",
        "FREE",
        "ADDRESS"
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
            "{:width$}  {:7}  {lasted:>8}  {:>6.2}  {:>9}  {address:21}  {}{notes}",
            node.name,
            node.state,
            node.load,
            bytes(node.free_bytes),
            node.exports.join(","),
        );
    }
    Ok(())
}
