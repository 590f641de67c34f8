//! What a journal holds is brought to the server: after the mount died, or for one that lives, whose server's machine lost power.

use super::journal::Journal;
use super::{Begun, SEAT};
use crate::world::World;
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;
use wirefs_client::{Again, Attachment, Client, Lane, Redone};
use wirefs_journal::DeliveryInput;
use wirefs_journal::{
    ChangeFate, Delivery, DeliveryFault, DeliveryOutput, DeliveryPlan, Findings, Record, Replay, ReplayFault,
    SessionTerms, Undeliverable,
};
use wirefs_op::message::recall::{RELEASE_ALL, Trecalled};
use wirefs_op::{FileId, NOTAG, Request, Time};
use wirefs_server::ConnectionKey;

/// How long the server may be silent.
const PATIENCE: Duration = Duration::from_secs(120);

/// That, over one connection.
pub(crate) struct Bringing {
    pub(crate) connection: ConnectionKey,
    bring: Delivery,
    records: VecDeque<Record>,
    /// For a mount that lives.
    is_live: bool,
    /// When the server said something last.
    heard: Time,
}

impl Bringing {
    /// Whether some of what a server's machine has lost may have been sent again.
    pub(crate) fn is_again(&self) -> bool {
        self.bring.has_replayed()
    }
}

/// What is known of the changes in a journal.
fn learned(journal: &Journal, root: FileId, end: Option<u64>) -> Result<(Replay, u64), DeliveryFault> {
    let (survey, records) = journal.survey();
    let end = end.unwrap_or(survey.end());
    let mut redo = Replay::of(&survey, root, end).map_err(Undeliverable::Replay)?;
    for record in &records {
        redo.learn_from(&survey, record).map_err(Undeliverable::Replay)?;
    }
    Ok((redo, survey.latest_time))
}

impl World {
    /// A connection is there: tells whether it is used up by bringing a journal to the server.
    pub(crate) fn begins_to_bring(&mut self, connection: ConnectionKey, attachment: &Attachment) -> bool {
        let terms = SessionTerms { ledger: attachment.ledger, boot: attachment.boot };
        let root = self.truth.root();
        let Some(is_dead) = self.ahead.as_ref().map(|ahead| ahead.left.is_some()) else { return false };
        let (begun, is_live) = match is_dead {
            true => (self.begin_for_dead(root, terms), false),
            false if self.has_lost(terms) => (self.begin_for_living(root, terms), true),
            false => return false,
        };
        let bring = match begun {
            Ok(bring) => bring,
            Err(fault) => {
                self.cannot_bring(fault);
                self.rests(connection);
                return true;
            }
        };
        let Some(ahead) = &mut self.ahead else { return false };
        let journal = if is_live { ahead.journal.as_ref() } else { ahead.left.as_ref() };
        let records = journal.map(|journal| journal.survey().1).unwrap_or_default().into();
        ahead.bringing = Some(Bringing { connection, bring, records, is_live, heard: self.now });
        self.note(|| format!("a journal is brought over connection {}, live {is_live}", connection.0));
        self.go_on_bringing();
        true
    }

    /// Whether the server's machine may have lost changes of the mount that lives.
    fn has_lost(&self, terms: SessionTerms) -> bool {
        let client = self.seats.get(SEAT).and_then(|seat| seat.client.as_ref());
        let (Some(ahead), Some(client)) = (&self.ahead, client) else { return false };
        let decided = ahead.begun.as_ref().and_then(|begun| begun.decided.as_ref());
        let is_going_on = decided.is_some_and(|decided| decided.is_at(terms.boot));
        terms.boot != client.boot() && ahead.given_up != Some(terms.boot) && (terms.is_void() || is_going_on)
    }

    fn begin_for_dead(&mut self, root: FileId, terms: SessionTerms) -> Result<Delivery, DeliveryFault> {
        let Some(ahead) = &mut self.ahead else { return Err(Undeliverable::Unknown.into()) };
        let Some(left) = &mut ahead.left else { return Err(Undeliverable::Unknown.into()) };
        let is_certain = left.header.run == ahead.kernel_run && !std::mem::replace(&mut left.is_tried, true);
        let decided = left.decided.take().filter(|decided| decided.is_at(terms.boot));
        let decided = decided.or_else(|| left.noted(root, terms, ahead.kernel_run));
        let at = decided.as_ref().map(|_| terms.boot);
        let survey = left.survey().0;
        match (DeliveryPlan::of(&survey, &left.header, terms, is_certain, at), decided) {
            (DeliveryPlan::Resume(replay), _) => Ok(Delivery::resume(terms, replay, survey.rejected())),
            (DeliveryPlan::Nothing(unfit), _) => Err(unfit.into()),
            (DeliveryPlan::ReplayAll, Some(decided)) => Delivery::continue_replay(decided, terms),
            (DeliveryPlan::ReplayAll, None) => {
                let (redo, seen) = learned(left, root, None)?;
                self.record.redone += 1;
                Delivery::replay_all(redo, seen, terms, None)
            }
        }
    }

