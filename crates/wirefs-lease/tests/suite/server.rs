//! The server: requests become jobs, which read and change in steps separated by time.

use crate::mutations::Mutation;
use crate::sim_client::static_name;
use crate::simulation::{Changer, Event, LeaseSimulation};
use crate::store::{DIRECTORIES, Fact, NAMES, Value, id};
use crate::wire::{Ask, Change, ChangeKind, Connection, Down, Up};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use wirefs_lease::{
    Grantor, GrantorOutput, HolderKey, JobKey, JoinOutcome, LeaseConfig, PartyKey, TouchOutcome, Touched,
};
use wirefs_op::FileId;

/// The progress of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Read,
    ReadRest,
    Reply,
    Start,
    Parked,
    Victims,
    Apply,
    ReplyChange,
    End,
}

#[derive(Debug)]
pub(crate) struct Work {
    client: Option<usize>,
    connection: Option<Connection>,
    request: u64,
    ask: Ask,
    pub(crate) step: Step,
    seen: Vec<(Fact, Value)>,
    victims: Vec<u64>,
    /// The connection broke while the job was clear to run.
    cut_when_clear: bool,
    /// The directories that the job has locked.
    pub(crate) locked_directories: Vec<u64>,
}

pub(crate) struct Server {
    pub(crate) grantor: Grantor,
    pub(crate) config: LeaseConfig,
    pub(crate) connections: Vec<Option<Connection>>,
    pub(crate) jobs: BTreeMap<u64, Work>,
    pub(crate) lanes: Vec<VecDeque<u64>>,
    jobs_begun: u64,
    /// The number of recalls and of parked jobs, as statistics.
    pub(crate) recalls: u64,
    pub(crate) parked: u64,
    pub(crate) expelled: u64,
}

impl Server {
    pub(crate) fn new(config: LeaseConfig, clients: usize) -> Server {
        Server {
            grantor: Grantor::new(config, None),
            config,
            connections: vec![None; clients],
            jobs: BTreeMap::new(),
            // One more lane for clients without leases.
            lanes: vec![VecDeque::new(); clients + 1],
            jobs_begun: 0,
            recalls: 0,
            parked: 0,
            expelled: 0,
        }
    }
}

/// Each client has its own key.
fn party(client: usize) -> PartyKey {
    PartyKey(Bytes::from(client.to_string()))
}

fn key(client: usize) -> HolderKey {
    HolderKey(client as u64)
}

impl LeaseSimulation {
    /// Executes the grantor's outputs.
    pub(crate) fn pump(&mut self, drops_recalls: bool) {
        while let Some(output) = self.server.grantor.poll() {
            self.log.push(format!("              -> {output:?}"));
            match output {
                GrantorOutput::Recall { holder, serial, items } => {
                    self.server.recalls += 1;
                    let client = holder.0 as usize;
                    if self.server.connections[client].is_none() {
                        self.fail(format!("a recall for {holder:?}, which is not connected"));
                    }
                    if !drops_recalls {
                        self.down(client, Down::Recall(serial, items));
                    }
                }
                GrantorOutput::Retry(JobKey(job)) => {
                    if self.server.jobs.get(&job).is_none_or(|work| work.step != Step::Parked) {
                        self.fail(format!("job {job} is retried although it is not parked"));
                    } else if self.mutation != Some(Mutation::LosesTheParked) {
                        self.proceed(job, Step::Start);
                    }
                }
                GrantorOutput::Expel(holder) => {
                    self.server.expelled += 1;
                    let client = holder.0 as usize;
                    self.down(client, Down::Closed);
                    self.cut_jobs(client);
                    self.server.connections[client] = None;
                    if self.mutation == Some(Mutation::RemovesTheExpelled) {
                        self.server.grantor.remove(holder);
                    }
                }
                GrantorOutput::HolderRemoved(_) => {}
                GrantorOutput::Verify(item) => {
                    let name = item.name.map(|name| static_name(&name));
                    self.later(1, 200_000, Event::Watch(item.id.ino, name));
                }
            }
        }
        self.schedule_tick();
    }

