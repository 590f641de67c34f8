//! What `/net` has too much of and what it lacks, by the table.

use std::collections::BTreeMap;
use wirefs_node::NodeKey;
use wirefs_nodehost::NodeInfo;

/// Gates at once, at most: each is a mount and its threads, and whoever may join can have keys without end. Nodes past these
/// are in the table alone.
pub(super) const GATES_MAX: usize = 64;

/// What is to be done so that the gates are those of the table.
#[derive(Debug, Default)]
pub(super) struct Difference<'a> {
    /// Gates whose name is another's, or whose node is forgotten.
    pub(super) lower: Vec<String>,
    /// Names that get a gate, and their nodes.
    pub(super) raise: Vec<(&'a str, &'a NodeInfo)>,
    /// There are more nodes than gates may be.
    pub(super) is_full: bool,
}

impl<'a> Difference<'a> {
    /// Compares the gates, by their names, with the table.
    pub(super) fn between(gates: &BTreeMap<&str, NodeKey>, nodes: &'a [NodeInfo]) -> Difference<'a> {
        let serves = |node: &&NodeInfo| !node.is_own && node.holds_name && !node.record.exports.is_empty();
        let present: BTreeMap<&str, &NodeInfo> =
            nodes.iter().filter(serves).map(|node| (node.record.name.as_str(), node)).collect();
        let is_called = |key: &NodeKey, name: &str| {
            nodes.iter().any(|node| node.record.key == *key && node.record.name.as_str() == name)
        };
        let is_anothers =
            |name: &str, key: &NodeKey| present.get(name).is_some_and(|node| node.record.key != *key);
        let mut difference = Difference::default();
        for (name, key) in gates {
            if !is_called(key, name) || is_anothers(name, key) {
                difference.lower.push((*name).to_owned());
            }
        }
        let mut room = GATES_MAX.saturating_sub(gates.len() - difference.lower.len());
        for (name, node) in present {
            let has_gate = gates.get(name).is_some_and(|key| *key == node.record.key);
            if has_gate || !node.state.is_up() {
                continue;
            }
            match room.checked_sub(1) {
                Some(left) => {
                    room = left;
                    difference.raise.push((name, node));
                }
                None => difference.is_full = true,
            }
        }
        difference
    }
}

#[cfg(test)]
mod tests;
