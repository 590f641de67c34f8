//! The values of the items in the B-tree, one file for each kind.

mod checkpoint;
mod entry;
mod head;
mod name;
mod run;
#[cfg(test)]
mod tests;
mod xattr;

use crate::block::Item;
use crate::codec::Corrupt;
use crate::id::BlockId;
use crate::key::Part;
pub(crate) use checkpoint::CheckpointItem;
pub(crate) use entry::Entry;
pub(crate) use head::{Body, Head};
pub(crate) use name::{first_position, last_position};
pub(crate) use run::Run;
pub(crate) use xattr::{Value, Xattr};

/// Returns the contents blocks that an item refers to.
pub(crate) fn names_contents(item: &Item) -> Result<Vec<BlockId>, Corrupt> {
    Ok(match item.key.part {
        Part::Run => Run::decode(item.value.clone())?.ids().collect(),
        Part::Xattr => match Xattr::decode(item.value.clone())?.value {
            Value::Inline(_) => Vec::new(),
            Value::Spilled { ids, .. } => ids,
        },
        Part::Head | Part::Entry | Part::Orphan | Part::Checkpoint | Part::DestroyedTree => Vec::new(),
    })
}