    fn begin_for_living(&mut self, root: FileId, terms: SessionTerms) -> Result<Delivery, DeliveryFault> {
        if self.ahead.as_ref().is_some_and(|ahead| ahead.begun.is_none()) {
            let held = self.drive(SEAT, |client, _| (client.begin_redo(), client.answered_below()));
            let (end, answered) = held.unwrap_or_default();
            if let Some(ahead) = &mut self.ahead {
                ahead.begun = Some(Begun { end, answered, decided: None });
            }
        }
        let Some(ahead) = &mut self.ahead else { return Err(Undeliverable::Unknown.into()) };
        let (Some(begun), Some(journal)) = (&mut ahead.begun, &ahead.journal) else {
            return Err(Undeliverable::Unknown.into());
        };
        match begun.decided.take() {
            Some(decided) if decided.is_at(terms.boot) => Delivery::continue_replay(decided, terms),
            elsewhere => {
                let (mut redo, seen) = learned(journal, root, Some(begun.end))?;
                if let Some(elsewhere) = &elsewhere {
                    elsewhere.hand_over_to(&mut redo);
                }
                begun.decided = elsewhere;
                self.record.redone_live += 1;
                Delivery::replay_all(redo, seen, terms, Some(begun.answered))
            }
        }
    }

    /// A message for it.
    pub(crate) fn bringing_receives(&mut self, body: Bytes) {
        let now = self.now;
        let handled = self.ahead.as_mut().and_then(|ahead| ahead.bringing.as_mut()).map(|bringing| {
            bringing.heard = now;
            bringing.bring.handle(DeliveryInput::Received(body))
        });
        match handled {
            Some(Ok(())) => self.go_on_bringing(),
            Some(Err(fault)) => self.stops_bringing(fault),
            None => {}
        }
    }

    /// Gives a connection up on which nothing comes.
    pub(crate) fn check_bringing(&mut self) {
        let bringing = self.ahead.as_ref().and_then(|ahead| ahead.bringing.as_ref());
        let late = bringing.filter(|bringing| self.now.since(bringing.heard) > PATIENCE);
        if let Some(connection) = late.map(|bringing| bringing.connection) {
            self.seat_loses(connection);
        }
    }

    fn stops_bringing(&mut self, fault: DeliveryFault) {
        let bringing = self.ahead.as_mut().and_then(|ahead| ahead.bringing.take());
        self.cannot_bring(fault);
        if let Some(bringing) = bringing {
            self.rests(bringing.connection);
        }
    }

    fn go_on_bringing(&mut self) {
        loop {
            let bringing = self.ahead.as_mut().and_then(|ahead| ahead.bringing.as_mut());
            let Some(Bringing { connection, bring, records, is_live, .. }) = bringing else { return };
            let is_dead = !*is_live;
            if bring.wants_record() {
                let event = records.pop_front().map_or(DeliveryInput::End, DeliveryInput::Record);
                if let Err(fault) = bring.handle(event) {
                    return self.stops_bringing(fault);
                }
                continue;
            }
            let (connection, act) = (*connection, bring.poll());
            match act {
                None => return,
                Some(DeliveryOutput::Findings(decision)) => {
                    self.note_decided(|noted, run| *noted = decision.encode(run));
                }
                Some(DeliveryOutput::Answered(below)) => {
                    self.note_decided(|noted, _| noted.extend(Findings::answered(below)));
                }
                Some(DeliveryOutput::Send(frame)) => {
                    let body = frame.to_body();
                    self.note_request(SEAT, &body);
                    self.send_up(connection, body, Lane::Changes);
                }
                // S-106: it was asked for while there was no connection, so that its client did not know the end of the file.
                Some(DeliveryOutput::Quarantine(_, why))
                    if why.ends_with("nobody knows where the append went") =>
                {
                    self.is_kept_aside();
                }
                // S-103: the mount has died, and the server had got more from it than it has answered.
                Some(DeliveryOutput::Quarantine(_, why))
                    if is_dead && why.ends_with("what it has there was changed later") =>
                {
                    self.is_kept_aside();
                }
                Some(DeliveryOutput::Quarantine(record, why)) => {
                    let is_refused = why.starts_with("the server rejected it");
                    if !(is_refused && self.is_refused_anyhow()) {
                        let what = Request::decode(record.body.clone());
                        self.fail(format!("change {} is kept aside, {why}: {what:?}", record.number));
                    }
                }
                Some(DeliveryOutput::Done(_)) => return self.is_brought(),
                Some(DeliveryOutput::SyncFailed(errno)) => {
                    self.fail(format!("what was brought is not on the server's disk: {errno}"));
                }
            }
        }
    }

