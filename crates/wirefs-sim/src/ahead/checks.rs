//! Compares answers with the tree that the program believes in.

use super::act::{Open, Step};
use super::{Ahead, HOST};
use crate::flaw::Flaw;
use crate::world::World;
use std::collections::BTreeSet;
use std::time::Duration;
use wirefs_client::call::{Answer, CallId, Listed, TreeNodeId};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Kind, Stat, TreePath};

/// Without faults, all calls end within this time.
const SETTLED_WITHIN: Duration = Duration::from_secs(300);
/// Without calls, the journal is empty after this time.
const IDLE: Duration = Duration::from_secs(12);

impl World {
    /// Takes the answer to a call of the program.
    pub(crate) fn ahead_answered(&mut self, id: CallId, answer: Answer) {
        let task = self.ahead.as_mut().and_then(|ahead| ahead.task.as_mut());
        match task.filter(|task| task.call == Some(id)) {
            Some(task) => {
                task.call = None;
                self.step_is_answered(answer);
            }
            // The kernel gave something back by itself, or the call was answered before.
            None if matches!(answer, Answer::Done) => {}
            None => self.fail(format!("{id:?} was answered without a pending call: {answer:?}")),
        }
    }

    pub(super) fn step_is_answered(&mut self, answer: Answer) {
        let task = self.ahead.as_mut().and_then(|ahead| ahead.task.as_mut());
        let Some(step) = task.and_then(|task| task.steps.pop_front()) else { return };
        self.counts.checks += 1;
        self.note(|| {
            format!("the program gets {} for {step:?}", cut_short(&answer)).chars().take(400).collect()
        });
        let taken = self.take_step(&step, answer);
        if let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.is_over) {
            ahead.task = None;
            return;
        }
        if let Err(why) = taken {
            return self.fail(format!("{step:?}: {why}"));
        }
        self.next_step();
    }

    fn take_step(&mut self, step: &Step, answer: Answer) -> Result<(), String> {
        let is_early = self.flaw == Some(Flaw::AnswersFsyncEarly);
        let is_here = self.plan.ahead.as_ref().is_some_and(|plan| plan.fsync_here);
        let tree = &self.server.tree;
        let Some(ahead) = &mut self.ahead else { return Ok(()) };
        match (step, answer) {
            (Step::Look(path), answer) => ahead.looked(path, answer),
            (Step::Stat(path), Answer::Attr(stat, _)) => ahead.is_shown(path, &stat),
            (Step::List(path), Answer::Opened(handle, _)) => {
                ahead.goes_on(Step::ListOn(path.clone(), handle, 0, Vec::new()));
                Ok(())
            }
            (Step::ListOn(path, handle, offset, names), Answer::Listing(listed)) => {
                ahead.listed(path, *handle, *offset, names, listed)
            }
            (Step::Open(path) | Step::OpenEnd(path), Answer::Opened(handle, _)) => {
                ahead.opens(path, handle, None)
            }
            (Step::Read, Answer::Data(data)) => ahead.is_read(&data),
            (Step::Flush, Answer::Done) => {
                ahead.is_closed();
                Ok(())
            }
            (Step::Fsync, Answer::Done) => {
                let id = ahead.task.as_ref().and_then(|task| task.open).map(|open| open.id);
                let Some(id) = id else { return Ok(()) };
                if !is_here || is_early {
                    ahead.believed.is_on_disk(tree, id)?;
                }
                ahead.believed.is_safe(Some(id));
                self.counts.syncs += 1;
                Ok(())
            }
            (Step::Syncfs, Answer::Done) => {
                ahead.believed.is_safe(None);
                self.counts.syncs += 1;
                Ok(())
            }
            (Step::Release | Step::ListEnd(..), Answer::Done) => Ok(()),
            (step, answer) => ahead.changed(step, answer),
        }
    }

    /// Ends the run: checks that the server has the tree that the program believes in, durably.
    pub(crate) fn end_ahead(&mut self) {
        // The last steps may be in the journal only.
        for _ in 0..self.dice.below(3) {
            self.inject_fault();
        }
        self.heal();
        self.settle_ahead();
        self.pass(IDLE);
        self.settle_ahead();
        if self.has_failed() || self.ahead.as_ref().is_none_or(|ahead| ahead.is_over) {
            return;
        }
        let Some(ahead) = &self.ahead else { return };
        let on_disk = self.server.tree.after_power_cut(BootId(0), &mut |_| 0);
        let needed = ahead.journal.as_ref().map_or(0, |journal| journal.needed());
        let late = self.hosts.get(HOST).and_then(|host| host.client.as_ref());
        let late = late.map_or(0, |client| client.snapshot().ahead.late_count);
        let wrong = match ahead.believed.is_there(&self.server.tree) {
            Err(why) => Some(format!("the server differs from the program's answers: {why}")),
            Ok(()) if ahead.has_unclosed() => None,
            Ok(()) => {
                ahead.believed.is_there(&on_disk).err().map(|why| format!("on the server's disk {why}"))
            }
        };
        let wrong = wrong.or((needed > 0).then(|| format!("{needed} changes are still in the journal")));
        if let Some(wrong) = wrong.or((late > 0).then(|| format!("{late} changes failed late"))) {
            self.fail(wrong);
        }
    }

    fn is_settled_ahead(&self) -> bool {
        let is_done = self.ahead.as_ref().is_some_and(|ahead| {
            ahead.is_over || ahead.is_idle() && ahead.dead_journal.is_none() && ahead.delivery.is_none()
        });
        let host = self.hosts.get(HOST);
        let is_over = self.ahead.as_ref().is_some_and(|ahead| ahead.is_over);
        is_done
            && (is_over
                || self.server.is_idle() && host.is_some_and(|host| !host.is_down && host.is_settled()))
    }

    fn settle_ahead(&mut self) {
        let until = self.now + SETTLED_WITHIN;
        while !self.is_settled_ahead() && self.step() {
            if self.now > until {
                let (host, ahead) = (self.hosts.get(HOST), &self.ahead);
                let shown = (host.map(|host| host.shown()), ahead.as_ref().map(Ahead::shown));
                let jobs = self.server.sessions.jobs();
                return self.fail(format!("pending work never ends: {jobs} jobs at the server, {shown:?}"));
            }
        }
    }

    /// Checks that the pending call of the program is answered in time.
    pub(crate) fn check_ahead_patience(&mut self) {
        let now = self.now;
        let task = self.ahead.as_ref().and_then(|ahead| ahead.task.as_ref());
        let Some(task) = task.filter(|task| now.since(task.began) > 2 * SETTLED_WITHIN) else { return };
        let text = format!("the program is never answered: {}", task.shown());
        self.fail(text);
    }
}

