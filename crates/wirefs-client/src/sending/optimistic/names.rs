//! Changes of names: create, mkdir, symlink, unlink, rmdir, rename, link.

use super::{MADE, Outcome, rights};
use crate::requests::Requests;
use crate::view::View;
use wirefs_cache::{CachedLookup, ROOT, TreeNodeId};
use wirefs_op::message::link::Rlink;
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::remove::Rremove;
use wirefs_op::message::rename::{NOREPLACE, Rrename};
use wirefs_op::message::target::NOFD;
use wirefs_op::{FileId, Kind, Reply, Stat};

/// Hard links of one file past which the file system may have no more (ext4 has 65,000).
const LINKS_MAX: u32 = 30_000;

/// Returns the attributes of a directory if they and all its names are known.
fn directory(view: &View, dir: TreeNodeId) -> Option<Stat> {
    let known = view.names.node(dir).filter(|_| view.is_fresh(dir))?;
    view.directories.is_fresh(dir, &view.coherency()).then(|| view.exclusive.unconfirmed.shown(&known.stat))
}

fn is_absent(view: &View, dir: TreeNodeId, name: &[u8]) -> bool {
    matches!(view.directories.find(dir, name, &view.coherency()), CachedLookup::Negative(_))
}

/// The attributes of a name, and its node, if there is one.
fn entry(view: &View, dir: TreeNodeId, name: &[u8]) -> Option<(Stat, Option<TreeNodeId>)> {
    let CachedLookup::Entry(found) = view.directories.find(dir, name, &view.coherency()) else {
        return None;
    };
    let node = view.names.of_file(found.stat.id);
    match node {
        // Its attributes are the node's.
        Some(node) if view.is_fresh(node) => {
            view.names.node(node).map(|known| (view.exclusive.unconfirmed.shown(&known.stat), Some(node)))
        }
        Some(_) => None,
        None => (found.attributes.leased && view.coherency().is_valid(found.attributes))
            .then_some((found.stat, None)),
    }
}

/// The attributes of a directory after a name in it changed; `subdirectories`: the change of their number.
fn after(view: &View, dir: &Stat, subdirectories: i32) -> Stat {
    let now = view.time_after(dir.ctime);
    // Some file systems count subdirectories as links and some do not.
    let nlink = if dir.nlink < 2 { dir.nlink } else { dir.nlink.saturating_add_signed(subdirectories) };
    Stat { mtime: now, ctime: now, nlink, leased: true, ..*dir }
}

pub(super) fn make(
    view: &View,
    requests: &Requests,
    put: &Tput,
    place: Option<(TreeNodeId, Vec<u8>)>,
) -> Option<Outcome> {
    let (parent, name) = place?;
    let create = put.create.as_ref()?;
    let dir = directory(view, parent)?;
    let is_kind = matches!(create.kind, Kind::File | Kind::Directory | Kind::Symlink);
    let is_simple =
        !put.mode.has(PutMode::NAMELESS) && !put.mode.has(PutMode::SYNC) && create.mode & 0o7000 == 0;
    if !is_kind
        || !is_simple
        || !rights::may_make(&view.mount.attachment, &dir, &create.cred)
        || !is_absent(view, parent, &name)
    {
        return None;
    }
    let is_directory = create.kind == Kind::Directory;
    let inherited = if is_directory { dir.mode & 0o2000 } else { 0 };
    let mode = match create.kind {
        Kind::Symlink => 0o777,
        _ => create.mode & !create.cred.umask & 0o777 | inherited,
    };
    let (uid, gid) = rights::owner(&view.mount.attachment, &dir, &create.cred);
    let (now, number) = (view.time_after(dir.ctime), requests.next_number());
    let (size, blocks) = match create.kind {
        Kind::Directory => (u64::from(dir.blksize), u64::from(dir.blksize) / 512),
        Kind::Symlink => (put.data.0.len() as u64, 0),
        _ => (0, 0),
    };
    let stat = Stat {
        id: FileId::provisional(number),
        kind: create.kind,
        version: MADE | number,
        mode,
        nlink: if is_directory && dir.nlink >= 2 { 2 } else { 1 },
        uid,
        gid,
        rdev: 0,
        size,
        blocks,
        blksize: dir.blksize,
        atime: now,
        mtime: now,
        ctime: now,
        without_xattrs: true,
        leased: true,
    };
    let reply = Rput {
        fd: NOFD,
        count: 0,
        offset: 0,
        before: 0,
        stat: Some(stat),
        dir: Some(after(view, &dir, i32::from(is_directory))),
    };
    Some(Outcome {
        reply: Reply::Put(reply),
        nodes: vec![parent],
        names: vec![(parent, name)],
        besides: None,
        inodes: 1,
    })
}

