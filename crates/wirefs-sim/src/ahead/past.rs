//! What the program was told, step by step, and what of it may be lost.

use crate::server::plain::serve;
use crate::truth::Observer;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_model::ModelTree;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Kind, Reply, Request, TreePath};
use wirefs_server::{SessionKey, Tree};

const TELLER: SessionKey = SessionKey(7);

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: FileId,
    pub(crate) kind: Kind,
    mode: u32,
    nlink: u32,
    pub(crate) data: Bytes,
}

impl Seen {
    /// Whether it may be shown with these attributes.
    pub(crate) fn is_like(&self, mode: u32, nlink: u32) -> bool {
        let is_mode = self.kind == Kind::Symlink || self.mode == mode & 0o7777;
        is_mode && (self.kind == Kind::Directory || self.nlink == nlink)
    }
}

/// All that there is.
pub(crate) type Picture = BTreeMap<TreePath, Seen>;

/// What a tree has.
pub(crate) fn picture(tree: &ModelTree) -> Picture {
    let mut observer = Observer::new(tree);
    let picture = paint(&mut observer, tree);
    observer.ends(tree);
    picture
}

fn paint(observer: &mut Observer, tree: &ModelTree) -> Picture {
    let snapshot = observer.observe(tree);
    let mut picture = Picture::new();
    for (dir, names) in &snapshot.names {
        let Some(path) = snapshot.paths.get(dir) else { continue };
        for (name, id) in names {
            let (Some(path), Some(object)) = (path.join(name), snapshot.objects.get(id)) else { continue };
            let stat = object.stat;
            // Nobody says what a symbolic link's are, and what of a directory's are its subdirectories.
            let mode = if stat.kind == Kind::Symlink { 0 } else { stat.mode };
            let nlink = if stat.kind == Kind::Directory { 0 } else { stat.nlink };
            let data = if stat.kind == Kind::Directory { Bytes::new() } else { object.data.clone() };
            picture.insert(path, Seen { id: *id, kind: stat.kind, mode, nlink, data });
        }
    }
    picture
}

/// The first path of each object, by path: which names are the same object's.
fn firsts(picture: &Picture) -> Vec<&TreePath> {
    let mut first = BTreeMap::new();
    picture.iter().map(|(path, seen)| *first.entry(seen.id).or_insert(path)).collect()
}

/// How the names, kinds and attributes of two trees differ, but for contents.
fn names_differ(has: &Picture, wanted: &Picture) -> Option<String> {
    let paths: BTreeSet<&TreePath> = has.keys().chain(wanted.keys()).collect();
    for path in paths {
        match (has.get(path), wanted.get(path)) {
            (Some(has), Some(wanted))
                if (has.kind, has.mode, has.nlink) == (wanted.kind, wanted.mode, wanted.nlink) => {}
            (has, wanted) => {
                let shown = |seen: Option<&Seen>| {
                    seen.map(|seen| format!("{:?} {:o} {} links", seen.kind, seen.mode, seen.nlink))
                };
                return Some(format!("{path:?} is {:?} and not {:?}", shown(has), shown(wanted)));
            }
        }
    }
    (firsts(has) != firsts(wanted)).then(|| "names are not those of the same objects".to_owned())
}

/// That.
pub(crate) struct Past {
    /// The tree as the program believes that it is.
    pub(crate) told: ModelTree,
    observer: Observer,
    /// What it was after each step; the first is the beginning.
    steps: Vec<Picture>,
    /// The server's disk has all up to this step, or what is said to be as safe.
    safe: usize,
    /// What is written and not closed: from which step on.
    unclosed: BTreeMap<FileId, usize>,
    /// The last step that wrote each file.
    written: BTreeMap<FileId, usize>,
    /// The server has all up to this step in its memory, as far as a program was promised.
    closed: usize,
    /// After a crash of the client: the steps up to one of these are there, and all files are at least as they were closed.
    ends: Option<(usize, usize)>,
    /// The first of these, where the server's memory is gone too.
    ends_without_server: usize,
}

impl Past {
    pub(crate) fn new(told: ModelTree) -> Past {
        let mut observer = Observer::new(&told);
        let steps = vec![paint(&mut observer, &told)];
        Past {
            told,
            observer,
            steps,
            safe: 0,
            unclosed: BTreeMap::new(),
            written: BTreeMap::new(),
            closed: 0,
            ends: None,
            ends_without_server: 0,
        }
    }

    /// What the program believes now.
    pub(crate) fn now(&self) -> Option<&Picture> {
        self.steps.last()
    }

    /// The number of the step that is made next.
    pub(crate) fn next_step(&self) -> usize {
        self.steps.len()
    }

    /// Where an object has a name.
    pub(crate) fn path_of(&self, id: FileId) -> Option<&TreePath> {
        self.now()?.iter().find(|(_, seen)| seen.id == id).map(|(path, _)| path)
    }

    /// What a change says of the tree that the program believes in, and does to it.
    pub(crate) fn makes(&mut self, request: Request) -> Result<(), Errno> {
        let written = match &request {
            Request::Put(put) if put.create.is_none() => self.now().and_then(|now| now.get(&put.target.path)),
            _ => None,
        };
        let written = written.filter(|seen| seen.kind == Kind::File).map(|seen| seen.id);
        let is_data = matches!(&request, Request::Put(put) if !put.data.0.is_empty());
        // Attached again each time, which changes nothing.
        let _attached = self.told.attach(TELLER, &TreePath::root());
        if let Some(Reply::Error(error)) = serve(&self.told, TELLER, request).into_iter().next() {
            return Err(error.errno);
        }
        let step = self.steps.len();
        if let Some(id) = written {
            self.written.insert(id, step);
            if is_data {
                self.unclosed.entry(id).or_insert(step);
            }
        }
        self.steps.push(paint(&mut self.observer, &self.told));
        Ok(())
    }