    /// Beside the journal that is brought.
    fn note_decided(&mut self, note: impl FnOnce(&mut Vec<u8>, u64)) {
        let Some(ahead) = &mut self.ahead else { return };
        let run = ahead.kernel_run;
        if let Some(journal) = ahead.left.as_mut().or(ahead.journal.as_mut()) {
            note(&mut journal.noted, run);
        }
    }

    /// Whether the program, which waits or died waiting, asked for what nobody can do.
    fn is_refused_anyhow(&mut self) -> bool {
        let Some(ahead) = &mut self.ahead else { return false };
        let Some(task) = &ahead.task else { return std::mem::take(&mut ahead.is_refused) };
        let open = task.open.and_then(|open| ahead.past.path_of(open.id));
        task.change_under_way(open).is_some_and(|request| ahead.past.refuses(request))
    }

    /// All of it is on the server's disk.
    fn is_brought(&mut self) {
        let Some(ahead) = &mut self.ahead else { return };
        let Some(mut bringing) = ahead.bringing.take() else { return };
        let boot = self.server.boot;
        if bringing.is_live {
            ahead.begun = None;
            if let Some(journal) = &mut ahead.journal {
                journal.is_torn = false;
                journal.header.boot = boot;
                journal.noted.clear();
            }
            let Some(became) = bringing.bring.take_report() else {
                return self.fail("a mount that lives is not told what became of its changes".into());
            };
            let again = |fate: ChangeFate| match fate {
                ChangeFate::Answered(reply) => Again::Answered(reply),
                ChangeFate::Done(stat) => Again::Done(stat),
            };
            let fates = became.fates.into_iter().map(|(number, fate)| (number, again(fate))).collect();
            let redone = Redone { boot, next: became.next, made: became.made, again: fates };
            self.drive(SEAT, |client: &mut Client, now| client.redone(now, redone));
        } else {
            ahead.left = None;
            self.record.recovered += 1;
            if let Err(why) = ahead.past.is_recovered(&self.server.tree)
                && !ahead.is_over
            {
                self.fail(why);
            }
        }
        self.note(|| "the journal is brought".into());
        self.rests(bringing.connection);
    }

    /// The session has no use for what it was promised, and the connection ends.
    fn rests(&mut self, connection: ConnectionKey) {
        let told = Request::Recalled(Trecalled { serial: RELEASE_ALL }).encode(NOTAG);
        self.send_up(connection, told.to_body(), Lane::Changes);
        self.seat_loses(connection);
    }

    /// The connection of it is gone.
    pub(crate) fn bringing_is_lost(&mut self) {
        let Some(ahead) = &mut self.ahead else { return };
        let Some(Bringing { bring, is_live, .. }) = ahead.bringing.take() else { return };
        self.record.broken += 1;
        let decided = bring.suspend();
        let has_sent = match (is_live, &mut ahead.begun, &mut ahead.left) {
            (true, Some(begun), _) => {
                begun.decided = decided.or(begun.decided.take());
                begun.decided.is_some()
            }
            (false, _, Some(left)) => {
                left.decided = decided;
                false
            }
            _ => false,
        };
        if has_sent {
            self.drive(SEAT, |client: &mut Client, now| client.redo_broke(now));
        }
    }

    /// Nothing is sent: only where the server's machine lost power may that be, and it is told.
    fn cannot_bring(&mut self, fault: DeliveryFault) {
        let run = self.ahead.as_ref().map_or(0, |ahead| ahead.kernel_run);
        let journals = self.ahead.iter().flat_map(|ahead| ahead.left.iter().chain(&ahead.journal));
        let torn = journals.filter(|journal| journal.is_torn).collect::<Vec<_>>();
        let may_be = match fault {
            DeliveryFault::Undeliverable(Undeliverable::Replay(
                ReplayFault::Ambiguous | ReplayFault::OtherClients,
            )) => true,
            // Who was doing it again died in the midst, and what that one had noted with it.
            DeliveryFault::Undeliverable(Undeliverable::Unknown) => {
                torn.iter().any(|journal| Findings::decode(&journal.noted, run).is_none())
            }
            // What was made again is half there.
            DeliveryFault::Undeliverable(Undeliverable::Replay(_)) => !torn.is_empty(),
            _ => false,
        };
        if !may_be {
            return self.fail(format!("the journal is not brought to the server: {fault}"));
        }
        self.note(|| format!("all of the journal is kept aside: {fault}"));
        self.is_kept_aside();
    }

    /// The server will not have what the program was told: the run says no more.
    fn is_kept_aside(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            self.record.kept_aside += u64::from(!ahead.is_over);
            ahead.is_over = true;
        }
    }
}
