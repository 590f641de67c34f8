//! Whether what the program is told is so in the tree that it believes in.

use super::act::{Open, Step};
use super::{Ahead, SEAT};
use crate::flaw::Flaw;
use crate::world::World;
use std::collections::BTreeSet;
use std::time::Duration;
use wirefs_client::call::{Answer, CallId, Listed, TreeNodeId};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Kind, Stat, TreePath};

/// Until then everything that was under way is done once nothing goes wrong any more.
const SETTLED_WITHIN: Duration = Duration::from_secs(300);
/// How long nothing happens until the journal is empty.
const IDLE: Duration = Duration::from_secs(12);

impl World {
    /// The answer to a call of the program's is there.
    pub(crate) fn ahead_answered(&mut self, id: CallId, answer: Answer) {
        let task = self.ahead.as_mut().and_then(|ahead| ahead.task.as_mut());
        match task.filter(|task| task.call == Some(id)) {
            Some(task) => {
                task.call = None;
                self.step_is_answered(answer);
            }
            // Given back behind the program's back, or answered before.
            None if matches!(answer, Answer::Done) => {}
            None => self.fail(format!("{id:?} was answered and did not wait: {answer:?}")),
        }
    }

    pub(super) fn step_is_answered(&mut self, answer: Answer) {
        let task = self.ahead.as_mut().and_then(|ahead| ahead.task.as_mut());
        let Some(step) = task.and_then(|task| task.steps.pop_front()) else { return };
        self.record.checks += 1;
        self.note(|| {
            format!("the program is told {} for {step:?}", cut_short(&answer)).chars().take(400).collect()
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
                    ahead.past.is_on_disk(tree, id)?;
                }
                ahead.past.is_safe(Some(id));
                self.record.syncs += 1;
                Ok(())
            }
            (Step::Syncfs, Answer::Done) => {
                ahead.past.is_safe(None);
                self.record.syncs += 1;
                Ok(())
            }
            (Step::Release | Step::ListEnd(..), Answer::Done) => Ok(()),
            (step, answer) => ahead.changed(step, answer),
        }
    }

    /// The end of such a run: the server has what the program was told, all of it on its disk.
    pub(crate) fn end_ahead(&mut self) {
        // What was told last is in the journal alone, perhaps.
        for _ in 0..self.dice.below(3) {
            self.trouble();
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
        let late = self.seats.get(SEAT).and_then(|seat| seat.client.as_ref());
        let late = late.map_or(0, |client| client.snapshot().ahead.late_count);
        let wrong = match ahead.past.is_there(&self.server.tree) {
            Err(why) => Some(format!("the server has not what the program was told: {why}")),
            Ok(()) if ahead.has_unclosed() => None,
            Ok(()) => ahead.past.is_there(&on_disk).err().map(|why| format!("on the server's disk {why}")),
        };
        let wrong = wrong.or((needed > 0).then(|| format!("{needed} changes are still in the journal")));
        if let Some(wrong) = wrong.or((late > 0).then(|| format!("{late} changes failed late"))) {
            self.fail(wrong);
        }
    }

    fn is_settled_ahead(&self) -> bool {
        let is_done = self.ahead.as_ref().is_some_and(|ahead| {
            ahead.is_over || ahead.is_idle() && ahead.left.is_none() && ahead.bringing.is_none()
        });
        let seat = self.seats.get(SEAT);
        let is_over = self.ahead.as_ref().is_some_and(|ahead| ahead.is_over);
        is_done
            && (is_over
                || self.server.is_idle() && seat.is_some_and(|seat| !seat.is_down && seat.is_settled()))
    }

    fn settle_ahead(&mut self) {
        let until = self.now + SETTLED_WITHIN;
        while !self.is_settled_ahead() && self.step() {
            if self.now > until {
                let (seat, ahead) = (self.seats.get(SEAT), &self.ahead);
                let shown = (seat.map(|seat| seat.shown()), ahead.as_ref().map(Ahead::shown));
                let jobs = self.server.sessions.jobs();
                return self
                    .fail(format!("what is under way never ends: {jobs} jobs at the server, {shown:?}"));
            }
        }
    }

    /// Whether what the program waits for comes at all.
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

    /// Files that were written and not closed; what of it the server has nobody said.
    fn has_unclosed(&self) -> bool {
        !self.opened.is_empty()
    }

    fn looked(&mut self, path: &TreePath, answer: Answer) -> Result<(), String> {
        let there = self.past.now().and_then(|now| now.get(path));
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
        let seen = self.past.now().and_then(|now| now.get(path)).ok_or("it is not there")?;
        let is_size = seen.kind != Kind::File || seen.data.len() as u64 == stat.size;
        let is_so = seen.kind == stat.kind && is_size && seen.is_like(stat.mode, stat.nlink);
        if is_so { Ok(()) } else { Err(format!("{stat:?} is shown of {seen:?}")) }
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
            let now = self.past.now().ok_or("there is nothing")?;
            let in_it = now.keys().filter_map(|path| path.split_last()).filter(|(dir, _)| dir == path);
            let wanted: BTreeSet<Vec<u8>> = in_it.map(|(_, name)| name.to_vec()).collect();
            if found != wanted {
                return Err(format!("{found:?} is listed of {wanted:?}"));
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
        let id = self.past.now().and_then(|now| now.get(path)).map(|seen| seen.id);
        let task = self.task.as_mut().ok_or("nobody opens it")?;
        let node = node.or_else(|| task.node(path)).ok_or("nobody looked it up")?;
        task.open = Some(Open { node, handle, id: id.ok_or("it is not there")? });
        Ok(())
    }

    fn is_read(&self, data: &[u8]) -> Result<(), String> {
        let open = self.task.as_ref().and_then(|task| task.open).ok_or("nothing is open")?;
        let Some(path) = self.past.path_of(open.id) else { return Ok(()) };
        let wanted = self.past.now().and_then(|now| now.get(path)).map(|seen| seen.data.clone());
        match wanted {
            Some(wanted) if wanted == data => Ok(()),
            wanted => Err(format!(
                "{path:?}: {} bytes are read, of {:?}, and they are others",
                data.len(),
                wanted.map(|wanted| wanted.len())
            )),
        }
    }

    fn is_closed(&mut self) {
        let Some(task) = &self.task else { return };
        if let Some(open) = task.open {
            self.past.closed(open.id, task.is_journaled);
        }
    }

    /// A change: it is done, or refused for the same reason.
    fn changed(&mut self, step: &Step, answer: Answer) -> Result<(), String> {
        let open = self.task.as_ref().and_then(|task| task.open);
        let path = open.and_then(|open| self.past.path_of(open.id)).cloned();
        let Some(request) = step.request(path.as_ref()) else {
            return Err(format!("it is answered with {}", cut_short(&answer)));
        };
        let expected = self.past.makes(request);
        match (step, answer, expected) {
            (Step::Create(path), Answer::Created(entry, handle, _), Ok(())) => {
                self.opens(path, handle, Some(entry.node))
            }
            (Step::Mkdir(_) | Step::Symlink(_) | Step::Link(..), Answer::Entry(_), Ok(()))
            | (Step::Remove(..) | Step::Rename(..), Answer::Done, Ok(()))
            | (Step::Mode(..) | Step::Cut(..), Answer::Attr(..), Ok(())) => Ok(()),
            (Step::Write(_, data), Answer::Count(count), Ok(())) if count as usize == data.len() => Ok(()),
            (_, Answer::Fail(errno), Err(expected)) if errno == expected => Ok(()),
            (_, answer, expected) => Err(format!("{}, and not {expected:?}", cut_short(&answer))),
        }
    }
}

fn cut_short(answer: &Answer) -> String {
    match answer {
        Answer::Data(data) => format!("{} bytes", data.len()),
        other => format!("{other:?}").chars().take(200).collect(),
    }
}