    pub(crate) fn receive(&mut self, client: usize, connection: Connection, up: Up) {
        let holder = key(client);
        if let Up::Attach = up {
            self.cut_jobs(client);
            self.server.connections[client] = Some(connection);
            let joined = self.server.grantor.join(self.now, holder, party(client));
            self.pump(self.mutation == Some(Mutation::LosesTheMissed));
            self.down(client, Down::Attached { retained: joined == JoinOutcome::Retained });
            return;
        }
        if self.server.connections[client] != Some(connection) {
            return;
        }
        match up {
            Up::Attach => {}
            Up::Recalled(serial) => {
                self.server.grantor.recall_answered(self.now, holder, serial);
                self.pump(false);
            }
            Up::Request(request, ask) => {
                self.server.grantor.renew(self.now, holder);
                self.pump(false);
                self.take(Some(client), Some(connection), request, ask);
            }
        }
    }

    /// Handles a broken connection on the server.
    pub(crate) fn cut_jobs(&mut self, client: usize) {
        for work in self.server.jobs.values_mut().filter(|work| work.client == Some(client)) {
            let is_clear = matches!(work.step, Step::Victims | Step::Apply | Step::ReplyChange | Step::End);
            work.cut_when_clear |= is_clear && self.server.connections[client] == work.connection;
        }
    }

    /// Turns a request into a job; changes of one session run one after the other.
    pub(crate) fn take(
        &mut self,
        client: Option<usize>,
        connection: Option<Connection>,
        request: u64,
        ask: Ask,
    ) {
        let job = self.server.jobs_begun;
        self.server.jobs_begun += 1;
        let is_change = matches!(ask, Ask::Change(_));
        let step = if is_change { Step::Start } else { Step::Read };
        let work = Work {
            client,
            connection,
            request,
            ask,
            step,
            seen: Vec::new(),
            victims: Vec::new(),
            cut_when_clear: false,
            locked_directories: Vec::new(),
        };
        self.server.jobs.insert(job, work);
        if !is_change {
            return self.proceed(job, step);
        }
        let lane = &mut self.server.lanes[client.unwrap_or(self.clients.len())];
        lane.push_back(job);
        if lane.len() == 1 {
            self.proceed(job, step);
        }
    }

    fn proceed(&mut self, job: u64, step: Step) {
        if let Some(work) = self.server.jobs.get_mut(&job) {
            work.step = step;
        }
        self.later(0, 40_000, Event::Step(job));
    }

    pub(crate) fn step(&mut self, job: u64) {
        let Some(mut work) = self.server.jobs.remove(&job) else { return };
        let next = match work.step {
            Step::Read => {
                self.server.grantor.begin(JobKey(job));
                let facts = self.asked_for(&work.ask);
                let first = facts.len() / 2;
                work.seen = facts.iter().take(first).map(|fact| (*fact, self.store.value(*fact))).collect();
                Some(Step::ReadRest)
            }
            Step::ReadRest => {
                let facts = self.asked_for(&work.ask);
                let rest = facts.iter().filter(|fact| !work.seen.iter().any(|(seen, _)| seen == *fact));
                let rest: Vec<_> = rest.map(|fact| (*fact, self.store.value(*fact))).collect();
                work.seen.extend(rest);
                Some(Step::Reply)
            }
            Step::Reply => {
                self.reply(job, &work);
                self.server.grantor.end(JobKey(job));
                self.pump(false);
                return;
            }
            Step::Start => self.start(job, &mut work),
            Step::Parked => return self.fail(format!("job {job} runs although it is parked")),
            Step::Victims => self.find_victims(job, &mut work),
            Step::Apply => {
                self.apply(job, &mut work);
                Some(Step::ReplyChange)
            }
            Step::ReplyChange => {
                work.seen = work.seen.iter().map(|(fact, _)| (*fact, self.store.value(*fact))).collect();
                self.reply(job, &work);
                Some(Step::End)
            }
            Step::End => return self.end(job, &work),
        };
        let step = next.unwrap_or(Step::Parked);
        self.server.jobs.insert(job, work);
        match next {
            Some(step) => self.proceed(job, step),
            None => {
                self.server.parked += 1;
                if let Some(work) = self.server.jobs.get_mut(&job) {
                    work.step = step;
                }
            }
        }
        self.pump(false);
    }

