//! The execution of the core's outputs: under its lock where order matters, otherwise after the lock is released.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use wirefs_cache::CachePiece;
use wirefs_carrier::{Class, Closer, InProcessPeer};
use wirefs_client::call::{Answer, CallId, Invalidate};
use wirefs_client::{DataKey, Lane, Loaded, Output};
use wirefs_metrics::Cause;
use wirefs_op::Frame;

use super::{Engine, KernelSide, State};
use crate::data_connection::DataConnection;
use crate::invalidation_queue::QueuedItem;
use crate::journal::DeferredAnswer;
use crate::server_sink::ServerSink;
use crate::task_queue::{AwaitReaders, DropBeforeAnswer};
use crate::waiter::Waiter;
use crate::wire;

/// The work that follows, once the lock is released.
#[derive(Default)]
pub(super) struct Effects {
    answers: Vec<(Waiter, Answer)>,
    /// Items of the invalidation queue, after the answers.
    items: Vec<QueuedItem>,
    flush: Option<ServerSink>,
    /// Data connections with queued frames.
    flush_data: BTreeMap<DataKey, ServerSink>,
    aborted: Option<Closer>,
    /// Data connections to close.
    closes: Vec<DataConnection>,
    /// Data connections to abort.
    aborts: Vec<DataConnection>,
    /// Answers that wait for the local disk.
    journaled: Vec<DeferredAnswer>,
}

impl Engine {
    /// Takes the core's outputs. Frames enter their queues here, under the lock, to keep their order.
    pub(super) fn collect(&self, state: &mut State) -> Effects {
        let mut effects = Effects::default();
        while let Some(output) = state.client.poll() {
            match output {
                Output::Answer(call, answer) => {
                    if let Some(waiting) = state.end_waiting(call, Cause::Local) {
                        effects.answers.push((waiting, answer));
                    }
                }
                Output::AnswerAfter(call, answer) => {
                    if let Some(waiting) = state.end_waiting(call, Cause::Local) {
                        state.delayed.insert(call);
                        effects.items.push(QueuedItem::Answer((call, waiting, answer)));
                    }
                }
                Output::AnswerDropped(what, call, answer) => self.queue_drop(state, what, call, answer),
                Output::AwaitReaders(dir, until) => {
                    self.kernel.awaited_readers.push(AwaitReaders { dir, until })
                }
                Output::Send(frame, Lane::Data(key)) => effects.send_data(state, frame, key),
                Output::OpenData(key) => self.want_data(state, key),
                Output::CloseData(key) => effects.closes.extend(state.end_data(key)),
                Output::HangUpData(key) => effects.aborts.extend(state.end_data(key)),
                Output::Send(frame, lane) => {
                    self.journal(state, |journal, _| journal.before(&frame));
                    let class = if lane == Lane::Changes { Class::Bulk } else { Class::Urgent };
                    effects.send(state, frame, class);
                }
                Output::SendAfter(frame)
                    if effects.items.is_empty() && self.kernel.invalidations.is_idle() =>
                {
                    effects.send(state, frame, Class::Urgent)
                }
                Output::SendAfter(frame) => {
                    effects.items.extend(state.sink.clone().map(|sink| QueuedItem::Frame((sink, frame))));
                }
                Output::Invalidate(what) => effects.items.push(QueuedItem::Invalidate(what)),
                Output::LetGo(node, names) => effects.items.push(QueuedItem::Release(node, names)),
                Output::Load(piece) => self.load_piece(state, piece),
                Output::Keep(piece, data) => self.store_piece(piece, data),
                output @ (Output::Journal(..)
                | Output::Refused(..)
                | Output::JournalNote(_)
                | Output::JournalForget(_)
                | Output::JournalAnew(_)) => self.execute_journal_output(state, output),
                Output::AnswerJournaled(call, answer) => {
                    if let Some(waiting) = state.end_waiting(call, Cause::JournalDisk) {
                        state.delayed.insert(call);
                        effects.journaled.push((call, waiting, answer));
                    }
                }
                Output::HangUp => effects.aborted = state.closer.clone(),
                Output::Blamed(why) => wire::report_blame(&why),
                Output::RefusedLink(link, target) => wire::report_refused_link(&link, &target),
            }
        }
        self.journal(state, |journal, client| journal.write(|| client.answered_below()));
        // Before another thread can find the queue idle.
        if effects.answers.is_empty() {
            effects.items.drain(..).for_each(|item| self.kernel.invalidations.push(item));
        } else if !effects.items.is_empty() {
            self.kernel.invalidations.begin_push();
        }
        effects
    }

    fn load_piece(&self, state: &mut State, piece: CachePiece) {
        let loaded = match &self.store {
            Some(store) => store.load(piece),
            None => Some(Loaded::Nothing),
        };
        if let Some(loaded) = loaded {
            let now = self.now();
            state.client.loaded(now, piece, loaded);
        }
    }

    fn store_piece(&self, piece: CachePiece, data: Bytes) {
        if let Some(store) = &self.store {
            store.store(piece, data);
        }
    }

    /// Queues an invalidation that precedes an answer.
    fn queue_drop(&self, state: &mut State, what: Invalidate, call: CallId, answer: Answer) {
        if let Some(waiting) = state.end_waiting(call, Cause::Local) {
            state.delayed.insert(call);
            self.kernel.drops.push(DropBeforeAnswer { what, call, waiting, answer });
        }
    }
}

impl Effects {
    fn send(&mut self, state: &State, frame: Frame, class: Class) {
        let Some(sink) = &state.sink else { return };
        sink.push(frame, class);
        if self.flush.is_none() {
            self.flush = Some(sink.clone());
        }
    }

    fn send_data(&mut self, state: &State, frame: Frame, key: DataKey) {
        // The thread that finds the connection lost informs the core, which sends again.
        let Some(link) = state.data.get(&key) else { return };
        link.sink.push(frame, Class::Urgent);
        self.flush_data.entry(key).or_insert_with(|| link.sink.clone());
    }

    /// Returns the in-process server that frames wait for, if any.
    pub(super) fn take_in_process(&mut self) -> Option<Arc<dyn InProcessPeer>> {
        let server = Arc::clone(self.flush.as_ref()?.in_process()?);
        self.flush = None;
        Some(server)
    }

    /// Executes the effects, and returns the answers that wait for the local disk, if any.
    #[must_use]
    pub(super) fn execute(self, kernel: &KernelSide) -> Option<Vec<DeferredAnswer>> {
        let (invalidations, place) = (&kernel.invalidations, kernel.place.get());
        for (waiting, answer) in self.answers {
            let answer = if let Some(place) = place { waiting.confined(place, answer) } else { answer };
            waiting.answer(answer);
        }
        if !self.items.is_empty() {
            self.items.into_iter().for_each(|item| invalidations.push(item));
            invalidations.end_push();
        }
        if let Some(sink) = self.flush {
            sink.flush();
        }
        self.flush_data.values().for_each(ServerSink::flush);
        self.closes.iter().for_each(DataConnection::close);
        self.aborts.iter().for_each(DataConnection::abort);
        if let Some(closer) = self.aborted {
            closer.abort();
        }
        Some(self.journaled).filter(|late| !late.is_empty())
    }
}
