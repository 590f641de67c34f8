//! Moving changes out of a journal to the server, over a connection of their own.

use super::left::Segments;
use super::quarantine::Quarantine;
use super::recover::{Progress, Stays};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wirefs_carrier::{Carrier, CarrierLost, Class, Closer, FrameSource, Outbox};
use wirefs_journal::{Action, Event, Outcome, Record, Redo, Redone, Refused, Replay, Unfit};
use wirefs_op::message::put::Rput;
use wirefs_op::message::recall::{RESTS, Trecalled};
use wirefs_op::wire::Malformed;
use wirefs_op::{FileId, Frame, NOTAG, Reply, Request};

/// How long the server may be silent: its disk may be slow, and others may have to be asked first.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the last word may take to leave.
const LAST_WORD: Duration = Duration::from_secs(1);
/// How often it is told how far it is.
const TOLD_EACH: Duration = Duration::from_millis(200);

/// What the server has said of the changes, and what became of the others.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Replies are kept of the changes from this number on.
    pub(super) from: u64,
    /// By the numbers that the changes have in the journal.
    pub(super) replies: BTreeMap<u64, Reply>,
    /// What each of them has made.
    pub(super) made: BTreeMap<u64, FileId>,
    /// Those that are kept aside.
    pub(super) aside: BTreeSet<u64>,
    /// All changes that were sent under lower numbers than this are answered, and that is heard.
    pub(super) floor: u64,
}

/// What moves changes out of the journal to the server.
pub(super) struct Pump {
    source: Box<dyn FrameSource>,
    outbox: Outbox,
    closer: Closer,
    /// Told each time that something came.
    heard: mpsc::Sender<()>,
    segments: Segments,
    waiting: VecDeque<Record>,
    /// What becomes of the changes, where they are done again; under which number each was sent; how many need not be.
    redo: Option<Redo>,
    renumbered: BTreeMap<u64, u64>,
    done: u64,
    /// What is told to a client that lives.
    heard_of: Option<Heard>,
    tell: fn(Progress),
    of: u64,
    begun: Instant,
    told: Instant,
}

impl Pump {
    pub(super) fn new(carrier: Carrier, segments: Segments, tell: fn(Progress), of: u64) -> io::Result<Pump> {
        let Carrier { source, sink, closer, .. } = carrier;
        let (on_lost, heard) = (closer.clone(), watch(closer.clone())?);
        let outbox = Outbox::start(sink, closer.clone(), move |_| on_lost.close());
        let begun = Instant::now();
        let (waiting, redo, renumbered) = (VecDeque::new(), None, BTreeMap::new());
        Ok(Pump {
            source,
            outbox,
            closer,
            heard,
            segments,
            waiting,
            redo,
            renumbered,
            done: 0,
            heard_of: None,
            tell,
            of,
            begun,
            told: begun,
        })
    }

    /// Sends a request, some time before the next [`Pump::receive`].
    pub(super) fn send(&mut self, frame: Frame) {
        self.outbox.push(frame, Class::Bulk);
    }

    /// Waits for a message.
    pub(super) fn receive(&mut self) -> Result<Bytes, Stays> {
        self.outbox.flush();
        let body = self.source.receive()?.ok_or(CarrierLost::Closed)?;
        // The watch may have given up just now: then the next receive says so.
        let _gone = self.heard.send(());
        Ok(body)
    }

    /// Ends the connection.
    pub(super) fn close(&self) {
        self.outbox.close();
        self.closer.close();
    }

    /// Moves all changes; with `redo`, those that it says.
    ///
    /// The connection is in use until [`Pump::rest`] or [`Pump::close`].
    pub(super) fn run(
        &mut self,
        mut replay: Replay,
        redo: Option<Redo>,
        quarantine: &mut Quarantine,
    ) -> Result<Outcome, Stays> {
        self.redo = redo;
        loop {
            self.fill(&mut replay, quarantine)?;
            while let Some(action) = replay.poll() {
                match action {
                    Action::Send(frame) => self.send(frame),
                    Action::Refused(refused) => self.refused(refused, quarantine)?,
                    Action::Done(mut outcome) => {
                        outcome.skipped += self.done;
                        (self.tell)(Progress { done: self.of, of: self.of, since: self.begun.elapsed() });
                        return Ok(outcome);
                    }
                    Action::Unsafe(errno) => {
                        self.outbox.close();
                        return Err(Stays::Unsafe(errno));
                    }
                }
            }
            let body = self.receive()?;
            self.hear(&body, &replay)?;
            replay.handle(Event::Received(body))?;
            if let Some(heard) = &mut self.heard_of {
                heard.floor = heard.floor.max(replay.answered_below());
            }
            self.tell(&replay.outcome());
        }
    }