/// Whether a directory is known to have nothing in it.
fn is_empty(view: &View, stat: &Stat, node: Option<TreeNodeId>) -> bool {
    let Some(node) = node.filter(|_| stat.kind == Kind::Directory) else { return false };
    view.directories.is_fresh(node, &view.coherency()) && view.directories.appears_empty(node)
}

pub(super) fn remove(
    view: &View,
    (parent, name): (TreeNodeId, Vec<u8>),
    is_directory: bool,
) -> Option<Outcome> {
    let dir = directory(view, parent)?;
    let (stat, node) = entry(view, parent, &name)?;
    if is_directory != (stat.kind == Kind::Directory)
        || !rights::may_change_names(&view.mount.attachment, &dir)
        || !one_file_system(&[&dir, &stat])
        || (is_directory && !is_empty(view, &stat, node))
        || !is_reachable(view, &stat, node)
    {
        return None;
    }
    let besides = node.filter(|_| !is_directory).map(|node| (node, unlinked(view, &stat)));
    Some(Outcome {
        reply: Reply::Remove(Rremove { dir: Some(after(view, &dir, -i32::from(is_directory))) }),
        nodes: [Some(parent), node].into_iter().flatten().collect(),
        names: vec![(parent, name)],
        besides,
        inodes: 0,
    })
}

/// Whether its open files reach it without a name: by an fd, which one that was opened from memory does not have.
fn is_reachable(view: &View, stat: &Stat, node: Option<TreeNodeId>) -> bool {
    let handles: Vec<_> = node.into_iter().flat_map(|node| view.files.handles_of(node)).collect();
    let has_fd =
        |handle: &crate::call::Handle| view.files.open(*handle).is_some_and(|open| open.fd() != NOFD);
    // Of one that the server does not have yet, it is the fd that it is made with.
    let is_made = stat.id.provisional_number().is_some()
        && handles.len() == 1
        && !view
            .exclusive
            .unconfirmed
            .unconfirmed
            .values()
            .any(|change| change.opens.map(|(opened, _)| opened) == node);
    is_made || handles.iter().all(has_fd)
}

/// A file that has lost a name.
fn unlinked(view: &View, stat: &Stat) -> Stat {
    Stat { nlink: stat.nlink.saturating_sub(1), ctime: view.time_after(stat.ctime), leased: true, ..*stat }
}

