//! A file system in memory, small and plain, that remembers what it was asked.

use crate::locks::Locks;
use crate::tree::{Outcome, Tree};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_client::call::{Answer, Call, CallId, Caller, ROOT, TreeNodeId};
use wirefs_fuse::{FileSystem, Reading, Reply};
use wirefs_op::{Errno, Kind};

/// A test waits so long for what must come, at most.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    tree: Tree,
    asked: Vec<String>,
    locks: Locks,
    hanging: Vec<Reply>,
    interrupts_to_refuse: u32,
    interrupted: Vec<CallId>,
    ends_plainly: bool,
}

/// The file system. Names that a lookup treats in its own way: `panic` panics, `drop` drops the reply, `misfit` gives an
/// answer of the wrong shape, `hang` never answers, `waits` lets another thread read, waits until it was asked for `goes-on` and answers
/// `EEXIST`, `stuck` the same without letting another read. A directory `held` is made only when [`Memory::refuse_held`] says
/// what becomes of it.
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

    /// What it was asked so far, each as `Debug` writes it.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    pub(crate) fn was_asked(&self, part: &str) -> bool {
        self.asked().iter().any(|call| call.contains(part))
    }

    /// Waits until it was asked something with this in it.
    pub(crate) fn wait_until_asked(&self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state();
        while !state.asked.iter().any(|call| call.contains(part)) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "never asked {part}: {:?}", state.asked);
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Does not know the next interrupted calls, so many times.
    pub(crate) fn refuse_interrupts(&self, count: u32) {
        self.state().interrupts_to_refuse = count;
    }

    /// How many interrupts it took for calls that it knew.
    pub(crate) fn interrupted(&self) -> usize {
        self.state().interrupted.len()
    }

    /// Changes a file of the root behind the kernel's back. Returns its node.
    pub(crate) fn overwrite(&self, name: &str, data: &[u8]) -> TreeNodeId {
        let mut state = self.state();
        let node = state.tree.nodes[&ROOT].entries[name.as_bytes()];
        state.tree.nodes.entry(node).or_default().data = data.to_vec();
        node
    }

    /// Makes a name in a directory behind the kernel's back. Returns its node.
    pub(crate) fn make(&self, parent: TreeNodeId, name: &str, kind: Kind) -> TreeNodeId {
        self.state().tree.make(parent, Some(name.as_bytes()), kind, 0o755).unwrap().node
    }

    /// Answers what hangs: it failed.
    pub(crate) fn refuse_held(&self) {
        let hanging = std::mem::take(&mut self.state().hanging);
        hanging.into_iter().for_each(|reply| reply.answer(Answer::Fail(Errno::Exists)));
    }

    /// How many of the calls so far begin like this.
    pub(crate) fn count_asked(&self, start: &str) -> usize {
        self.asked().iter().filter(|call| call.starts_with(start)).count()
    }

    /// The kernel is to conclude nothing from the end of a listing.
    pub(crate) fn end_plainly(&self, is_plain: bool) {
        self.state().ends_plainly = is_plain;
    }

    /// Removes a name of the root behind the kernel's back.
    pub(crate) fn forget_name(&self, name: &str) {
        let mut state = self.state();
        state.tree.nodes.entry(ROOT).or_default().entries.remove(name.as_bytes());
    }
}

impl FileSystem for Memory {
    fn call(&self, _: Caller, call: Call<'_>, reply: Reply, reading: &Reading<'_>) {
        let mut state = self.state();
        state.asked.push(match call {
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
                    reading.hand_over();
                }
                self.wait_until_asked(&format!("{:?}", b"goes-on"));
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
                Ok(Answer::Lock(state.locks.in_the_way(node, family, owner, range)))
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
