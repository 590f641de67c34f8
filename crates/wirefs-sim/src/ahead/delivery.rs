//! Delivery of a journal to the server: after the mount died, or for a running mount whose server's machine lost power.

use super::journal::Journal;
use super::{HOST, LiveReplay};
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

/// The maximum silence of the server.
const PATIENCE: Duration = Duration::from_secs(120);

/// A delivery over one connection.
pub(crate) struct ActiveDelivery {
    pub(crate) connection: ConnectionKey,
    machine: Delivery,
    records: VecDeque<Record>,
    /// The mount is running.
    is_live: bool,
    /// The time of the last message from the server.
    heard: Time,
}

impl ActiveDelivery {
    /// Returns whether changes may have been replayed.
    pub(crate) fn has_replayed(&self) -> bool {
        self.machine.has_replayed()
    }
}

/// Builds a replay from the changes in a journal.
fn learned(journal: &Journal, root: FileId, end: Option<u64>) -> Result<(Replay, u64), DeliveryFault> {
    let (survey, records) = journal.survey();
    let end = end.unwrap_or(survey.end());
    let mut replay = Replay::of(&survey, root, end).map_err(Undeliverable::Replay)?;
    for record in &records {
        replay.learn_from(&survey, record).map_err(Undeliverable::Replay)?;
    }
    Ok((replay, survey.latest_time))
}

impl World {
    /// Starts a delivery over a new connection, if one is due. Returns whether it uses the connection up.
    pub(crate) fn begin_delivery(&mut self, connection: ConnectionKey, attachment: &Attachment) -> bool {
        let terms = SessionTerms { ledger: attachment.ledger, boot: attachment.boot };
        let root = self.truth.root();
        let Some(is_dead) = self.ahead.as_ref().map(|ahead| ahead.dead_journal.is_some()) else {
            return false;
        };
        let (live_replay, is_live) = match is_dead {
            true => (self.plan_for_dead_mount(root, terms), false),
            false if self.may_have_lost(terms) => (self.plan_for_live_mount(root, terms), true),
            false => return false,
        };
        let machine = match live_replay {
            Ok(machine) => machine,
            Err(fault) => {
                self.delivery_impossible(fault);
                self.release_leases(connection);
                return true;
            }
        };
        let Some(ahead) = &mut self.ahead else { return false };
        let journal = if is_live { ahead.journal.as_ref() } else { ahead.dead_journal.as_ref() };
        let records = journal.map(|journal| journal.survey().1).unwrap_or_default().into();
        ahead.delivery = Some(ActiveDelivery { connection, machine, records, is_live, heard: self.now });
        self.note(|| format!("a journal is delivered over connection {}, live {is_live}", connection.0));
        self.continue_delivery();
        true
    }

    /// Returns whether the server's machine may have lost changes of the running mount.
    fn may_have_lost(&self, terms: SessionTerms) -> bool {
        let client = self.hosts.get(HOST).and_then(|host| host.client.as_ref());
        let (Some(ahead), Some(client)) = (&self.ahead, client) else { return false };
        let decided = ahead.live_replay.as_ref().and_then(|live_replay| live_replay.decided.as_ref());
        let is_going_on = decided.is_some_and(|decided| decided.is_at(terms.boot));
        terms.boot != client.boot() && ahead.given_up != Some(terms.boot) && (terms.is_void() || is_going_on)
    }

    fn plan_for_dead_mount(&mut self, root: FileId, terms: SessionTerms) -> Result<Delivery, DeliveryFault> {
        let Some(ahead) = &mut self.ahead else { return Err(Undeliverable::Unknown.into()) };
        let Some(dead_journal) = &mut ahead.dead_journal else { return Err(Undeliverable::Unknown.into()) };
        let is_certain = dead_journal.header.run == ahead.kernel_run
            && !std::mem::replace(&mut dead_journal.is_tried, true);
        let decided = dead_journal.decided.take().filter(|decided| decided.is_at(terms.boot));
        let decided = decided.or_else(|| dead_journal.noted(root, terms, ahead.kernel_run));
        let at = decided.as_ref().map(|_| terms.boot);
        let survey = dead_journal.survey().0;
        match (DeliveryPlan::of(&survey, &dead_journal.header, terms, is_certain, at), decided) {
            (DeliveryPlan::Resume(replay), _) => Ok(Delivery::resume(terms, replay, survey.rejected())),
            (DeliveryPlan::Nothing(unfit), _) => Err(unfit.into()),
            (DeliveryPlan::ReplayAll, Some(decided)) => Delivery::continue_replay(decided, terms),
            (DeliveryPlan::ReplayAll, None) => {
                let (replay, seen) = learned(dead_journal, root, None)?;
                self.counts.redone += 1;
                Delivery::replay_all(replay, seen, terms, None)
            }
        }
    }