    /// Returns the facts in the reply to a request, with the current names.
    fn asked_for(&self, ask: &Ask) -> Vec<Fact> {
        let meaning = |directory, name| self.store.name(directory, name).map(Fact::Attributes);
        match ask {
            Ask::Ping | Ask::Change(_) => Vec::new(),
            Ask::Attributes(object) => vec![Fact::Attributes(*object)],
            Ask::Lookup(directory, name) => {
                [Fact::Name(*directory, name)].into_iter().chain(meaning(*directory, name)).collect()
            }
            Ask::List(directory) => {
                let names = NAMES.into_iter().map(|name| Fact::Name(*directory, name));
                let objects = NAMES.into_iter().filter_map(|name| meaning(*directory, name));
                [Fact::Attributes(*directory)].into_iter().chain(names).chain(objects).collect()
            }
        }
    }

    fn reply(&mut self, job: u64, work: &Work) {
        let (Some(client), Some(connection)) = (work.client, work.connection) else { return };
        if self.mutation == Some(Mutation::GrantsTheChanged) {
            self.server.grantor.begin(JobKey(job));
        }
        let ids: Vec<FileId> = work.seen.iter().map(|(fact, _)| id(object(*fact))).collect();
        let granted = self.server.grantor.grant(self.now, JobKey(job), key(client), &ids);
        self.pump(false);
        if self.server.connections[client] == Some(connection) {
            let reply = work.seen.iter().zip(granted).map(|((fact, value), leased)| (*fact, *value, leased));
            self.down(client, Down::Reply(work.request, reply.collect()));
        }
    }

    /// Returns the holder for which the job changes objects; `None` if its connection was replaced, so that
    /// it cannot see the reply.
    fn on_behalf_of(&self, work: &Work) -> Option<HolderKey> {
        let client = work.client?;
        let is_there = self.server.connections[client] == work.connection
            || self.mutation == Some(Mutation::SkipsOwnRecalls);
        is_there.then_some(key(client))
    }

    fn touch(&mut self, job: u64, work: &Work, touched: &[Touched]) -> bool {
        let holder = self.on_behalf_of(work);
        let verdict = self.server.grantor.touch(self.now, JobKey(job), holder, touched);
        self.log.push(format!("              job {job} for {holder:?} {verdict:?}: {touched:?}"));
        verdict == TouchOutcome::Clear || self.mutation == Some(Mutation::ChangesTheParked)
    }

    fn touched_object(&self, change: &Change, object: u64) -> Touched {
        let recall_own =
            !change.expected.contains(&object) && self.mutation != Some(Mutation::SkipsOwnRecalls);
        Touched { id: id(object), name: None, exclusive: false, recall_own }
    }

    fn start(&mut self, job: u64, work: &mut Work) -> Option<Step> {
        let Ask::Change(change) = work.ask.clone() else { return None };
        self.server.grantor.begin(JobKey(job));
        let mut touched: Vec<Touched> = Vec::new();
        for (directory, name) in change.kind.names() {
            touched.push(Touched {
                id: id(directory),
                name: Some(Bytes::from_static(name.as_bytes())),
                exclusive: self.mutation != Some(Mutation::SharesDirectories),
                recall_own: false,
            });
        }
        work.victims.clear();
        match change.kind {
            ChangeKind::Write(directory, name) => {
                work.victims = self.store.name(directory, name).into_iter().collect();
                touched.extend(work.victims.iter().map(|object| self.touched_object(&change, *object)));
            }
            ChangeKind::Chmod(directory) => {
                touched.push(Touched { id: id(directory), name: None, exclusive: false, recall_own: false });
            }
            ChangeKind::Create(..) | ChangeKind::Unlink(..) | ChangeKind::Rename(..) => {}
        }
        if !self.touch(job, work, &touched) {
            return None;
        }
        work.locked_directories = change.kind.names().into_iter().map(|(directory, _)| directory).collect();
        Some(Step::Victims)
    }

