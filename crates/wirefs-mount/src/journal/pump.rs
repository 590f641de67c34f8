//! Moving changes out of a journal to the server, over a connection of their own.

use super::decided::Notes;
use super::left::{Left, Segments};
use super::quarantine::Quarantine;
use super::recover::{Progress, Stays};
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

/// How long the server may be silent: its disk may be slow, and others may have to be asked first.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the server may take to end a session, with what still runs of it, such as a sync.
const ENDING: Duration = Duration::from_secs(60);
/// How long the last word may take to leave.
const LAST_WORD: Duration = Duration::from_secs(1);
/// How often it is told how far it is.
const TOLD_EACH: Duration = Duration::from_millis(200);

/// What moves changes out of the journal to the server.
pub(super) struct Pump {
    source: Box<dyn FrameSource>,
    send_queue: SendQueue,
    closer: Closer,
    /// Told each time that something came.
    heard: mpsc::Sender<()>,
    segments: Segments,
    notes: Notes,
    /// Nobody believes anything in the session: what the server tells it to forget is forgotten.
    is_over: bool,
    waiting: VecDeque<Record>,
    tell: fn(Progress),
    of: u64,
    begun: Instant,
    told: Instant,
}

impl Pump {
    /// For the changes of a mount that lives, which answers recalls itself when it has the session again.
    pub(super) fn of_living(attached: Attached, left: &Left) -> io::Result<Pump> {
        Pump::new(attached, left, |_| {}, false)
    }

    /// For the changes of a mount that has died.
    pub(super) fn of_dead(attached: Attached, left: &Left, tell: fn(Progress)) -> io::Result<Pump> {
        let early = attached.early.clone();
        let pump = Pump::new(attached, left, tell, true)?;
        for body in &early {
            pump.forgets(body);
        }
        Ok(pump)
    }

    fn new(attached: Attached, left: &Left, tell: fn(Progress), is_over: bool) -> io::Result<Pump> {
        let (segments, notes) = (left.segments()?, Notes::of(left.dir()));
        let (of, _) = left.survey.needed_from(0);
        let Carrier { source, sink, closer, .. } = attached.carrier;
        let (on_lost, heard) = (closer.clone(), watch(closer.clone(), PATIENCE)?);
        let send_queue = SendQueue::start(sink, closer.clone(), move |_| on_lost.close());
        let begun = Instant::now();
        let waiting = VecDeque::new();
        Ok(Pump {
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

    /// Waits for a message.
    fn receive(&mut self) -> Result<Bytes, Stays> {
        self.send_queue.flush();
        let body = self.source.receive()?.ok_or(CarrierLost::Closed)?;
        // The watch may have given up just now: then the next receive says so.
        let _gone = self.heard.send(());
        Ok(body)
    }

    /// Ends the connection.
    pub(super) fn close(&self) {
        self.send_queue.close();
        self.closer.close();
    }

    /// Moves all changes.
    ///
    /// The connection is in use until [`Pump::rest`] or [`Pump::close`].
    pub(super) fn run(
        &mut self,
        bring: &mut Delivery,
        quarantine: &mut Quarantine,
    ) -> Result<DeliveryCounts, Stays> {
        loop {
            self.fill(bring)?;
            while let Some(act) = bring.poll() {
                match act {
                    DeliveryOutput::Send(frame) => self.send_queue.push(frame, Class::Bulk),
                    DeliveryOutput::Findings(decision) => self.notes.decided(&decision),
                    DeliveryOutput::Answered(below) => self.notes.answered(below),
                    DeliveryOutput::Quarantine(record, why) => quarantine.keep(&record, &why)?,
                    DeliveryOutput::Done(outcome) => {
                        (self.tell)(Progress { done: self.of, of: self.of, since: self.begun.elapsed() });
                        return Ok(outcome);
                    }
                    DeliveryOutput::SyncFailed(errno) => {
                        self.send_queue.close();
                        return Err(Stays::Unsafe(errno));
                    }
                }
            }
            let body = self.receive()?;
            if self.forgets(&body) {
                continue;
            }
            bring.handle(DeliveryInput::Received(body))?;
            self.tell(bring.progress());
        }
    }

    /// Answers a recall. Changes may wait for that, ours too: a server that was started again lets none pass before those that believed
    /// something have forgotten it.
    fn forgets(&self, body: &Bytes) -> bool {
        let recall = match Reply::decode(body.clone()) {
            Ok((NOTAG, Reply::Recall(recall))) if self.is_over => recall,
            _ => return false,
        };
        let forgotten = Request::Recalled(Trecalled { serial: recall.serial }).encode(NOTAG);
        self.send_queue.push(forgotten, Class::Urgent);
        true
    }

    /// Says that the session believes nothing any more, and ends the connection.
    pub(super) fn rest(&self) {
        let told = Request::Recalled(Trecalled { serial: RELEASE_ALL }).encode(NOTAG);
        self.send_queue.push(told, Class::Bulk);
        // Where it does not come through, others wait until the leases have run out.
        let _told = self.send_queue.finish(LAST_WORD);
    }

    /// Says that the session is over, and waits until its locks are gone: the server ends the connection then.
    pub(super) fn end_session(mut self) {
        let told = Request::Recalled(Trecalled { serial: END_SESSION }).encode(NOTAG);
        self.send_queue.push(told, Class::Bulk);
        self.send_queue.flush();
        // Where it does not come through, or nobody watches how long it takes, its locks go when its time is over.
        if let Ok(_watched) = watch(self.closer.clone(), ENDING) {
            while let Ok(Some(_)) = self.source.receive() {}
        }
        self.close();
    }

    fn fill(&mut self, bring: &mut Delivery) -> Result<(), Stays> {
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

    fn tell(&mut self, done: u64) {
        if self.told.elapsed() >= TOLD_EACH {
            self.told = Instant::now();
            (self.tell)(Progress { done, of: self.of, since: self.begun.elapsed() });
        }
    }
}

/// Closes a connection on which nothing comes for so long. Ends when what it hands back is dropped.
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