impl Ahead {
    fn goes_on(&mut self, step: Step) {
        if let Some(task) = &mut self.task {
            task.steps.push_front(step);
        }
    }

    /// Returns whether written files are not closed: the server may have any part of them.
    fn has_unclosed(&self) -> bool {
        !self.opened.is_empty()
    }

    fn looked(&mut self, path: &TreePath, answer: Answer) -> Result<(), String> {
        let there = self.believed.now().and_then(|now| now.get(path));
        match (answer, there) {
            (Answer::Entry(entry), Some(seen)) if entry.stat.kind == seen.kind => {
                if let Some(task) = &mut self.task {
                    task.nodes.insert(path.clone(), entry.node);
                }
                Ok(())
            }
            (Answer::NoEntry(_) | Answer::Fail(Errno::NotFound), None) => Ok(()),
            (answer, there) => Err(format!("{} where there is {there:?}", cut_short(&answer))),
        }
    }

    fn is_shown(&self, path: &TreePath, stat: &Stat) -> Result<(), String> {
        let seen = self.believed.now().and_then(|now| now.get(path)).ok_or("the path does not exist")?;
        let is_size = seen.kind != Kind::File || seen.data.len() as u64 == stat.size;
        let is_so = seen.kind == stat.kind && is_size && seen.is_like(stat.mode, stat.nlink);
        if is_so { Ok(()) } else { Err(format!("{stat:?} is reported for {seen:?}")) }
    }

