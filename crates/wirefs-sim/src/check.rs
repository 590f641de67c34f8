//! Checks that an observation was possible: it must be a state of the tree between the call and the answer, within the mode's window, plus
//! the client's own changes that the server does not have yet.

mod failure;
mod kernel;

use crate::program::own::{OwnChange, View};
use crate::program::{Busy, NAMES, Place};
use crate::truth::Observation;
use crate::world::World;
use std::time::Duration;
use wirefs_client::call::{Handle, TreeNodeId};
use wirefs_op::{FileId, Kind, Stat, Time};

/// Bound on own changes of one file whose loss is uncertain: all combinations are tried.
const OPEN_ENDS_MAX: usize = 6;
/// The maximum duration of a call, without faults and with them.
const PATIENCE_CALM: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(240);

impl World {
    /// Returns what a client may see from a time until now.
    pub(crate) fn observation(&self, index: usize, from: Time) -> Observation {
        let host = self.hosts.get(index);
        let window = host.map_or(Duration::ZERO, |host| host.config.mode.window());
        // The client's clock may be slow.
        let window = window + window / 50;
        // The window begins at the answer.
        let window =
            if window.is_zero() { window } else { window + Duration::from_micros(self.plan.kernel.1) };
        let kernel = Duration::from_micros(self.plan.kernel.1);
        let back = |span: Duration| Time(from.0.saturating_sub(span.as_nanos() as u64));
        Observation {
            host: index,
            life: host.map_or(0, |host| host.life),
            from: back(window),
            to: self.now,
            answered_by: back(kernel),
            takes_leases: host.is_some_and(|host| host.takes_leases()),
            outside: self.plan.external_delay_max(),
            locked: None,
        }
    }

    pub(crate) fn check_meaning(
        &mut self,
        index: usize,
        from: Time,
        place: &Place,
        meaning: Option<FileId>,
        how: &str,
    ) {
        self.counts.checks += 1;
        let observation = self.observation(index, from);
        let possible = self.truth.meanings(&observation, place.dir, place.name);
        if !possible.contains(&meaning) {
            let changed = self.truth.last_change(place.dir, place.name);
            self.fail(format!(
                "client {index}: {:?} in directory {} is {} {how}; since {} it was one of {possible:?}, changed last {changed:?}",
                String::from_utf8_lossy(place.name),
                place.dir.ino,
                meaning.map_or("not there".into(), |id| format!("file {}", id.ino)),
                observation.from.0 / 1_000_000,
            ));
        }
    }

    /// Checks that a successful operation of a client was applied.
    pub(crate) fn check_done(
        &mut self,
        index: usize,
        busy: &Busy,
        place: &Place,
        is_it: impl Fn(Option<FileId>) -> bool,
    ) {
        self.counts.checks += 1;
        let observation = Observation { from: busy.began, ..self.observation(index, busy.began) };
        let meanings = self.truth.meanings(&observation, place.dir, place.name);
        if !meanings.into_iter().any(is_it) {
            self.fail(format!("client {index}: {:?} was not done", busy.operation));
        }
    }

    /// Checks that each name is listed once, with a possible meaning.
    pub(crate) fn check_listing(
        &mut self,
        index: usize,
        from: Time,
        dir: FileId,
        listed: &[(Vec<u8>, FileId)],
    ) {
        for name in NAMES {
            let mut found = listed.iter().filter(|(listed, _)| listed == name).map(|(_, id)| *id);
            let meaning = found.next();
            if found.next().is_some() {
                return self.fail(format!("client {index}: a name is listed twice in directory {}", dir.ino));
            }
            let place = Place { node: wirefs_client::call::ROOT, dir, name };
            self.check_meaning(index, from, &place, meaning, "in a listing");
        }
    }

    /// Checks the attributes of a file.
    pub(crate) fn check_stat(&mut self, index: usize, from: Time, stat: &Stat) {
        if stat.kind != Kind::File {
            return;
        }
        let shown = format!("mode {:o}, {} bytes", stat.mode, stat.size);
        self.check_file(index, from, stat.id, &shown, |view| {
            view.data.len() as u64 == stat.size && view.mode == stat.mode
        });
    }

    /// Checks data that was read from a file.
    pub(crate) fn check_data(
        &mut self,
        index: usize,
        from: Time,
        node: TreeNodeId,
        (offset, count): (u64, u64),
        data: &[u8],
    ) {
        let Some(host) = self.hosts.get(index) else { return };
        let Some((file, _)) = host.program.nodes.get(&node).copied() else { return };
        let shown = format!("at {offset} {:?}", runs(data));
        self.check_file(index, from, file, &shown, |view| {
            let start = view.data.len().min(offset as usize);
            let end = view.data.len().min((offset + count) as usize);
            view.data.get(start..end) == Some(data)
        });
    }