pub(super) fn rename(view: &View, [from, to]: [(TreeNodeId, Vec<u8>); 2], flags: u32) -> Option<Outcome> {
    let (from_dir, to_dir) = (directory(view, from.0)?, directory(view, to.0)?);
    let (moved, node) = entry(view, from.0, &from.1)?;
    let node = node?;
    let is_directory = moved.kind == Kind::Directory;
    let replaced = match view.directories.find(to.0, &to.1, &view.coherency()) {
        CachedLookup::Negative(_) => None,
        CachedLookup::Entry(_) if flags == 0 => Some(entry(view, to.0, &to.1)?),
        CachedLookup::Entry(_) | CachedLookup::Miss => return None,
    };
    let goes = match &replaced {
        None => true,
        Some((stat, _)) if stat.id == moved.id => false,
        Some((stat, node)) if is_directory => is_empty(view, stat, *node),
        Some((stat, node)) => stat.kind != Kind::Directory && is_reachable(view, stat, *node),
    };
    let is_plain = flags == 0 || flags == NOREPLACE;
    let is_one_place = one_file_system(&[&from_dir, &to_dir, &moved]);
    let may_move = rights::may_change_names(&view.mount.attachment, &from_dir)
        && rights::may_change_names(&view.mount.attachment, &to_dir)
        && (!is_directory || from.0 == to.0 || rights::may(&view.mount.attachment, &moved, 0o200));
    if !goes || !is_plain || !is_one_place || !may_move || is_directory && is_below(view, to.0, node) {
        return None;
    }
    let now = view.time_after(moved.ctime);
    let subdirectories = i32::from(is_directory);
    let is_replaced_directory = replaced.as_ref().is_some_and(|(stat, _)| stat.kind == Kind::Directory);
    let (from_after, to_after) = if from.0 == to.0 {
        let dir = after(view, &from_dir, -i32::from(is_replaced_directory));
        (dir, dir)
    } else {
        let gained = subdirectories - i32::from(is_replaced_directory);
        (after(view, &from_dir, -subdirectories), after(view, &to_dir, gained))
    };
    let stat = Stat { ctime: now, leased: true, ..moved };
    let reply = Rrename { stat: Some(stat), from_dir: Some(from_after), to_dir: Some(to_after) };
    let replaced_node = replaced.as_ref().and_then(|(_, node)| *node);
    let besides = replaced.filter(|(stat, _)| stat.kind != Kind::Directory);
    let besides = besides.and_then(|(stat, node)| Some((node?, unlinked(view, &stat))));
    let mut nodes: Vec<TreeNodeId> =
        [Some(from.0), Some(to.0), Some(node), replaced_node].into_iter().flatten().collect();
    nodes.sort_unstable();
    nodes.dedup();
    Some(Outcome { reply: Reply::Rename(reply), nodes, names: vec![from, to], besides, inodes: 0 })
}

/// Whether all objects are on one file system. New objects are on the file system of their directory.
fn one_file_system(stats: &[&Stat]) -> bool {
    let mut known =
        stats.iter().map(|stat| stat.id).filter(|id| id.provisional_number().is_none()).map(|id| id.fs);
    let first = known.next();
    known.all(|fs| Some(fs) == first)
}

/// Whether `dir` is `node`, or anywhere in it.
fn is_below(view: &View, dir: TreeNodeId, node: TreeNodeId) -> bool {
    let mut at = dir;
    while at != ROOT && at != node {
        let parent = view.names.parent(at);
        if parent == at {
            return true;
        }
        at = parent;
    }
    at == node
}

pub(super) fn link(view: &View, node: TreeNodeId, (parent, name): (TreeNodeId, Vec<u8>)) -> Option<Outcome> {
    let dir = directory(view, parent)?;
    let known = view.names.node(node).filter(|_| view.is_fresh(node))?;
    let stat = view.exclusive.unconfirmed.shown(&known.stat);
    // `fs.protected_hardlinks` leaves alone only what the user owns.
    let may_link =
        rights::may_change_names(&view.mount.attachment, &dir) && rights::owns(&view.mount.attachment, &stat);
    if stat.kind == Kind::Directory
        || stat.nlink == 0
        || stat.nlink >= LINKS_MAX
        || !may_link
        || !one_file_system(&[&dir, &stat])
        || !is_absent(view, parent, &name)
    {
        return None;
    }
    let linked = Stat { nlink: stat.nlink + 1, ctime: view.time_after(stat.ctime), leased: true, ..stat };
    Some(Outcome {
        reply: Reply::Link(Rlink { stat: Some(linked), dir: Some(after(view, &dir, 0)) }),
        nodes: vec![parent, node],
        names: vec![(parent, name)],
        besides: None,
        inodes: 0,
    })
}