    fn listed(
        &mut self,
        path: &TreePath,
        handle: wirefs_client::call::Handle,
        offset: u64,
        names: &[Vec<u8>],
        listed: Vec<Listed>,
    ) -> Result<(), String> {
        let mut names = names.to_vec();
        let Some(last) = listed.last() else {
            let found: BTreeSet<Vec<u8>> =
                names.iter().filter(|name| *name != b"." && *name != b"..").cloned().collect();
            let now = self.believed.now().ok_or("the tree is empty")?;
            let in_it = now.keys().filter_map(|path| path.split_last()).filter(|(dir, _)| dir == path);
            let wanted: BTreeSet<Vec<u8>> = in_it.map(|(_, name)| name.to_vec()).collect();
            if found != wanted {
                return Err(format!("{found:?} is listed instead of {wanted:?}"));
            }
            self.goes_on(Step::ListEnd(path.clone(), handle));
            return Ok(());
        };
        let next = last.next.max(offset);
        names.extend(listed.into_iter().map(|entry| entry.name));
        self.goes_on(Step::ListOn(path.clone(), handle, next, names));
        Ok(())
    }

    fn opens(
        &mut self,
        path: &TreePath,
        handle: wirefs_client::call::Handle,
        node: Option<TreeNodeId>,
    ) -> Result<(), String> {
        let id = self.believed.now().and_then(|now| now.get(path)).map(|seen| seen.id);
        let task = self.task.as_mut().ok_or("no task opens it")?;
        let node = node.or_else(|| task.node(path)).ok_or("the path was not looked up")?;
        task.open = Some(Open { node, handle, id: id.ok_or("the file does not exist")? });
        Ok(())
    }

    fn is_read(&self, data: &[u8]) -> Result<(), String> {
        let open = self.task.as_ref().and_then(|task| task.open).ok_or("nothing is open")?;
        let Some(path) = self.believed.path_of(open.id) else { return Ok(()) };
        let wanted = self.believed.now().and_then(|now| now.get(path)).map(|seen| seen.data.clone());
        match wanted {
            Some(wanted) if wanted == data => Ok(()),
            wanted => Err(format!(
                "{path:?}: {} bytes are read, of {:?}, and they differ",
                data.len(),
                wanted.map(|wanted| wanted.len())
            )),
        }
    }

    fn is_closed(&mut self) {
        let Some(task) = &self.task else { return };
        if let Some(open) = task.open {
            self.believed.closed(open.id, task.is_journaled);
        }
    }

    /// Checks a change: it succeeds, or fails with the expected error.
    fn changed(&mut self, step: &Step, answer: Answer) -> Result<(), String> {
        let open = self.task.as_ref().and_then(|task| task.open);
        let path = open.and_then(|open| self.believed.path_of(open.id)).cloned();
        let Some(request) = step.request(path.as_ref()) else {
            return Err(format!("it is answered with {}", cut_short(&answer)));
        };
        let expected = self.believed.makes(request);
        match (step, answer, expected) {
            (Step::Create(path), Answer::Created(entry, handle, _), Ok(())) => {
                self.opens(path, handle, Some(entry.node))
            }
            (Step::Mkdir(_) | Step::Symlink(_) | Step::Link(..), Answer::Entry(_), Ok(()))
            | (Step::Remove(..) | Step::Rename(..), Answer::Done, Ok(()))
            | (Step::Mode(..) | Step::Cut(..), Answer::Attr(..), Ok(())) => Ok(()),
            (Step::Write(_, data), Answer::Count(count), Ok(())) if count as usize == data.len() => Ok(()),
            (_, Answer::Fail(errno), Err(expected)) if errno == expected => Ok(()),
            (_, answer, expected) => Err(format!("{} instead of {expected:?}", cut_short(&answer))),
        }
    }
}

fn cut_short(answer: &Answer) -> String {
    match answer {
        Answer::Data(data) => format!("{} bytes", data.len()),
        other => format!("{other:?}").chars().take(200).collect(),
    }
}
