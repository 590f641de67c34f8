//! The blocks that are reachable from a root and missing in a store.

use std::collections::BTreeSet;

use crate::block::Block;
use crate::codec::Corrupt;
use crate::id::BlockId;
use crate::item::{CheckpointItem, names_contents};
use crate::key::Part;
use crate::store::{BlockStore, Wanted};

/// The blocks that are read at a time.
const BATCH: usize = 256;

/// The children of a block: head and index blocks, and contents.
#[derive(Default)]
struct Named {
    nodes: Vec<BlockId>,
    contents: Vec<BlockId>,
}

/// Returns at most `count_max` blocks that are reachable from a root, checkpoints included, and missing.
/// `has` returns whether a block is present. Head and index blocks must also be retrievable.
///
/// # Cost
/// Retrieves all blocks except contents, in batches, and holds their ids in memory.
pub fn missing_blocks(
    store: &dyn BlockStore,
    root: BlockId,
    count_max: usize,
    has: &dyn Fn(BlockId) -> bool,
) -> Vec<BlockId> {
    let (mut todo, mut seen) = (vec![root], BTreeSet::from([root]));
    let mut lacking = Vec::new();
    while !todo.is_empty() && lacking.len() < count_max {
        let batch = todo.split_off(todo.len().saturating_sub(BATCH));
        let (there, missing): (Vec<BlockId>, Vec<BlockId>) = batch.into_iter().partition(|id| has(*id));
        lacking.extend(missing);
        store.retrieve(&Wanted::of(there), &mut |id, block| {
            let Some(named) = block.ok().and_then(|bytes| named(Block::decode(bytes).ok()?).ok()) else {
                return lacking.push(id);
            };
            todo.extend(named.nodes.into_iter().filter(|id| seen.insert(*id)));
            lacking.extend(named.contents.into_iter().filter(|id| !has(*id)));
        });
    }
    lacking.truncate(count_max);
    lacking
}

fn named(block: Block) -> Result<Named, Corrupt> {
    let mut named = Named::default();
    match block {
        Block::Root(root) => named.nodes.extend([Some(root.files), root.table].into_iter().flatten()),
        Block::Index { children, .. } => named.nodes.extend(children.iter().map(|child| child.id)),
        Block::Head(items) => {
            for item in items {
                if item.key.part == Part::Checkpoint {
                    named.nodes.push(CheckpointItem::decode(item.value)?.files);
                } else {
                    named.contents.extend(names_contents(&item)?);
                }
            }
        }
        Block::Contents { .. } => {}
    }
    Ok(named)
}