    fn plan_for_live_mount(&mut self, root: FileId, terms: SessionTerms) -> Result<Delivery, DeliveryFault> {
        if self.ahead.as_ref().is_some_and(|ahead| ahead.live_replay.is_none()) {
            let held = self.drive(HOST, |client, _| (client.begin_redo(), client.answered_below()));
            let (end, answered) = held.unwrap_or_default();
            if let Some(ahead) = &mut self.ahead {
                ahead.live_replay = Some(LiveReplay { end, answered, decided: None });
            }
        }
        let Some(ahead) = &mut self.ahead else { return Err(Undeliverable::Unknown.into()) };
        let (Some(live_replay), Some(journal)) = (&mut ahead.live_replay, &ahead.journal) else {
            return Err(Undeliverable::Unknown.into());
        };
        match live_replay.decided.take() {
            Some(decided) if decided.is_at(terms.boot) => Delivery::continue_replay(decided, terms),
            elsewhere => {
                let (mut replay, seen) = learned(journal, root, Some(live_replay.end))?;
                if let Some(elsewhere) = &elsewhere {
                    elsewhere.hand_over_to(&mut replay);
                }
                live_replay.decided = elsewhere;
                self.counts.redone_live += 1;
                Delivery::replay_all(replay, seen, terms, Some(live_replay.answered))
            }
        }
    }

    /// Takes a message.
    pub(crate) fn delivery_receives(&mut self, body: Bytes) {
        let now = self.now;
        let handled = self.ahead.as_mut().and_then(|ahead| ahead.delivery.as_mut()).map(|delivery| {
            delivery.heard = now;
            delivery.machine.handle(DeliveryInput::Received(body))
        });
        match handled {
            Some(Ok(())) => self.continue_delivery(),
            Some(Err(fault)) => self.abort_delivery(fault),
            None => {}
        }
    }

    /// Drops a connection on which nothing arrives.
    pub(crate) fn check_delivery(&mut self) {
        let delivery = self.ahead.as_ref().and_then(|ahead| ahead.delivery.as_ref());
        let late = delivery.filter(|delivery| self.now.since(delivery.heard) > PATIENCE);
        if let Some(connection) = late.map(|delivery| delivery.connection) {
            self.host_loses(connection);
        }
    }

    fn abort_delivery(&mut self, fault: DeliveryFault) {
        let delivery = self.ahead.as_mut().and_then(|ahead| ahead.delivery.take());
        self.delivery_impossible(fault);
        if let Some(delivery) = delivery {
            self.release_leases(delivery.connection);
        }
    }

    fn continue_delivery(&mut self) {
        loop {
            let delivery = self.ahead.as_mut().and_then(|ahead| ahead.delivery.as_mut());
            let Some(ActiveDelivery { connection, machine, records, is_live, .. }) = delivery else { return };
            let is_dead = !*is_live;
            if machine.wants_record() {
                let event = records.pop_front().map_or(DeliveryInput::End, DeliveryInput::Record);
                if let Err(fault) = machine.handle(event) {
                    return self.abort_delivery(fault);
                }
                continue;
            }
            let (connection, act) = (*connection, machine.poll());
            match act {
                None => return,
                Some(DeliveryOutput::Findings(decision)) => {
                    self.store_findings(|noted, run| *noted = decision.encode(run));
                }
                Some(DeliveryOutput::Answered(below)) => {
                    self.store_findings(|noted, _| noted.extend(Findings::answered(below)));
                }
                Some(DeliveryOutput::Send(frame)) => {
                    let body = frame.to_body();
                    self.note_request(HOST, &body);
                    self.send_up(connection, body, Lane::Changes);
                }
                // S-106: the append was requested without a connection, so the client did not know the end of the file.
                Some(DeliveryOutput::Quarantine(_, why))
                    if why.ends_with("nobody knows where the append went") =>
                {
                    self.end_quarantined();
                }
                // S-103: the mount has died, and the server had applied more of its changes than it had answered.
                Some(DeliveryOutput::Quarantine(_, why))
                    if is_dead && why.ends_with("what it has there was changed later") =>
                {
                    self.end_quarantined();
                }
                Some(DeliveryOutput::Quarantine(record, why)) => {
                    let would_fail = why.starts_with("the server rejected it");
                    if !(would_fail && self.would_fail_anyway()) {
                        let what = Request::decode(record.body.clone());
                        self.fail(format!("change {} is quarantined, {why}: {what:?}", record.number));
                    }
                }
                Some(DeliveryOutput::Done(_)) => return self.delivery_done(),
                Some(DeliveryOutput::SyncFailed(errno)) => {
                    self.fail(format!("delivered changes are not durable: {errno}"));
                }
            }
        }
    }

