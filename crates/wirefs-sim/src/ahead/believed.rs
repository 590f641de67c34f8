//! The steps that the program believes in, and those that may be lost.

use crate::server::plain::serve;
use crate::truth::Observer;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_model::ModelTree;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Kind, Reply, Request, TreePath};
use wirefs_server::{SessionKey, Tree};

const PROGRAM: SessionKey = SessionKey(7);

/// An object at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectImage {
    pub(crate) id: FileId,
    pub(crate) kind: Kind,
    mode: u32,
    nlink: u32,
    pub(crate) data: Bytes,
}

impl ObjectImage {
    /// Returns whether a report of the object may have these attributes.
    pub(crate) fn is_like(&self, mode: u32, nlink: u32) -> bool {
        let is_mode = self.kind == Kind::Symlink || self.mode == mode & 0o7777;
        is_mode && (self.kind == Kind::Directory || self.nlink == nlink)
    }
}

/// A whole tree.
pub(crate) type TreeImage = BTreeMap<TreePath, ObjectImage>;

/// Returns the contents of a tree.
pub(crate) fn tree_image(tree: &ModelTree) -> TreeImage {
    let mut observer = Observer::new(tree);
    let tree_image = paint(&mut observer, tree);
    observer.ends(tree);
    tree_image
}

fn paint(observer: &mut Observer, tree: &ModelTree) -> TreeImage {
    let snapshot = observer.observe(tree);
    let mut tree_image = TreeImage::new();
    for (dir, names) in &snapshot.names {
        let Some(path) = snapshot.paths.get(dir) else { continue };
        for (name, id) in names {
            let (Some(path), Some(object)) = (path.join(name), snapshot.objects.get(id)) else { continue };
            let stat = object.stat;
            // Modes of symbolic links and link counts of directories are not compared.
            let mode = if stat.kind == Kind::Symlink { 0 } else { stat.mode };
            let nlink = if stat.kind == Kind::Directory { 0 } else { stat.nlink };
            let data = if stat.kind == Kind::Directory { Bytes::new() } else { object.data.clone() };
            tree_image.insert(path, ObjectImage { id: *id, kind: stat.kind, mode, nlink, data });
        }
    }
    tree_image
}

/// Returns the first path of each object: the names that belong to one object.
fn firsts(tree_image: &TreeImage) -> Vec<&TreePath> {
    let mut first = BTreeMap::new();
    tree_image.iter().map(|(path, seen)| *first.entry(seen.id).or_insert(path)).collect()
}

/// Describes the difference of two trees in names, kinds and attributes.
fn names_differ(has: &TreeImage, wanted: &TreeImage) -> Option<String> {
    let paths: BTreeSet<&TreePath> = has.keys().chain(wanted.keys()).collect();
    for path in paths {
        match (has.get(path), wanted.get(path)) {
            (Some(has), Some(wanted))
                if (has.kind, has.mode, has.nlink) == (wanted.kind, wanted.mode, wanted.nlink) => {}
            (has, wanted) => {
                let shown = |seen: Option<&ObjectImage>| {
                    seen.map(|seen| format!("{:?} {:o} {} links", seen.kind, seen.mode, seen.nlink))
                };
                return Some(format!("{path:?} is {:?} and not {:?}", shown(has), shown(wanted)));
            }
        }
    }
    (firsts(has) != firsts(wanted)).then(|| "names are not those of the same objects".to_owned())
}

/// The steps that the program believes in.
pub(crate) struct BelievedSteps {
    /// The tree that the program believes in.
    pub(crate) tree: ModelTree,
    observer: Observer,
    /// The tree after each step; the first is the initial one.
    steps: Vec<TreeImage>,
    /// All up to this step is durable at the server, or promised as such.
    safe: usize,
    /// Files that are written and not closed, with the step of the first write.
    unclosed: BTreeMap<FileId, usize>,
    /// The last step that wrote each file.
    written: BTreeMap<FileId, usize>,
    /// The server has received all up to this step, as far as it was promised.
    closed: usize,
    /// After a crash of the client: the server may have all up to one of these steps, and files are at least as they were closed.
    ends: Option<(usize, usize)>,
    /// The first of these steps if the server's memory is lost too.
    ends_without_server: usize,
}

