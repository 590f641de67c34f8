//! What a change is about: which names it gives to whom, and which objects it is of.

use super::Unlike;
use super::names::{Holder, Key, Names, Node, ROOT};
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::rename::{EXCHANGE, NOREPLACE, Trename};
use wirefs_op::message::target::{Place, Target};
use wirefs_op::{FileId, Kind, Request, TreePath};

/// One change, without its data.
#[derive(Clone, Debug, Default)]
pub(super) struct Deed {
    /// Who has which name from then on.
    pub(super) names: Vec<(Key, Holder)>,
    /// The objects that it names by their ids, as [`Request::ids_mut`] orders them.
    pub(super) ids: [Option<Node>; 2],
    /// The object whose contents or attributes it changes.
    pub(super) of: Option<Node>,
    /// What it makes.
    pub(super) makes: Option<Node>,
    /// What it reads.
    pub(super) reads: Option<Node>,
    /// Nobody has a use for it: what it is about is gone.
    pub(super) is_void: bool,
}

impl Deed {
    /// Names each object by the one that it turned out to be.
    pub(super) fn settle(&mut self, names: &Names) {
        let Deed { names: named, ids, of, makes, reads, .. } = self;
        let holders = named.iter_mut().filter_map(|(_, holder)| match holder {
            Holder::Object(node) => Some(node),
            Holder::Unknown | Holder::Nobody => None,
        });
        let nodes = ids.iter_mut().flatten().chain(of).chain(makes).chain(reads);
        holders.chain(nodes).for_each(|node| *node = names.same(*node));
    }
}