    /// Whether it would refuse a change.
    pub(crate) fn refuses(&self, request: Request) -> bool {
        let copy = self.told.copy();
        let _attached = copy.attach(TELLER, &TreePath::root());
        matches!(serve(&copy, TELLER, request).first(), Some(Reply::Error(_)))
    }

    /// A file was closed, and the program was told so.
    pub(crate) fn closed(&mut self, id: FileId, is_journaled: bool) {
        self.unclosed.remove(&id);
        let through = self.written.get(&id).copied().unwrap_or_default();
        let least = if is_journaled { &mut self.safe } else { &mut self.closed };
        *least = through.max(*least);
    }

    /// Everything up to now stays, whoever loses power.
    pub(crate) fn is_safe(&mut self, id: Option<FileId>) {
        match id {
            Some(id) => drop(self.unclosed.remove(&id)),
            None => self.unclosed.clear(),
        }
        let last = self.steps.len() - 1;
        self.safe = last;
    }

    /// The server's machine has lost what its disk did not have.
    pub(crate) fn server_lost_power(&mut self) {
        self.closed = 0;
        if let Some((least, _)) = &mut self.ends {
            *least = self.ends_without_server.min(*least);
        }
    }

    /// The client died, in the midst of a change perhaps. `lost`: of the steps from this one on the journal does not have all.
    /// Tells whether that is one which is refused.
    pub(crate) fn client_is_gone(&mut self, lost: Option<usize>, begun: Option<Request>) -> bool {
        let last = self.steps.len() - 1;
        let journaled = lost.map_or(last, |lost| (lost.saturating_sub(1)).min(last)).max(self.safe);
        let least = journaled.max(self.closed);
        self.ends_without_server = journaled;
        let is_refused = begun.is_some_and(|request| self.makes(request).is_err());
        self.ends = Some((least, self.steps.len() - 1));
        is_refused
    }

    /// The mount that died is brought to its end: is there what has to be? The program goes on from there.
    pub(crate) fn is_recovered(&mut self, tree: &ModelTree) -> Result<(), String> {
        let has = picture(tree);
        let (least, most) = self.ends.take().unwrap_or((self.steps.len() - 1, self.steps.len() - 1));
        let mut why = Err("there are no steps".to_owned());
        for step in (least..=most).rev() {
            why = self.is_at(&has, step, most);
            if why.is_ok() {
                break;
            }
        }
        why.map_err(|why| {
            format!("no step from {least} to {most} is what is there: at the first of them {why}")
        })?;
        *self = Past::new(tree.copy());
        Ok(())
    }

    fn is_at(&self, has: &Picture, step: usize, most: usize) -> Result<(), String> {
        let wanted = self.steps.get(step).ok_or("there is no such step")?;
        if let Some(why) = names_differ(has, wanted) {
            return Err(why);
        }
        for (path, seen) in has {
            let Some(known) = wanted.get(path) else { continue };
            let from = self.unclosed.get(&known.id).map_or(step, |first| step.min(first.saturating_sub(1)));
            let past = if self.unclosed.contains_key(&known.id) { most } else { step };
            let mut of_file = self.steps.iter().take(past + 1).skip(from);
            let is_it = |picture: &Picture| {
                picture.values().any(|then| then.id == known.id && then.data == seen.data)
            };
            if !of_file.any(is_it) {
                return Err(format!("{path:?} {}", contents_differ(&seen.data, &known.data)));
            }
        }
        Ok(())
    }

    /// Whether the server has exactly what the program was told.
    pub(crate) fn is_there(&self, tree: &ModelTree) -> Result<(), String> {
        let last = self.steps.len() - 1;
        self.is_at(&picture(tree), last, last)
    }

    /// Whether a file that was synced would be there although the server's machine lost power just now.
    pub(crate) fn is_on_disk(&self, tree: &ModelTree, id: FileId) -> Result<(), String> {
        let Some(path) = self.path_of(id) else { return Ok(()) };
        let on_disk = picture(&tree.after_power_cut(BootId(0), &mut |_| 0));
        let wanted = self.now().and_then(|now| now.get(path));
        match (on_disk.get(path), wanted) {
            (Some(has), Some(wanted)) if has.data == wanted.data => Ok(()),
            (Some(has), Some(wanted)) => {
                Err(format!("{path:?} {} on the disk", contents_differ(&has.data, &wanted.data)))
            }
            _ => Err(format!("{path:?} is not on the disk")),
        }
    }
}

fn contents_differ(has: &[u8], wanted: &[u8]) -> String {
    let same = has.iter().zip(wanted).take_while(|(has, wanted)| has == wanted).count();
    let some =
        |data: &[u8]| data.get(same..).unwrap_or_default().iter().take(6).copied().collect::<Vec<u8>>();
    format!(
        "has {} bytes and not {}, others from byte {same} on: {:02x?} and not {:02x?}",
        has.len(),
        wanted.len(),
        some(has),
        some(wanted)
    )
}
