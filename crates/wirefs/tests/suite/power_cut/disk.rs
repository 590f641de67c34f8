//! A directory with a log of changes, and the possible states of its disk at a moment: all changes covered by a
//! completed sync, and any subset of the others. Names reach the disk in order, contents in any order by sectors.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Mutex;
use wirefs_hostfs::HostTree;
use wirefs_op::message::attach::Watch;
use wirefs_op::message::commit::CommitScope;
use wirefs_op::message::put::PutMode;
use wirefs_op::{Errno, FileId, Reply, Request, Stat, TreePath};
use wirefs_server::{
    Attached, ExternalChange, ObserveChange, Parked, PriorState, Replies, SessionKey, Stopped, Touched, Tree,
};
use wirefs_virtual::Dice;

const SECTOR: usize = 512;

/// A point between two starts or ends of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(usize);

/// The effect of a request.
#[derive(Clone, Debug)]
enum Effect {
    Wrote(FileId, u64, Vec<u8>),
    Sized(FileId, u64),
    Named(TreePath, Option<FileId>),
    /// Contents of this object; `None`: of all objects.
    Synced(Option<FileId>),
    SyncedNames,
}

#[derive(Clone, Debug)]
struct Done {
    began: Moment,
    ended: Moment,
    effect: Effect,
    is_barrier: bool,
}

/// The effects, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    moments: usize,
    running: usize,
    done: Vec<Done>,
}

/// The tree.
pub(super) struct Disk {
    tree: HostTree,
    log: Mutex<Log>,
}

/// The replies of a request.
struct RecordedReplies<'a> {
    replies: &'a mut dyn Replies,
    has_failed: bool,
    made: Option<FileId>,
    disk: &'a Disk,
    /// Before the reply was sent.
    ended: Option<Moment>,
}

impl Replies for RecordedReplies<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        match &reply {
            Reply::Error(_) => self.has_failed = true,
            Reply::Put(put) => self.made = put.stat.map(|stat| stat.id),
            _ => {}
        }
        // The receiver of the reply may rely on it before this thread continues.
        self.ended.get_or_insert_with(|| self.disk.step(0));
        self.replies.send(reply)
    }
    fn is_stopped(&self) -> bool {
        self.replies.is_stopped()
    }
    fn release_slot(&mut self) {
        self.replies.release_slot();
    }
    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        let output = self.replies.touch(touched);
        self.has_failed |= output.is_err();
        output
    }
    fn record_prior_state(&mut self, find: &mut dyn FnMut() -> Option<PriorState>) {
        self.replies.record_prior_state(find);
    }
    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.replies.grant(stats);
    }
    fn grant_names(&mut self, dir: FileId) -> bool {
        self.replies.grant_names(dir)
    }
    fn changed(&mut self, touched: &Touched, before: Option<u64>, after: Option<u64>) {
        self.replies.changed(touched, before, after);
    }
    fn wait(&mut self) {
        self.replies.wait();
    }
}

/// Returns the effects of a completed request; `made`: the object of a Tput.
fn effects(request: &Request, made: Option<FileId>) -> Vec<Effect> {
    match request {
        Request::Put(put) => {
            let Some(id) = made else { return Vec::new() };
            let mut effects = Vec::new();
            if put.mode.has(PutMode::CREATE) {
                effects.push(Effect::Named(put.target.path.clone(), Some(id)));
            }
            if put.mode.has(PutMode::STAT) {
                effects.extend(put.set.size.map(|size| Effect::Sized(id, size)));
            }
            if put.mode.has(PutMode::DATA) {
                effects.push(Effect::Wrote(id, put.offset, put.data.0.to_vec()));
            }
            if put.mode.has(PutMode::SYNC) {
                effects.extend([Effect::Synced(Some(id))]);
                effects.extend(put.target.path.is_root().then_some(Effect::SyncedNames));
            }
            effects
        }
        Request::Remove(remove) => vec![Effect::Named(remove.place.path.clone(), None)],
        Request::Commit(commit) => match commit.scope {
            CommitScope::Filesystem => vec![Effect::Synced(None), Effect::SyncedNames],
            CommitScope::Data | CommitScope::File if commit.target.path.is_root() => {
                vec![Effect::SyncedNames]
            }
            CommitScope::Data | CommitScope::File => {
                commit.target.id.map(|id| Effect::Synced(Some(id))).into_iter().collect()
            }
        },
        _ => Vec::new(),
    }
}

