//! Recalls that a holder missed while it was unreachable.

use crate::limits::MISSED_MAX;
use crate::recall::LeaseItem;
use std::collections::BTreeSet;

/// Recalls to be sent when the holder is reachable again.
#[derive(Debug)]
pub(super) enum Missed {
    /// These items.
    Items(BTreeSet<LeaseItem>),
    /// More items than the limit: everything is recalled.
    Everything,
}

impl Default for Missed {
    fn default() -> Missed {
        Missed::Items(BTreeSet::new())
    }
}

impl Missed {
    /// Adds an item. Returns false if the limit is exceeded and everything is recalled.
    pub(super) fn add(&mut self, item: LeaseItem) -> bool {
        let Missed::Items(items) = self else { return false };
        if item.name.is_none() {
            let names = items.range(item.clone()..).take_while(|other| other.id == item.id);
            let names: Vec<LeaseItem> = names.cloned().collect();
            for name in names {
                items.remove(&name);
            }
            items.insert(item);
        } else if !items.contains(&LeaseItem::whole(item.id)) {
            items.insert(item);
        }
        let fits = items.len() <= MISSED_MAX;
        if !fits {
            *self = Missed::Everything;
        }
        fits
    }
}

#[cfg(test)]
mod tests;