    /// Stores findings beside the delivered journal.
    fn store_findings(&mut self, note: impl FnOnce(&mut Vec<u8>, u64)) {
        let Some(ahead) = &mut self.ahead else { return };
        let run = ahead.kernel_run;
        if let Some(journal) = ahead.dead_journal.as_mut().or(ahead.journal.as_mut()) {
            note(&mut journal.noted, run);
        }
    }

    /// Returns whether the pending call of the program would fail anyway.
    fn would_fail_anyway(&mut self) -> bool {
        let Some(ahead) = &mut self.ahead else { return false };
        let Some(task) = &ahead.task else { return std::mem::take(&mut ahead.would_fail) };
        let open = task.open.and_then(|open| ahead.believed.path_of(open.id));
        task.pending_change(open).is_some_and(|request| ahead.believed.refuses(request))
    }

    /// Ends a delivery whose changes are all durable.
    fn delivery_done(&mut self) {
        let Some(ahead) = &mut self.ahead else { return };
        let Some(mut delivery) = ahead.delivery.take() else { return };
        let boot = self.server.boot;
        if delivery.is_live {
            ahead.live_replay = None;
            if let Some(journal) = &mut ahead.journal {
                journal.is_torn = false;
                journal.header.boot = boot;
                journal.noted.clear();
            }
            let Some(became) = delivery.machine.take_report() else {
                return self.fail("a running mount gets no report about its changes".into());
            };
            let again = |fate: ChangeFate| match fate {
                ChangeFate::Answered(reply) => Again::Answered(reply),
                ChangeFate::Done(stat) => Again::Done(stat),
            };
            let fates = became.fates.into_iter().map(|(number, fate)| (number, again(fate))).collect();
            let redone = Redone { boot, next: became.next, made: became.made, again: fates };
            self.drive(HOST, |client: &mut Client, now| client.redone(now, redone));
        } else {
            ahead.dead_journal = None;
            self.counts.recovered += 1;
            if let Err(why) = ahead.believed.is_recovered(&self.server.tree)
                && !ahead.is_over
            {
                self.fail(why);
            }
        }
        self.note(|| "the journal is delivered".into());
        self.release_leases(delivery.connection);
    }

    /// Releases all leases of the session, and closes the connection.
    fn release_leases(&mut self, connection: ConnectionKey) {
        let told = Request::Recalled(Trecalled { serial: RELEASE_ALL }).encode(NOTAG);
        self.send_up(connection, told.to_body(), Lane::Changes);
        self.host_loses(connection);
    }

    /// Handles the loss of the delivery's connection.
    pub(crate) fn delivery_lost(&mut self) {
        let Some(ahead) = &mut self.ahead else { return };
        let Some(ActiveDelivery { machine, is_live, .. }) = ahead.delivery.take() else { return };
        self.counts.broken += 1;
        let decided = machine.suspend();
        let has_sent = match (is_live, &mut ahead.live_replay, &mut ahead.dead_journal) {
            (true, Some(live_replay), _) => {
                live_replay.decided = decided.or(live_replay.decided.take());
                live_replay.decided.is_some()
            }
            (false, _, Some(dead_journal)) => {
                dead_journal.decided = decided;
                false
            }
            _ => false,
        };
        if has_sent {
            self.drive(HOST, |client: &mut Client, now| client.redo_broke(now));
        }
    }

    /// Handles a delivery that sends nothing. Only a power loss of the server's machine may be the reason.
    fn delivery_impossible(&mut self, fault: DeliveryFault) {
        let run = self.ahead.as_ref().map_or(0, |ahead| ahead.kernel_run);
        let journals = self.ahead.iter().flat_map(|ahead| ahead.dead_journal.iter().chain(&ahead.journal));
        let torn = journals.filter(|journal| journal.is_torn).collect::<Vec<_>>();
        let may_be = match fault {
            DeliveryFault::Undeliverable(Undeliverable::Replay(
                ReplayFault::Ambiguous | ReplayFault::OtherClients,
            )) => true,
            // The earlier replay died, and its findings are lost.
            DeliveryFault::Undeliverable(Undeliverable::Unknown) => {
                torn.iter().any(|journal| Findings::decode(&journal.noted, run).is_none())
            }
            // Objects are half created again.
            DeliveryFault::Undeliverable(Undeliverable::Replay(_)) => !torn.is_empty(),
            _ => false,
        };
        if !may_be {
            return self.fail(format!("the journal is not delivered to the server: {fault}"));
        }
        self.note(|| format!("the whole journal is quarantined: {fault}"));
        self.end_quarantined();
    }

    /// Ends the run: the server will not get changes that the program believes in.
    fn end_quarantined(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            self.counts.kept_aside += u64::from(!ahead.is_over);
            ahead.is_over = true;
        }
    }
}
