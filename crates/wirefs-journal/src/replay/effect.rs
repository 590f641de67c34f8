//! The effect of a change: the names that it binds, and the objects that it is about.

use super::ReplayFault;
use super::names::{Binding, Inode, Key, Namespace, ROOT};
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::rename::{EXCHANGE, NOREPLACE, Trename};
use wirefs_op::message::target::{Place, Target};
use wirefs_op::{FileId, Kind, Request, TreePath};

/// The effect of one change, without its data.
#[derive(Clone, Debug, Default)]
pub(super) struct Effect {
    /// The bindings of names afterwards.
    pub(super) names: Vec<(Key, Binding)>,
    /// The objects that it names by id, in the order of [`Request::ids_mut`].
    pub(super) ids: [Option<Inode>; 2],
    /// The object whose contents or attributes it modifies.
    pub(super) of: Option<Inode>,
    /// The object that it creates.
    pub(super) makes: Option<Inode>,
    /// The object that it reads.
    pub(super) reads: Option<Inode>,
    /// The change is useless: its object is gone.
    pub(super) is_void: bool,
}

impl Effect {
    /// Replaces merged objects by the ones that they turned out to be.
    pub(super) fn settle(&mut self, names: &Namespace) {
        let Effect { names: named, ids, of, makes, reads, .. } = self;
        let bindings = named.iter_mut().filter_map(|(_, binding)| match binding {
            Binding::Object(inode) => Some(inode),
            Binding::Unknown | Binding::Absent => None,
        });
        let inodes = ids.iter_mut().flatten().chain(of).chain(makes).chain(reads);
        bindings.chain(inodes).for_each(|inode| *inode = names.same(*inode));
    }
}

/// Computes the effect of a change after all earlier ones. `made`: the reported id of the object that it creates.
pub(super) fn read(
    names: &mut Namespace,
    number: u64,
    request: &Request,
    made: Option<FileId>,
) -> Result<Effect, ReplayFault> {
    match request {
        Request::Put(put) if put.mode.has(PutMode::CREATE) => create(names, number, put, made),
        Request::Put(put) => {
            let effect = target(names, &put.target)?;
            // The name is removed when the file is closed.
            if put.mode.has(PutMode::REMOVE) { unnamed(names, effect, &put.target.path) } else { Ok(effect) }
        }
        Request::Remove(remove) => {
            let (key, removed) = held(names, &remove.place)?;
            if remove.directory {
                names.is_directory(removed);
                if names.now.has_names_in(removed) {
                    return Err(ReplayFault::Contradiction);
                }
            }
            let dir = key.0;
            Ok(Effect { names: vec![(key, Binding::Absent)], ids: [Some(dir), None], ..Effect::default() })
        }
        Request::Rename(rename) => renamed(names, rename),
        Request::Link(link) => {
            let effect = target(names, &link.target)?;
            let key = names.key(&link.to.path, link.to.dir)?;
            absent(names, &key)?;
            let Some(inode) = effect.of else { return Ok(effect) };
            let ids = [Some(inode), Some(key.0)];
            Ok(Effect { names: vec![(key, Binding::Object(inode))], ids, ..Effect::default() })
        }
        Request::Allocate(allocate) => target(names, &allocate.target),
        Request::Xattr(xattr) => target(names, &xattr.target),
        Request::Copy(copy) => {
            let (from, to) = (target(names, &copy.from)?, target(names, &copy.to)?);
            let is_void = from.is_void || to.is_void;
            Ok(Effect { ids: [from.of, to.of], of: to.of, reads: from.of, is_void, ..Effect::default() })
        }
        Request::Version(_)
        | Request::Attach(_)
        | Request::Flush(_)
        | Request::Ping(_)
        | Request::Get(_)
        | Request::Statfs(_)
        | Request::Lock(_)
        | Request::Seek(_)
        | Request::Commit(_)
        | Request::Find(_)
        | Request::Recalled(_)
        | Request::Number(_) => Ok(Effect { is_void: true, ..Effect::default() }),
    }
}

fn target(names: &mut Namespace, target: &Target) -> Result<Effect, ReplayFault> {
    // The root's path stands for an object that has lost its name.
    let is_nameless = target.path.is_root() && target.id.is_some_and(|id| names.by_id(id) != Some(ROOT));
    if is_nameless {
        let of = target.id.and_then(|id| names.by_id(id));
        return Ok(Effect { ids: [of, None], of, is_void: of.is_none(), ..Effect::default() });
    }
    let inode = names.walk_to(&target.path, target.id)?;
    Ok(Effect { ids: [target.id.and(Some(inode)), None], of: Some(inode), ..Effect::default() })
}

