//! The checker thread, which waits for blocks: checks roots, reads them, and sends copies.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::reachability;
use wirefs_blocks::store::{BlockStore, Wanted};
use wirefs_echo::replication::wire::IDS_MAX;
use wirefs_echo::replication::{ReplicaId, ReplicaInput};

use super::NodeShared;
use super::background::RootCheck;
use crate::limits::COPY_BATCH;
use crate::store::packed;

/// The longest wait before the thread checks whether the store was dropped.
const PAUSE_MAX: Duration = Duration::from_millis(200);
/// Pause between two batches of copies, so that no queue on the path overflows.
const COPY_PAUSE: Duration = Duration::from_millis(2);

/// Runs tasks until the store is dropped.
pub(super) fn run(shared: &Arc<NodeShared>) {
    while !shared.is_over() {
        let mut tasks = shared.tasks();
        if tasks.is_empty() {
            let waited = shared.task_added.wait_timeout(tasks, PAUSE_MAX);
            tasks = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (check, copy) = (tasks.next_check(), tasks.next_copy(COPY_BATCH));
        let unread = tasks.next_to_read();
        drop(tasks);
        if let Some(check) = check {
            check_root(shared, &check);
        }
        if let Some((to, ids)) = copy {
            copy_to(shared, to, &ids);
        }
        if let Some(root) = unread {
            read(shared, root);
        }
    }
}

/// Finds the missing blocks of a root and reports them to the replica.
fn check_root(shared: &NodeShared, check: &RootCheck) {
    let echo = &*shared.echo;
    let mut missing: Vec<BlockId> = match &check.new_blocks {
        Some(new_blocks) => {
            new_blocks.iter().copied().chain([check.root]).filter(|id| !echo.has(*id)).collect()
        }
        None => reachability::missing_blocks(echo, check.root, IDS_MAX, &|id| echo.has(id)),
    };
    missing.sort();
    missing.dedup();
    if missing.is_empty() {
        let follower = shared.replica().follower.as_ref().and_then(Weak::upgrade);
        if follower.is_some_and(|follower| !follower.prepare(check.root)) {
            missing.push(check.root);
        }
    }
    shared.tasks().wait_for(missing.iter().copied());
    let input = ReplicaInput::Checked {
        root: packed(check.root),
        missing: missing.into_iter().map(packed).collect(),
    };
    shared.handle_input(&mut shared.replica(), input);
    shared.wake();
}

/// Reads a root that the tree could not switch to. A failed read is tried again with the next heartbeat.
fn read(shared: &NodeShared, root: BlockId) {
    let follower = shared.replica().follower.as_ref().and_then(Weak::upgrade);
    if follower.is_some_and(|follower| follower.prepare(root)) {
        shared.switch_to_pending_root(&mut shared.replica());
    }
}

/// Sends blocks that a node lacks.
fn copy_to(shared: &NodeShared, to: ReplicaId, ids: &[BlockId]) {
    let mut found: Vec<(BlockId, Bytes)> = Vec::with_capacity(ids.len());
    let present: Vec<BlockId> = ids.iter().copied().filter(|id| shared.echo.has(*id)).collect();
    shared
        .echo
        .retrieve(&Wanted::of(present), &mut |id, block| found.extend(block.ok().map(|block| (id, block))));
    let mut replica = shared.replica();
    for (id, block) in &found {
        shared.copy(&mut replica, to, *id, block);
    }
    drop(replica);
    std::thread::sleep(COPY_PAUSE);
}