/// What a change does, when all before it are done. `made`: the id that it was told of what it makes.
pub(super) fn read(
    names: &mut Names,
    number: u64,
    request: &Request,
    made: Option<FileId>,
) -> Result<Deed, Unlike> {
    match request {
        Request::Put(put) if put.mode.has(PutMode::CREATE) => create(names, number, put, made),
        Request::Put(put) => {
            let deed = target(names, &put.target)?;
            // The name goes when the file is closed.
            if put.mode.has(PutMode::REMOVE) { unnamed(names, deed, &put.target.path) } else { Ok(deed) }
        }
        Request::Remove(remove) => {
            let (key, removed) = held(names, &remove.place)?;
            if remove.directory {
                names.is_directory(removed);
                if names.now.has_names_in(removed) {
                    return Err(Unlike::Journal);
                }
            }
            let dir = key.0;
            Ok(Deed { names: vec![(key, Holder::Nobody)], ids: [Some(dir), None], ..Deed::default() })
        }
        Request::Rename(rename) => renamed(names, rename),
        Request::Link(link) => {
            let deed = target(names, &link.target)?;
            let key = names.key(&link.to.path, link.to.dir)?;
            absent(names, &key)?;
            let Some(node) = deed.of else { return Ok(deed) };
            let ids = [Some(node), Some(key.0)];
            Ok(Deed { names: vec![(key, Holder::Object(node))], ids, ..Deed::default() })
        }
        Request::Allocate(allocate) => target(names, &allocate.target),
        Request::Xattr(xattr) => target(names, &xattr.target),
        Request::Copy(copy) => {
            let (from, to) = (target(names, &copy.from)?, target(names, &copy.to)?);
            let is_void = from.is_void || to.is_void;
            Ok(Deed { ids: [from.of, to.of], of: to.of, reads: from.of, is_void, ..Deed::default() })
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
        | Request::Number(_) => Ok(Deed { is_void: true, ..Deed::default() }),
    }
}

fn target(names: &mut Names, target: &Target) -> Result<Deed, Unlike> {
    // The root's path stands for what has lost its name.
    let is_nameless = target.path.is_root() && target.id.is_some_and(|id| names.by_id(id) != Some(ROOT));
    if is_nameless {
        let of = target.id.and_then(|id| names.by_id(id));
        return Ok(Deed { ids: [of, None], of, is_void: of.is_none(), ..Deed::default() });
    }
    let node = names.walk_to(&target.path, target.id)?;
    Ok(Deed { ids: [target.id.and(Some(node)), None], of: Some(node), ..Deed::default() })
}

fn unnamed(names: &mut Names, deed: Deed, path: &TreePath) -> Result<Deed, Unlike> {
    let Some((parent, name)) = path.split_last() else { return Ok(deed) };
    let key = (names.walk(&parent)?, name.to_vec());
    let is_named = deed.of.is_some_and(|node| names.now.holder(&key) == Holder::Object(node));
    let gone = is_named.then_some((key, Holder::Nobody));
    Ok(Deed { names: gone.into_iter().collect(), of: None, ..deed })
}

/// The name was not there before.
fn absent(names: &mut Names, key: &Key) -> Result<(), Unlike> {
    match names.now.holder(key) {
        Holder::Nobody => Ok(()),
        Holder::Unknown => {
            names.begins(key, Holder::Nobody);
            Ok(())
        }
        Holder::Object(_) => Err(Unlike::Journal),
    }
}

/// The name was there before.
fn held(names: &mut Names, place: &Place) -> Result<(Key, Node), Unlike> {
    let key = names.key(&place.path, place.dir)?;
    let node = names.walk(&place.path)?;
    Ok((key, node))
}

fn create(names: &mut Names, number: u64, put: &Tput, made: Option<FileId>) -> Result<Deed, Unlike> {
    if put.mode.has(PutMode::NAMELESS) {
        let dir = names.walk(&put.target.path)?;
        names.is_called(dir, put.target.id)?;
        let node = names.object(made, Some(number));
        names.is_new(node);
        return Ok(Deed { ids: [Some(dir), None], makes: Some(node), ..Deed::default() });
    }
    let key = names.key(&put.target.path, put.target.id)?;
    let ids = [Some(key.0), None];
    // Only a client that was alone is followed: a name that it knows to be absent is that.
    let is_new = put.mode.has(PutMode::EXCLUSIVE) || names.now.holder(&key) == Holder::Nobody;
    if !put.mode.has(PutMode::EXCLUSIVE) {
        match names.now.holder(&key) {
            // It opened what was there.
            Holder::Object(node) => return Ok(Deed { ids, of: Some(node), ..Deed::default() }),
            // It opened what has another name too.
            Holder::Unknown if made.is_some_and(|id| names.old(id).is_some()) => {
                let node = names.walk_to(&put.target.path, made)?;
                return Ok(Deed { ids, of: Some(node), ..Deed::default() });
            }
            // It opened it or made it: whichever, it is there from then on.
            Holder::Unknown | Holder::Nobody => {}
        }
    } else {
        absent(names, &key)?;
    }
    let node = names.object(made, Some(number));
    if is_new {
        names.is_new(node);
    }
    if put.create.as_ref().is_some_and(|create| create.kind == Kind::Directory) {
        names.is_directory(node);
    }
    Ok(Deed { names: vec![(key, Holder::Object(node))], ids, makes: Some(node), ..Deed::default() })
}

fn renamed(names: &mut Names, rename: &Trename) -> Result<Deed, Unlike> {
    let (from, moved) = held(names, &rename.from)?;
    let to = names.key(&rename.to.path, rename.to.dir)?;
    let ids = [Some(from.0), Some(to.0)];
    let after = match rename.flags {
        EXCHANGE => {
            let other = names.walk(&rename.to.path)?;
            vec![(from, Holder::Object(other)), (to, Holder::Object(moved))]
        }
        0 | NOREPLACE => {
            if rename.flags == NOREPLACE {
                absent(names, &to)?;
            }
            // Two names of one object: nothing happens.
            if names.now.holder(&to) == Holder::Object(moved) {
                return Ok(Deed { ids, is_void: true, ..Deed::default() });
            }
            vec![(from, Holder::Nobody), (to, Holder::Object(moved))]
        }
        _ => return Err(Unlike::Journal),
    };
    Ok(Deed { names: after, ids, ..Deed::default() })
}