    fn check_file(
        &mut self,
        index: usize,
        from: Time,
        file: FileId,
        shown: &str,
        is_so: impl Fn(&View) -> bool,
    ) {
        self.counts.checks += 1;
        let mut observation = self.observation(index, from);
        // The last known version of an unreachable file may be read.
        if self.truth.is_unsteady(file) {
            observation.from = Time(0);
        }
        let Some(host) = self.hosts.get(index) else { return };
        let locked = host.program.locked.get(&file).filter(|locked| locked.answered <= from);
        observation.locked = locked.map(|locked| locked.granted).filter(|_| !self.truth.is_unsteady(file));
        let own: Vec<&OwnChange> =
            host.program.own.iter().filter(|own| own.file == file && !own.failed).collect();
        let is_shaky = |own: &OwnChange| {
            own.done.is_none_or(|done| done >= from)
                || host.was_disconnected_since(own.began)
                || self.truth.is_unsteady(file)
        };
        let is_possible = self.truth.forms(&observation, file).iter().any(|step| {
            let missing = |own: &&&OwnChange| own.applied.is_none_or(|applied| applied > step.state);
            let missing: Vec<&OwnChange> = own.iter().filter(missing).copied().collect();
            let open: Vec<usize> =
                (0..missing.len()).filter(|at| missing.get(*at).is_some_and(|own| is_shaky(own))).collect();
            open.len() > OPEN_ENDS_MAX
                || (0..1_u32 << open.len()).any(|chosen| {
                    let mut view = View::of(&step.value);
                    for (at, own) in missing.iter().enumerate() {
                        let end = open.iter().position(|open| *open == at);
                        if end.is_none_or(|end| chosen >> end & 1 == 1) {
                            view.apply(&own.edit);
                        }
                    }
                    is_so(&view)
                })
        });
        if !is_possible {
            let forms: Vec<String> = self
                .truth
                .forms(&observation, file)
                .iter()
                .map(|step| {
                    let object = &step.value;
                    let at = step.at.0 / 1_000_000;
                    format!("at {at} mode {:o} {:?} by {:?}", object.stat.mode, runs(&object.data), step.by)
                })
                .collect();
            let missing: Vec<u64> =
                own.iter().filter(|own| own.applied.is_none()).map(|own| own.began.0 / 1_000_000).collect();
            self.fail(format!(
                "client {index}: file {} is {shown}, without the own changes of {missing:?}; since {} it was one of {forms:?}",
                file.ino,
                observation.from.0 / 1_000_000
            ));
        }
    }

    /// Checks that data written before a successful sync is at the server, unless the program got an error.
    pub(crate) fn check_synced(&mut self, index: usize, from: Time, node: TreeNodeId, handle: Handle) {
        self.counts.checks += 1;
        let Some(host) = self.hosts.get(index).filter(|host| host.program.writes(handle)) else { return };
        let Some((file, _)) = host.program.nodes.get(&node).copied() else { return };
        let is_missing = |own: &&OwnChange| {
            let is_before = own.done.is_some_and(|done| done <= from);
            own.file == file && is_before && !own.failed && !own.may_be_lost && own.applied.is_none()
        };
        if let Some(own) = host.program.own.iter().find(is_missing) {
            let (ino, began) = (file.ino, own.began.0 / 1_000_000);
            self.fail(format!(
                "client {index}: file {ino} was synced, and the server lacks the change at {began}"
            ));
        }
    }

    /// Checks that no call is pending for too long.
    pub(crate) fn check_patience(&mut self, index: usize) {
        let most = if self.plan.faults.is_calm() { PATIENCE_CALM } else { PATIENCE };
        // Without a deadline, a call may wait as long as faults last.
        if !self.plan.has_deadline() && !self.plan.faults.is_calm() {
            return;
        }
        let now = self.now;
        let Some(host) = self.hosts.get(index) else { return };
        let stuck = host.program.busy().find(|busy| now.since(busy.began) > most);
        if let Some(busy) = stuck {
            let text = format!("client {index}: {:?} is never answered", busy.operation);
            self.fail(text);
        }
    }
}

/// Describes data as runs of equal bytes; each write has three bytes of its own.
fn runs(data: &[u8]) -> Vec<String> {
    let mut runs: Vec<(&[u8], usize)> = Vec::new();
    for piece in data.chunks(3) {
        match runs.last_mut() {
            Some((last, count)) if *last == piece => *count += 1,
            _ => runs.push((piece, 1)),
        }
    }
    runs.iter().take(12).map(|(piece, count)| format!("{piece:02x?}x{count}")).collect()
}
