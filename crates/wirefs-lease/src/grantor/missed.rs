//! What a holder was not told while it could not be reached.

use crate::limits::MISSED_MAX;
use crate::recall::LeaseItem;
use std::collections::BTreeSet;

/// Recalls that wait for a holder.
#[derive(Debug)]
pub(super) enum Missed {
    /// These.
    Items(BTreeSet<LeaseItem>),
    /// Too many to name.
    Everything,
}

impl Default for Missed {
    fn default() -> Missed {
        Missed::Items(BTreeSet::new())
    }
}

impl Missed {
    /// Adds one; false when there are too many now, and it is everything.
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