    fn find_victims(&mut self, job: u64, work: &mut Work) -> Option<Step> {
        let Ask::Change(change) = work.ask.clone() else { return None };
        if let ChangeKind::Unlink(..) | ChangeKind::Rename(..) = change.kind {
            let meaning = |(directory, name)| self.store.name(directory, name);
            work.victims = change.kind.victims().into_iter().filter_map(meaning).collect();
            let touched = work.victims.iter().map(|object| self.touched_object(&change, *object));
            let touched: Vec<Touched> = touched.collect();
            if self.mutation != Some(Mutation::TouchesNoVictim) && !self.touch(job, work, &touched) {
                work.locked_directories.clear();
                return None;
            }
        }
        Some(Step::Apply)
    }

    fn apply(&mut self, job: u64, work: &mut Work) {
        let Ask::Change(Change { kind, .. }) = work.ask else { return };
        let before: Vec<(u64, Option<u64>)> = DIRECTORIES.map(|dir| (dir, self.store.version(dir))).to_vec();
        let is_seats = work.cut_when_clear || self.on_behalf_of(work).is_some();
        let changer = match work.client {
            Some(client) if is_seats => Changer::Client(client, work.request),
            Some(_) | None => Changer::Leaseless,
        };
        let mut facts = kind.facts();
        let allowed: Vec<u64> = work.victims.clone();
        let changed = self.change(kind, &allowed, changer);
        facts.extend(changed.iter().map(|object| Fact::Attributes(*object)));
        facts.sort();
        facts.dedup();
        self.check_apart(job, work);
        for fact in &facts {
            let (object, name) = match fact {
                Fact::Attributes(object) => (*object, None),
                Fact::Name(directory, name) => (*directory, Some(*name)),
            };
            let bytes = name.map(|name| Bytes::from_static(name.as_bytes()));
            let old = before.iter().find(|(dir, _)| *dir == object).and_then(|(_, version)| *version);
            // A directory's attributes change with its names: one change, reported by name.
            let by_name =
                name.is_none() && DIRECTORIES.contains(&object) && !matches!(kind, ChangeKind::Chmod(_));
            if !by_name {
                // Without a version the object is gone; the watcher reports that too.
                let version = self.store.version(object);
                self.server.grantor.own_change(self.now, id(object), bytes.as_ref(), old, version);
                self.later(100, 300_000, Event::Watch(object, name));
            }
        }
        work.seen = facts.iter().map(|fact| (*fact, None)).collect();
    }

    fn end(&mut self, job: u64, work: &Work) {
        self.server.grantor.end(JobKey(job));
        let lane = &mut self.server.lanes[work.client.unwrap_or(self.clients.len())];
        lane.pop_front();
        if let Some(next) = lane.front().copied() {
            self.proceed(next, Step::Start);
        }
        self.pump(false);
    }

    /// Reports a change as a watcher does.
    pub(crate) fn watch(&mut self, object: u64, name: Option<&'static str>) {
        if self.mutation == Some(Mutation::WatchesNothing) {
            return;
        }
        let name = name.map(|name| Bytes::from_static(name.as_bytes()));
        let version = self.store.version(object);
        self.server.grantor.external_change(self.now, id(object), name.as_ref(), version);
        self.pump(false);
    }
}

/// Returns the object whose lease covers a fact.
fn object(fact: Fact) -> u64 {
    match fact {
        Fact::Attributes(object) | Fact::Name(object, _) => object,
    }
}
