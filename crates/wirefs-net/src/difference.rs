//! The difference between `/net` and the table of nodes.

use std::collections::BTreeMap;
use wirefs_node::NodeKey;
use wirefs_nodehost::NodeInfo;

/// The maximum number of automount triggers: each is a mount with its threads, and anyone may create keys. Further
/// nodes are in the table only.
pub(super) const TRIGGERS_MAX: usize = 64;

/// The steps that bring the automount triggers up to date with the table.
#[derive(Debug, Default)]
pub(super) struct Difference<'a> {
    /// Names to remove: now another node's, or of a removed node.
    pub(super) removed: Vec<String>,
    /// Names to add, with their nodes.
    pub(super) added: Vec<(&'a str, &'a NodeInfo)>,
    /// There are more nodes than triggers allowed.
    pub(super) is_full: bool,
}

impl<'a> Difference<'a> {
    /// Compares the triggers with the table.
    pub(super) fn between(triggers: &BTreeMap<&str, NodeKey>, nodes: &'a [NodeInfo]) -> Difference<'a> {
        let serves = |node: &&NodeInfo| !node.is_own && node.holds_name && !node.record.exports.is_empty();
        let present: BTreeMap<&str, &NodeInfo> =
            nodes.iter().filter(serves).map(|node| (node.record.name.as_str(), node)).collect();
        let has_name = |key: &NodeKey, name: &str| {
            nodes.iter().any(|node| node.record.key == *key && node.record.name.as_str() == name)
        };
        let belongs_to_other =
            |name: &str, key: &NodeKey| present.get(name).is_some_and(|node| node.record.key != *key);
        let mut difference = Difference::default();
        for (name, key) in triggers {
            if !has_name(key, name) || belongs_to_other(name, key) {
                difference.removed.push((*name).to_owned());
            }
        }
        let mut room = TRIGGERS_MAX.saturating_sub(triggers.len() - difference.removed.len());
        for (name, node) in present {
            let has_trigger = triggers.get(name).is_some_and(|key| *key == node.record.key);
            if has_trigger || !node.state.is_up() {
                continue;
            }
            match room.checked_sub(1) {
                Some(left) => {
                    room = left;
                    difference.added.push((name, node));
                }
                None => difference.is_full = true,
            }
        }
        difference
    }
}

#[cfg(test)]
mod tests;