impl BelievedSteps {
    pub(crate) fn new(tree: ModelTree) -> BelievedSteps {
        let mut observer = Observer::new(&tree);
        let steps = vec![paint(&mut observer, &tree)];
        BelievedSteps {
            tree,
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

    /// Returns the tree that the program believes in.
    pub(crate) fn now(&self) -> Option<&TreeImage> {
        self.steps.last()
    }

    /// Returns the number of the next step.
    pub(crate) fn next_step(&self) -> usize {
        self.steps.len()
    }

    /// Returns a path of an object.
    pub(crate) fn path_of(&self, id: FileId) -> Option<&TreePath> {
        self.now()?.iter().find(|(_, seen)| seen.id == id).map(|(path, _)| path)
    }

    /// Applies a change to the tree that the program believes in. Returns its result.
    pub(crate) fn makes(&mut self, request: Request) -> Result<(), Errno> {
        let written = match &request {
            Request::Put(put) if put.create.is_none() => self.now().and_then(|now| now.get(&put.target.path)),
            _ => None,
        };
        let written = written.filter(|seen| seen.kind == Kind::File).map(|seen| seen.id);
        let is_data = matches!(&request, Request::Put(put) if !put.data.0.is_empty());
        // Attaching again changes nothing.
        let _attached = self.tree.attach(PROGRAM, &TreePath::root());
        if let Some(Reply::Error(error)) = serve(&self.tree, PROGRAM, request).into_iter().next() {
            return Err(error.errno);
        }
        let step = self.steps.len();
        if let Some(id) = written {
            self.written.insert(id, step);
            if is_data {
                self.unclosed.entry(id).or_insert(step);
            }
        }
        self.steps.push(paint(&mut self.observer, &self.tree));
        Ok(())
    }

    /// Returns whether the tree would reject a change.
    pub(crate) fn refuses(&self, request: Request) -> bool {
        let copy = self.tree.copy();
        let _attached = copy.attach(PROGRAM, &TreePath::root());
        matches!(serve(&copy, PROGRAM, request).first(), Some(Reply::Error(_)))
    }

    /// Records that the program has closed a file.
    pub(crate) fn closed(&mut self, id: FileId, is_journaled: bool) {
        self.unclosed.remove(&id);
        let through = self.written.get(&id).copied().unwrap_or_default();
        let least = if is_journaled { &mut self.safe } else { &mut self.closed };
        *least = through.max(*least);
    }

    /// Records that all up to now survives any power loss.
    pub(crate) fn is_safe(&mut self, id: Option<FileId>) {
        match id {
            Some(id) => drop(self.unclosed.remove(&id)),
            None => self.unclosed.clear(),
        }
        let last = self.steps.len() - 1;
        self.safe = last;
    }

    /// Records that the server's machine lost the changes that were not durable.
    pub(crate) fn server_lost_power(&mut self) {
        self.closed = 0;
        if let Some((least, _)) = &mut self.ends {
            *least = self.ends_without_server.min(*least);
        }
    }

    /// Records the death of the client, possibly during a change. `lost`: the first step that its journal lacks. Returns whether that change
    /// would fail.
    pub(crate) fn client_is_gone(&mut self, lost: Option<usize>, live_replay: Option<Request>) -> bool {
        let last = self.steps.len() - 1;
        let journaled = lost.map_or(last, |lost| (lost.saturating_sub(1)).min(last)).max(self.safe);
        let least = journaled.max(self.closed);
        self.ends_without_server = journaled;
        let would_fail = live_replay.is_some_and(|request| self.makes(request).is_err());
        self.ends = Some((least, self.steps.len() - 1));
        would_fail
    }

    /// Checks the tree after the dead mount's journal was delivered. The program goes on from there.
    pub(crate) fn is_recovered(&mut self, tree: &ModelTree) -> Result<(), String> {
        let has = tree_image(tree);
        let (least, most) = self.ends.take().unwrap_or((self.steps.len() - 1, self.steps.len() - 1));
        let mut why = Err("there is no step".to_owned());
        for step in (least..=most).rev() {
            why = self.is_at(&has, step, most);
            if why.is_ok() {
                break;
            }
        }
        why.map_err(|why| {
            format!("the tree is that of no step from {least} to {most}: at the first of them {why}")
        })?;
        *self = BelievedSteps::new(tree.copy());
        Ok(())
    }

    fn is_at(&self, has: &TreeImage, step: usize, most: usize) -> Result<(), String> {
        let wanted = self.steps.get(step).ok_or("there is no such step")?;
        if let Some(why) = names_differ(has, wanted) {
            return Err(why);
        }
        for (path, seen) in has {
            let Some(known) = wanted.get(path) else { continue };
            let from = self.unclosed.get(&known.id).map_or(step, |first| step.min(first.saturating_sub(1)));
            let believed = if self.unclosed.contains_key(&known.id) { most } else { step };
            let mut of_file = self.steps.iter().take(believed + 1).skip(from);
            let is_it = |tree_image: &TreeImage| {
                tree_image.values().any(|then| then.id == known.id && then.data == seen.data)
            };
            if !of_file.any(is_it) {
                return Err(format!("{path:?} {}", contents_differ(&seen.data, &known.data)));
            }
        }
        Ok(())
    }

    /// Checks that the server has exactly the tree that the program believes in.
    pub(crate) fn is_there(&self, tree: &ModelTree) -> Result<(), String> {
        let last = self.steps.len() - 1;
        self.is_at(&tree_image(tree), last, last)
    }

    /// Checks that a synced file would survive a power loss of the server's machine now.
    pub(crate) fn is_on_disk(&self, tree: &ModelTree, id: FileId) -> Result<(), String> {
        let Some(path) = self.path_of(id) else { return Ok(()) };
        let on_disk = tree_image(&tree.after_power_cut(BootId(0), &mut |_| 0));
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
