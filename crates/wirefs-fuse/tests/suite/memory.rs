//! A small file system in memory that records its calls.

use crate::locks::Locks;
use crate::tree::{Outcome, Tree};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_client::call::{Answer, Call, CallId, Caller, ROOT, TreeNodeId};
use wirefs_fuse::{FileSystem, ReaderRole, Reply};
use wirefs_op::{Errno, Kind};

/// The longest wait for an expected event.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    tree: Tree,
    calls: Vec<String>,
    locks: Locks,
    hanging: Vec<Reply>,
    interrupts_to_refuse: u32,
    interrupted: Vec<CallId>,
    ends_plainly: bool,
}

/// The file system. Some names have a special lookup:
/// - `panic` panics, `drop` drops the reply, `misfit` answers in the wrong form, `hang` never answers.
/// - `skips` hands the reader's role over, waits for a lookup of `goes-on`, and answers `EEXIST`.
/// - `stuck` does the same without the handover.
///
/// The creation of a directory `held` has its result from [`Memory::refuse_held`].
pub(crate) struct Memory {
    state: Mutex<State>,
    changed: Condvar,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        let state = State::default();
        Memory { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls so far, formatted as `Debug`.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    pub(crate) fn was_called(&self, part: &str) -> bool {
        self.calls().iter().any(|call| call.contains(part))
    }

    /// Waits for a call with this text.
    pub(crate) fn wait_until_called(&self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state();
        while !state.calls.iter().any(|call| call.contains(part)) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "never asked {part}: {:?}", state.calls);
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Denies knowledge of the next `count` interrupted calls.
    pub(crate) fn refuse_interrupts(&self, count: u32) {
        self.state().interrupts_to_refuse = count;
    }

    /// The number of interrupts for known calls.
    pub(crate) fn interrupted(&self) -> usize {
        self.state().interrupted.len()
    }

    /// Changes a file of the root without a call. Returns its node.
    pub(crate) fn overwrite(&self, name: &str, data: &[u8]) -> TreeNodeId {
        let mut state = self.state();
        let node = state.tree.nodes[&ROOT].entries[name.as_bytes()];
        state.tree.nodes.entry(node).or_default().data = data.to_vec();
        node
    }

    /// Creates a name in a directory without a call. Returns its node.
    pub(crate) fn make(&self, parent: TreeNodeId, name: &str, kind: Kind) -> TreeNodeId {
        self.state().tree.make(parent, Some(name.as_bytes()), kind, 0o755).unwrap().node
    }

    /// Fails the calls that hang.
    pub(crate) fn refuse_held(&self) {
        let hanging = std::mem::take(&mut self.state().hanging);
        hanging.into_iter().for_each(|reply| reply.answer(Answer::Fail(Errno::Exists)));
    }

    /// The number of calls that begin with this text.
    pub(crate) fn count_calls(&self, start: &str) -> usize {
        self.calls().iter().filter(|call| call.starts_with(start)).count()
    }

    /// Whether the end of a listing is marked as incomplete.
    pub(crate) fn end_plainly(&self, is_plain: bool) {
        self.state().ends_plainly = is_plain;
    }

    /// Removes a name of the root without a call.
    pub(crate) fn invalidate_name(&self, name: &str) {
        let mut state = self.state();
        state.tree.nodes.entry(ROOT).or_default().entries.remove(name.as_bytes());
    }
}

impl FileSystem for Memory {
    fn call(&self, _: Caller, call: Call<'_>, reply: Reply, role: &ReaderRole<'_>) {
        let mut state = self.state();
        state.calls.push(match call {
            Call::Write { data, offset, .. } => format!("Write {} at {offset}", data.len()),
            call => format!("{call:?}"),
        });
        self.changed.notify_all();
        let outcome = match call {
            Call::Lookup { name: b"panic", .. } => panic!("asked to (this is part of the test)"),
            Call::Lookup { name: b"drop", .. } => return,
            Call::Lookup { name: b"misfit", .. } => Ok(Answer::Done),
            Call::Lookup { name: b"hang", .. } | Call::Mkdir { name: b"held", .. } => {
                return state.hanging.push(reply);
            }
            Call::Lookup { name: name @ (b"waits" | b"stuck"), .. } => {
                drop(state);
                if name == b"waits" {
                    role.hand_over();
                }
                self.wait_until_called(&format!("{:?}", b"goes-on"));
                return reply.answer(Answer::Fail(Errno::Exists));
            }
            Call::Setlk { node, owner, family, range, wait, .. } => {
                let settled = state.locks.set(node, family, owner, range, reply, wait);
                drop(state);
                return settled.into_iter().for_each(|(reply, answer)| reply.answer(answer));
            }
            Call::Flush { node, owner, .. } => settle(state.locks.close(node, owner, false)),
            Call::Release { node, flock_owner: Some(owner), .. } => {
                settle(state.locks.close(node, owner, true))
            }
            Call::Getlk { node, owner, family, range, .. } => {
                Ok(Answer::Lock(state.locks.conflict(node, family, owner, range)))
            }
            call => match state.tree.answer(call) {
                Ok(Answer::Listing(listed)) if listed.is_empty() && state.ends_plainly => {
                    Ok(Answer::ListingEnd)
                }
                outcome => outcome,
            },
        };
        drop(state);
        reply.answer(outcome.unwrap_or_else(Answer::Fail));
    }

    fn interrupt(&self, call: CallId) -> bool {
        let mut state = self.state();
        if state.interrupts_to_refuse > 0 {
            state.interrupts_to_refuse -= 1;
            return false;
        }
        let known = state.locks.interrupt(call);
        if let Some(reply) = known {
            state.interrupted.push(call);
            drop(state);
            reply.answer(Answer::Fail(Errno::Interrupted));
            return true;
        }
        state.hanging.iter().any(|reply| reply.id() == call)
    }
}

fn settle(settled: Vec<(Reply, Answer)>) -> Outcome {
    settled.into_iter().for_each(|(reply, answer)| reply.answer(answer));
    Ok(Answer::Done)
}