impl Tree for Disk {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        self.tree.attach(session, path)
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        let mut recorded =
            RecordedReplies { replies, has_failed: false, made: None, disk: self, ended: None };
        let began = self.step(1);
        self.tree.serve(session, request.clone(), &mut recorded);
        let RecordedReplies { has_failed, made, ended, .. } = recorded;
        let ended = ended.unwrap_or_else(|| self.step(0));
        let is_barrier = matches!(&request, Request::Put(put) if put.is_barrier());
        let mut log = self.log.lock().unwrap();
        log.running -= 1;
        if !has_failed {
            let done = effects(&request, made).into_iter();
            log.done.extend(done.map(|effect| Done { began, ended, effect, is_barrier }));
        }
    }

    fn end(&self, session: SessionKey) {
        self.tree.end(session);
    }
    fn observe(&self, tell: ObserveChange) {
        self.tree.observe(tell);
    }
    fn verify(&self, id: FileId, name: Option<&[u8]>, tell: &mut dyn FnMut(ExternalChange)) {
        self.tree.verify(id, name, tell);
    }
    fn trim_watches(&self, known: &dyn Fn(&[FileId]) -> Vec<bool>) -> Option<String> {
        self.tree.trim_watches(known)
    }
    fn leases(&self) -> Option<Watch> {
        self.tree.leases()
    }
}

impl Disk {
    pub(super) fn of(tree: HostTree) -> Disk {
        Disk { tree, log: Mutex::default() }
    }

    fn step(&self, begun: usize) -> Moment {
        let mut log = self.log.lock().unwrap();
        log.moments += 1;
        log.running += begun;
        Moment(log.moments)
    }

    pub(super) fn now(&self) -> Moment {
        self.step(0)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.log.lock().unwrap().running == 0
    }

    pub(super) fn log(&self) -> Log {
        self.log.lock().unwrap().clone()
    }
}

impl Log {
    /// Returns the number of barriers of files.
    pub(super) fn barriers(&self) -> usize {
        let of_file = |done: &&Done| done.is_barrier && matches!(done.effect, Effect::Synced(Some(_)));
        self.done.iter().filter(of_file).count()
    }

    pub(super) fn moment(&self, dice: &mut Dice) -> Moment {
        Moment(1 + dice.below(self.moments as u64) as usize)
    }

    /// Returns whether the disk must have an effect: a sync started after it, and has completed.
    fn is_safe(&self, done: &Done, at: Moment) -> bool {
        self.done.iter().any(|sync| {
            let covers = match (&done.effect, &sync.effect) {
                (Effect::Wrote(id, ..) | Effect::Sized(id, _), Effect::Synced(of)) => {
                    of.is_none_or(|of| of == *id)
                }
                (Effect::Named(..), Effect::SyncedNames) => true,
                _ => false,
            };
            covers && sync.began >= done.ended && sync.ended <= at
        })
    }

    /// Creates a directory with a possible state of the disk at a moment.
    pub(super) fn leave(&self, at: Moment, dice: &mut Dice, dir: &Path) {
        let mut begun: Vec<&Done> = self.done.iter().filter(|done| done.began <= at).collect();
        begun.sort_by_key(|done| done.began);
        let named: Vec<&Done> =
            begun.iter().copied().filter(|done| matches!(done.effect, Effect::Named(..))).collect();
        let safe = named.iter().rposition(|done| self.is_safe(done, at)).map_or(0, |last| last + 1);
        let kept = safe + dice.below((named.len() - safe) as u64 + 1) as usize;
        let mut names = BTreeMap::new();
        for done in &named[..kept] {
            let Effect::Named(path, id) = &done.effect else { unreachable!("only names") };
            names.insert(path.clone(), *id);
        }
        for (path, id) in names.iter().filter_map(|(path, id)| Some((path, (*id)?))) {
            let name = str::from_utf8(path.as_bytes()).unwrap();
            let file = File::create(dir.join(name)).unwrap();
            // One state with all unsynced data, one with none, and those in between.
            let part = dice.below(5);
            for done in &begun {
                let is_kept = |dice: &mut Dice| self.is_safe(done, at) || dice.chance(part, 4);
                match &done.effect {
                    Effect::Sized(of, size) if *of == id && is_kept(dice) => file.set_len(*size).unwrap(),
                    Effect::Wrote(of, offset, data) if *of == id => {
                        for (index, sector) in data.chunks(SECTOR).enumerate() {
                            if is_kept(dice) {
                                file.write_all_at(sector, offset + (index * SECTOR) as u64).unwrap();
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        // The files are complete before any program reads them.
        fs::File::open(dir).unwrap().sync_all().unwrap();
    }
}