    /// Says that the session believes nothing any more, and ends the connection.
    pub(super) fn rest(&self) {
        let told = Request::Recalled(Trecalled { serial: RESTS }).encode(NOTAG);
        self.outbox.push(told, Class::Bulk);
        // Where it does not come through, others wait until the leases have run out.
        let _told = self.outbox.finish(LAST_WORD);
    }

    /// Goes on remembering what the server says. To be asked for before [`Pump::run`].
    pub(super) fn remember(&mut self, heard: Heard) {
        self.heard_of = Some(heard);
    }

    /// What was remembered.
    pub(super) fn take_heard(&mut self) -> Heard {
        self.heard_of.take().unwrap_or_default()
    }

    /// The machine that said what becomes of the changes, after the last of them.
    pub(super) fn take_redo(&mut self) -> Option<Redo> {
        self.redo.take()
    }

    fn hear(&mut self, body: &Bytes, replay: &Replay) -> Result<(), Malformed> {
        let Some(heard) = &mut self.heard_of else { return Ok(()) };
        let (tag, reply) = Reply::decode(body.clone())?;
        let number = replay.number_of(tag).and_then(|number| self.renumbered.get(&number));
        let Some(number) = number.copied().filter(|_| tag != NOTAG) else { return Ok(()) };
        if let Reply::Put(Rput { stat: Some(stat), .. }) = &reply {
            heard.made.insert(number, stat.id);
        }
        if number >= heard.from {
            heard.replies.insert(number, reply);
        }
        Ok(())
    }

    fn refused(&self, refused: Refused, quarantine: &mut Quarantine) -> Result<(), Stays> {
        let Refused { record, errno, text } = refused;
        if self.redo.is_some() && Redo::is_done(&Request::decode(record.body.clone())?.1, errno) {
            return Ok(());
        }
        let number = self.renumbered.get(&record.number).copied().unwrap_or(record.number);
        quarantine.keep(&Record { number, ..record }, &format!("the server refused it: {text} ({errno})"))?;
        Ok(())
    }

    /// A change, as it is to be sent.
    fn give(
        &mut self,
        record: Record,
        replay: &mut Replay,
        quarantine: &mut Quarantine,
    ) -> Result<(), Stays> {
        let Some(redo) = &mut self.redo else { return Ok(replay.handle(Event::Record(record))?) };
        match redo.redo(&record).map_err(|unlike| Stays::Unfit(Unfit::Unlike(unlike)))? {
            Redone::Nothing => self.done += 1,
            Redone::Aside(why) => {
                quarantine.keep(&record, why)?;
                if let Some(heard) = &mut self.heard_of {
                    heard.aside.insert(record.number);
                }
            }
            Redone::Send(number, request) => {
                self.renumbered.insert(number, record.number);
                replay.handle(Event::Record(Record { number, body: request.encode(NOTAG).to_body() }))?;
            }
        }
        Ok(())
    }

    fn fill(&mut self, replay: &mut Replay, quarantine: &mut Quarantine) -> Result<(), Stays> {
        while replay.has_room() {
            match self.waiting.pop_front() {
                Some(record) => self.give(record, replay, quarantine)?,
                None => match self.segments.next()? {
                    Some(taken) => self.waiting.extend(taken.records),
                    None => replay.handle(Event::End)?,
                },
            }
        }
        Ok(())
    }

    fn tell(&mut self, outcome: &Outcome) {
        if self.told.elapsed() >= TOLD_EACH {
            self.told = Instant::now();
            let done = outcome.sent + outcome.skipped + outcome.refused + outcome.dropped;
            (self.tell)(Progress { done, of: self.of, since: self.begun.elapsed() });
        }
    }
}

/// Closes a connection on which nothing comes for too long. Ends when what it hands back is dropped.
fn watch(closer: Closer) -> io::Result<mpsc::Sender<()>> {
    let (heard, wait) = mpsc::channel();
    std::thread::Builder::new().name("wirefs-patience".into()).spawn(move || {
        loop {
            match wait.recv_timeout(PATIENCE) {
                Ok(()) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => return closer.close(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    })?;
    Ok(heard)
}