fn unnamed(names: &mut Namespace, effect: Effect, path: &TreePath) -> Result<Effect, ReplayFault> {
    let Some((parent, name)) = path.split_last() else { return Ok(effect) };
    let key = (names.walk(&parent)?, name.to_vec());
    let is_named = effect.of.is_some_and(|inode| names.now.binding(&key) == Binding::Object(inode));
    let gone = is_named.then_some((key, Binding::Absent));
    Ok(Effect { names: gone.into_iter().collect(), of: None, ..effect })
}

/// Records that the name was absent before the change.
fn absent(names: &mut Namespace, key: &Key) -> Result<(), ReplayFault> {
    match names.now.binding(key) {
        Binding::Absent => Ok(()),
        Binding::Unknown => {
            names.bound_at_start(key, Binding::Absent);
            Ok(())
        }
        Binding::Object(_) => Err(ReplayFault::Contradiction),
    }
}

/// Records that the name existed before the change.
fn held(names: &mut Namespace, place: &Place) -> Result<(Key, Inode), ReplayFault> {
    let key = names.key(&place.path, place.dir)?;
    let inode = names.walk(&place.path)?;
    Ok((key, inode))
}

fn create(
    names: &mut Namespace,
    number: u64,
    put: &Tput,
    made: Option<FileId>,
) -> Result<Effect, ReplayFault> {
    if put.mode.has(PutMode::NAMELESS) {
        let dir = names.walk(&put.target.path)?;
        names.confirm_id(dir, put.target.id)?;
        let inode = names.object(made, Some(number));
        names.is_new(inode);
        return Ok(Effect { ids: [Some(dir), None], makes: Some(inode), ..Effect::default() });
    }
    let key = names.key(&put.target.path, put.target.id)?;
    let ids = [Some(key.0), None];
    // Only changes of an exclusive session are replayed: a name that it knows to be absent is absent.
    let is_new = put.mode.has(PutMode::EXCLUSIVE) || names.now.binding(&key) == Binding::Absent;
    if !put.mode.has(PutMode::EXCLUSIVE) {
        match names.now.binding(&key) {
            // It opened the existing file.
            Binding::Object(inode) => return Ok(Effect { ids, of: Some(inode), ..Effect::default() }),
            // It opened a file that has another name too.
            Binding::Unknown if made.is_some_and(|id| names.old(id).is_some()) => {
                let inode = names.walk_to(&put.target.path, made)?;
                return Ok(Effect { ids, of: Some(inode), ..Effect::default() });
            }
            // It opened or created the file. In both cases the file exists afterwards.
            Binding::Unknown | Binding::Absent => {}
        }
    } else {
        absent(names, &key)?;
    }
    let inode = names.object(made, Some(number));
    if is_new {
        names.is_new(inode);
    }
    if put.create.as_ref().is_some_and(|create| create.kind == Kind::Directory) {
        names.is_directory(inode);
    }
    Ok(Effect { names: vec![(key, Binding::Object(inode))], ids, makes: Some(inode), ..Effect::default() })
}

fn renamed(names: &mut Namespace, rename: &Trename) -> Result<Effect, ReplayFault> {
    let (from, moved) = held(names, &rename.from)?;
    let to = names.key(&rename.to.path, rename.to.dir)?;
    let ids = [Some(from.0), Some(to.0)];
    let after = match rename.flags {
        EXCHANGE => {
            let other = names.walk(&rename.to.path)?;
            vec![(from, Binding::Object(other)), (to, Binding::Object(moved))]
        }
        0 | NOREPLACE => {
            if rename.flags == NOREPLACE {
                absent(names, &to)?;
            }
            // Two names of one object: a rename without effect.
            if names.now.binding(&to) == Binding::Object(moved) {
                return Ok(Effect { ids, is_void: true, ..Effect::default() });
            }
            vec![(from, Binding::Absent), (to, Binding::Object(moved))]
        }
        _ => return Err(ReplayFault::Contradiction),
    };
    Ok(Effect { names: after, ids, ..Effect::default() })
}
