//! Sends the changes of a journal to the server, over a connection of their own.

use super::findings_file::FindingsFile;
use super::pending::{Segments, SurveyedJournal};
use super::quarantine::Quarantine;
use super::recover::{RecoveryError, ReplayProgress};
use crate::handshake::Attached;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wirefs_carrier::{Carrier, CarrierLost, Class, Closer, FrameSource, SendQueue};
use wirefs_journal::DeliveryInput;
use wirefs_journal::{Delivery, DeliveryCounts, DeliveryOutput, Record};
use wirefs_op::message::recall::{END_SESSION, RELEASE_ALL, Trecalled};
use wirefs_op::{NOTAG, Reply, Request};

/// How long the server may be silent: its disk may be slow, and it may have to recall leases first.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the server may take to end a session and its running requests.
const ENDING: Duration = Duration::from_secs(60);
/// The time limit for sending the last message.
const LAST_MESSAGE: Duration = Duration::from_secs(1);
/// The interval between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Sends the changes of a journal to the server.
pub(super) struct JournalSender {
    source: Box<dyn FrameSource>,
    send_queue: SendQueue,
    closer: Closer,
    /// Notified of each received message.
    heard: mpsc::Sender<()>,
    segments: Segments,
    notes: FindingsFile,
    /// The session's mount has ended, so it has no cache: recalls are acknowledged at once.
    is_over: bool,
    waiting: VecDeque<Record>,
    tell: fn(ReplayProgress),
    of: u64,
    begun: Instant,
    told: Instant,
}

impl JournalSender {
    /// For the changes of a running mount, which answers recalls itself when it resumes the session.
    pub(super) fn for_running_mount(attached: Attached, left: &SurveyedJournal) -> io::Result<JournalSender> {
        JournalSender::new(attached, left, |_| {}, false)
    }

    /// For the changes of a mount that has ended.
    pub(super) fn for_ended_mount(
        attached: Attached,
        left: &SurveyedJournal,
        tell: fn(ReplayProgress),
    ) -> io::Result<JournalSender> {
        let early = attached.early.clone();
        let sender = JournalSender::new(attached, left, tell, true)?;
        for body in &early {
            sender.acknowledges_recall(body);
        }
        Ok(sender)
    }

    fn new(
        attached: Attached,
        left: &SurveyedJournal,
        tell: fn(ReplayProgress),
        is_over: bool,
    ) -> io::Result<JournalSender> {
        let (segments, notes) = (left.segments()?, FindingsFile::of(left.dir()));
        let (of, _) = left.survey.needed_from(0);
        let Carrier { source, sink, closer, .. } = attached.carrier;
        let (on_lost, heard) = (closer.clone(), watch(closer.clone(), PATIENCE)?);
        let send_queue = SendQueue::start(sink, closer.clone(), move |_| on_lost.close());
        let begun = Instant::now();
        let waiting = VecDeque::new();
        Ok(JournalSender {
            source,
            send_queue,
            closer,
            heard,
            segments,
            notes,
            is_over,
            waiting,
            tell,
            of,
            begun,
            told: begun,
        })
    }

    /// Waits for a message. A mount's connection also carries the server's times of requests; no replay uses them.
    fn receive(&mut self) -> Result<Bytes, RecoveryError> {
        self.send_queue.flush();
        loop {
            let body = self.source.receive()?.ok_or(CarrierLost::Closed)?;
            // If the watch has just given up, the next receive fails.
            let _gone = self.heard.send(());
            if !matches!(Reply::decode(body.clone()), Ok((_, Reply::Times(_)))) {
                return Ok(body);
            }
        }
    }

    /// Closes the connection.
    pub(super) fn close(&self) {
        self.send_queue.close();
        self.closer.close();
    }

    /// Sends all changes.
    ///
    /// The connection stays open until [`JournalSender::release_leases`] or [`JournalSender::close`].
    pub(super) fn run(
        &mut self,
        bring: &mut Delivery,
        quarantine: &mut Quarantine,
    ) -> Result<DeliveryCounts, RecoveryError> {
        loop {
            self.fill(bring)?;
            while let Some(act) = bring.poll() {
                match act {
                    DeliveryOutput::Send(frame) => self.send_queue.push(frame, Class::Bulk),
                    DeliveryOutput::Findings(decision) => self.notes.decided(&decision),
                    DeliveryOutput::Answered(below) => self.notes.answered(below),
                    DeliveryOutput::Quarantine(record, why) => quarantine.keep(&record, &why)?,
                    DeliveryOutput::Done(outcome) => {
                        (self.tell)(ReplayProgress {
                            done: self.of,
                            of: self.of,
                            since: self.begun.elapsed(),
                        });
                        return Ok(outcome);
                    }
                    DeliveryOutput::SyncFailed(errno) => {
                        self.send_queue.close();
                        return Err(RecoveryError::Unsafe(errno));
                    }
                }
            }
            let body = self.receive()?;
            if self.acknowledges_recall(&body) {
                continue;
            }
            bring.handle(DeliveryInput::Received(body))?;
            self.report(bring.progress());
        }
    }

    /// Acknowledges a recall. Changes may wait for that, ours too: a restarted server makes none before the holders of
    /// old leases have invalidated.
    fn acknowledges_recall(&self, body: &Bytes) -> bool {
        let recall = match Reply::decode(body.clone()) {
            Ok((NOTAG, Reply::Recall(recall))) if self.is_over => recall,
            _ => return false,
        };
        let forgotten = Request::Recalled(Trecalled { serial: recall.serial }).encode(NOTAG);
        self.send_queue.push(forgotten, Class::Urgent);
        true
    }

    /// Releases all leases of the session, and closes the connection.
    pub(super) fn release_leases(&self) {
        let told = Request::Recalled(Trecalled { serial: RELEASE_ALL }).encode(NOTAG);
        self.send_queue.push(told, Class::Bulk);
        // If the message is lost, others wait until the leases have expired.
        let _told = self.send_queue.finish(LAST_MESSAGE);
    }

    /// Ends the session, and waits until its locks are released: then the server closes the connection.
    pub(super) fn end_session(mut self) {
        let told = Request::Recalled(Trecalled { serial: END_SESSION }).encode(NOTAG);
        self.send_queue.push(told, Class::Bulk);
        self.send_queue.flush();
        // If the message is lost, or without a watch, the locks end with the session's time limit.
        if let Ok(_watched) = watch(self.closer.clone(), ENDING) {
            while let Ok(Some(_)) = self.source.receive() {}
        }
        self.close();
    }

    fn fill(&mut self, bring: &mut Delivery) -> Result<(), RecoveryError> {
        while bring.wants_record() {
            match self.waiting.pop_front() {
                Some(record) => bring.handle(DeliveryInput::Record(record))?,
                None => match self.segments.next()? {
                    Some(taken) => self.waiting.extend(taken.records),
                    None => bring.handle(DeliveryInput::End)?,
                },
            }
        }
        Ok(())
    }

    fn report(&mut self, done: u64) {
        if self.told.elapsed() >= REPORT_INTERVAL {
            self.told = Instant::now();
            (self.tell)(ReplayProgress { done, of: self.of, since: self.begun.elapsed() });
        }
    }
}

/// Closes a connection that is silent for `patience`. Ends when the returned sender is dropped.
fn watch(closer: Closer, patience: Duration) -> io::Result<mpsc::Sender<()>> {
    let (heard, wait) = mpsc::channel();
    std::thread::Builder::new().name("wirefs-patience".into()).spawn(move || {
        loop {
            match wait.recv_timeout(patience) {
                Ok(()) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => return closer.close(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    })?;
    Ok(heard)
}
