//! The thread that waits for blocks: what of a root is here, and copies for those who lack some.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::reachability;
use wirefs_blocks::store::{BlockStore, Wanted};
use wirefs_echo::together::wire::IDS_MAX;
use wirefs_echo::together::{Input, NodeId};

use super::Commons;
use super::errands::Check;
use crate::limits::COPY_BATCH;
use crate::store::packed;

/// The longest wait between two looks whether it is over.
const PAUSE_MAX: Duration = Duration::from_millis(200);
/// Between two batches of copies, so that no queue on the way overflows.
const COPY_PAUSE: Duration = Duration::from_millis(2);

/// Does errands until the store is dropped.
pub(super) fn run(commons: &Arc<Commons>) {
    while !commons.is_over() {
        let mut errands = commons.errands();
        if errands.is_empty() {
            let waited = commons.called.wait_timeout(errands, PAUSE_MAX);
            errands = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (check, copy) = (errands.next_check(), errands.next_copy(COPY_BATCH));
        let unread = errands.next_to_read();
        drop(errands);
        if let Some(check) = check {
            look(commons, &check);
        }
        if let Some((to, ids)) = copy {
            copy_to(commons, to, &ids);
        }
        if let Some(root) = unread {
            read(commons, root);
        }
    }
}

/// Looks what of a root is not here, and tells the machine.
fn look(commons: &Commons, check: &Check) {
    let echo = &*commons.echo;
    let mut lacking: Vec<BlockId> = match &check.made {
        Some(made) => made.iter().copied().chain([check.root]).filter(|id| !echo.has(*id)).collect(),
        None => reachability::missing_blocks(echo, check.root, IDS_MAX, &|id| echo.has(id)),
    };
    lacking.sort();
    lacking.dedup();
    if lacking.is_empty() {
        let follower = commons.desk().follower.as_ref().and_then(Weak::upgrade);
        if follower.is_some_and(|follower| !follower.prepare(check.root)) {
            lacking.push(check.root);
        }
    }
    commons.errands().wait_for(lacking.iter().copied());
    let input =
        Input::Checked { root: packed(check.root), lacking: lacking.into_iter().map(packed).collect() };
    commons.work(&mut commons.desk(), input);
    commons.ring();
}

/// Reads a root that the tree could not go over to. What cannot be read is tried again with the next beat.
fn read(commons: &Commons, root: BlockId) {
    let follower = commons.desk().follower.as_ref().and_then(Weak::upgrade);
    if follower.is_some_and(|follower| follower.prepare(root)) {
        commons.switch_to(&mut commons.desk());
    }
}

/// Copies blocks that a node lacks.
fn copy_to(commons: &Commons, to: NodeId, ids: &[BlockId]) {
    let mut found: Vec<(BlockId, Bytes)> = Vec::with_capacity(ids.len());
    let there: Vec<BlockId> = ids.iter().copied().filter(|id| commons.echo.has(*id)).collect();
    commons
        .echo
        .retrieve(&Wanted::of(there), &mut |id, block| found.extend(block.ok().map(|block| (id, block))));
    let mut desk = commons.desk();
    for (id, block) in &found {
        commons.copy(&mut desk, to, *id, block);
    }
    drop(desk);
    std::thread::sleep(COPY_PAUSE);
}
