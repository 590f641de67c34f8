//! Publishes a private copy of a file: its contents go into a new file beside the old one, which the new file then
//! replaces in one step. If the server cannot create such a file with the same owner and attributes, the old one is
//! written in place.

use crate::call::{Handle, Invalidate};
use crate::operation::{attributes, conflict_copies, handles};
use crate::pending::{Pending, PublishStep, Publishing};
use crate::sending::Sender;
use crate::steps::Step;
use crate::view::View;
use crate::view::files::{Base, Private};
use crate::view::publications::{AfterPublishing, Publication};
use wirefs_cache::TreeNodeId;
use wirefs_op::limits::NAME_BYTES_MAX;
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::{EXCHANGE, NOREPLACE, Rrename, Trename};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::wire::Data;
use wirefs_op::{Cred, Errno, Kind, Request, SetStat, Stat, Time};

/// How many names are tried for the new file.
const NAMES_MAX: u32 = 64;

/// # Cost
/// 2 round trips for up to 128 KiB, else 3; in place 1.
pub(crate) fn start(
    sender: &mut Sender<'_>,
    node: TreeNodeId,
    handle: Handle,
    copy: Private,
    then: AfterPublishing,
) {
    let Some(stat) = sender.view.names.node(node).map(|known| known.stat) else { return };
    sender.change_begins(node, 0);
    sender.view.files.copies.publications.next += 1;
    let number = sender.view.files.copies.publications.next;
    let opened_by = sender.view.files.open(handle).and_then(|open| open.opened_by.clone());
    let (temporary, tries, left, error) = (None, 0, 0, None);
    let publication =
        Publication { node, handle, copy, then, stat, opened_by, temporary, tries, left, error };
    sender.view.files.copies.publications.under_way.insert(number, publication);
    if place(sender.view, number).is_none() {
        // The file is out of reach.
        end(sender, number);
    } else if is_replaceable(sender.view, &stat) || !is_named(sender.view, node) {
        make(sender, number);
    } else {
        in_place(sender, number);
    }
}

/// Whether a new file can be made that differs from it in its number only.
fn is_replaceable(view: &View, stat: &Stat) -> bool {
    let is_ours = view.mount.attachment.acts_for_callers || stat.uid == view.mount.attachment.uid;
    stat.nlink <= 1 && stat.without_xattrs && is_ours
}

/// Whether the file itself can still be reached. Else its name is another file's, which is replaced.
fn is_named(view: &View, node: TreeNodeId) -> bool {
    view.names.node(node).is_some_and(wirefs_cache::TreeNode::is_named)
}

/// The name that a file has.
pub(crate) fn place_of(view: &View, node: TreeNodeId) -> Option<(TreeNodeId, Vec<u8>)> {
    view.names.links(node).into_iter().next()
}

/// The name that a copy is published by: the file's, else the one that it was opened by, which others gave to another file.
fn place(view: &View, number: u64) -> Option<(TreeNodeId, Vec<u8>)> {
    let publication = view.files.copies.publications.under_way.get(&number)?;
    let (node, handle) = (publication.node, publication.handle);
    let opened_by = match view.files.open(handle) {
        Some(open) => open.opened_by.clone(),
        None => publication.opened_by.clone(),
    };
    opened_by.map(|opened_by| place_of(view, node).unwrap_or(opened_by))
}

/// A name beside `name` that programs do not choose.
fn name_beside(name: &[u8], serial: u32, ino: u64) -> Vec<u8> {
    let end = format!(".wirefs-{ino:x}-{serial:x}");
    let kept = name.len().min(NAME_BYTES_MAX.saturating_sub(end.len() + 1));
    [b".", name.get(..kept).unwrap_or_default(), end.as_bytes()].concat()
}

fn put(target: Target, mode: PutMode) -> Tput {
    Tput { target, mode, create: None, set: SetStat::default(), offset: 0, data: Data::default() }
}

fn send(sender: &mut Sender<'_>, number: u64, step: PublishStep, request: Request) {
    if let Some(publication) = sender.view.files.copies.publications.under_way.get_mut(&number) {
        publication.left += 1;
    }
    sender.send(request, Pending::Publish(Publishing { number, step }));
}

fn make(sender: &mut Sender<'_>, number: u64) {
    sender.view.files.copies.publications.names += 1;
    let serial = sender.view.files.copies.publications.names;
    let Some(publication) = sender.view.files.copies.publications.under_way.get_mut(&number) else { return };
    let stat = publication.stat;
    publication.tries += 1;
    let first = publication.copy.pieces().into_iter().next();
    let Some((parent, name)) = place(sender.view, number) else { return end(sender, number) };
    let temporary = name_beside(&name, serial, stat.id.ino);
    let Ok(place) = sender.view.place(parent, &temporary) else { return in_place(sender, number) };
    if let Some(publication) = sender.view.files.copies.publications.under_way.get_mut(&number) {
        publication.temporary = Some((parent, temporary));
    }
    let cred = Cred { uid: stat.uid, gid: stat.gid, umask: 0 };
    let (offset, data) = first.unwrap_or_default();
    let mode = PutMode::CREATE
        .and(PutMode::EXCLUSIVE)
        .and(PutMode::STAT)
        .and(PutMode::MORE)
        .and(PutMode::WRITE)
        .and_if(!data.is_empty(), PutMode::DATA);
    let request = Tput {
        create: Some(Create { kind: Kind::File, mode: stat.mode & 0o7777, rdev: 0, cred }),
        set: SetStat {
            mode: Some(stat.mode),
            uid: Some(stat.uid),
            gid: Some(stat.gid),
            ..SetStat::default()
        },
        offset,
        data: Data(data),
        ..put(Target { path: place.path, fd: NOFD, id: place.dir }, mode)
    };
    send(sender, number, PublishStep::Make, Request::Put(request));
}

/// Writes the rest of the copy, after the new file was created with its first data.
fn fill(sender: &mut Sender<'_>, number: u64, made: &Rput) {
    let Some(publication) = sender.view.files.copies.publications.under_way.get(&number) else { return };
    let Some((parent, temporary)) = publication.temporary.clone() else { return };
    let pieces = publication.copy.pieces();
    let set = SetStat { size: Some(publication.copy.size()), ..publication.copy.times };
    let written = pieces.first().map_or(0, |(at, data)| at + data.len() as u64);
    let is_done = set.size == Some(written) && publication.copy.times.is_empty();
    let Ok(path) = sender.view.entry_path(parent, &temporary) else { return end(sender, number) };
    let target = Target { path, fd: made.fd, id: made.stat.map(|stat| stat.id) };
    for (offset, data) in pieces.into_iter().skip(1) {
        let mode = PutMode::DATA.and_if(made.fd != NOFD, PutMode::MORE);
        let request = Tput { offset, data: Data(data), ..put(target.clone(), mode) };
        send(sender, number, PublishStep::Fill, Request::Put(request));
    }
    if !is_done {
        let mode = PutMode::STAT.and_if(made.fd != NOFD, PutMode::MORE);
        send(sender, number, PublishStep::Fill, Request::Put(Tput { set, ..put(target.clone(), mode) }));
    }
    handles::give_back(sender, target.id, made.fd, true);
    filled(sender, number);
}

impl PublishStep {
    /// Of the rename that it is.
    fn flags(self) -> u32 {
        match self {
            PublishStep::Exchange => EXCHANGE,
            PublishStep::Appear => NOREPLACE,
            PublishStep::Make | PublishStep::Fill | PublishStep::Move | PublishStep::Write => 0,
        }
    }
}

/// Moves the new file to its place once all of it is there.
fn filled(sender: &mut Sender<'_>, number: u64) {
    let Some(publication) = sender.view.files.copies.publications.under_way.get(&number) else { return };
    if publication.left == 0 {
        take_place(sender, number, PublishStep::Exchange);
    }
}

fn take_place(sender: &mut Sender<'_>, number: u64, how: PublishStep) {
    let Some(publication) = sender.view.files.copies.publications.under_way.get(&number) else { return };
    let error = publication.error;
    let Some(temporary) = publication.temporary.clone() else { return end(sender, number) };
    // Its name may have changed, or gone, while it was written.
    let Some(place) = place(sender.view, number).filter(|_| error.is_none()) else {
        return undo(sender, number);
    };
    let (from, to) = (sender.view.place(temporary.0, &temporary.1), sender.view.place(place.0, &place.1));
    match (from, to) {
        (Ok(from), Ok(to)) => {
            let rename = Trename { from, to, flags: how.flags() };
            send(sender, number, how, Request::Rename(rename));
        }
        (Err(errno), _) | (_, Err(errno)) => failed_for_good(sender, number, errno),
    }
}

/// Removes the new file, which is useless.
fn undo(sender: &mut Sender<'_>, number: u64) {
    let publication = sender.view.files.copies.publications.under_way.get_mut(&number);
    let temporary = publication.and_then(|publication| publication.temporary.take());
    if let Some(Ok(place)) = temporary.map(|(parent, name)| sender.view.place(parent, &name)) {
        sender.send(Request::Remove(Tremove { place, directory: false }), Pending::IGNORE);
    }
    end(sender, number);
}

fn failed_for_good(sender: &mut Sender<'_>, number: u64, errno: Errno) {
    if let Some(publication) = sender.view.files.copies.publications.under_way.get_mut(&number) {
        publication.error.get_or_insert(errno);
    }
    undo(sender, number);
}

fn in_place(sender: &mut Sender<'_>, number: u64) {
    let Some(publication) = sender.view.files.copies.publications.under_way.get(&number) else { return };
    let (node, handle, times) = (publication.node, publication.handle, publication.copy.times);
    let (pieces, size) = (publication.copy.pieces(), publication.copy.size());
    let has_holes = publication.copy.ranges().first_gap(0, size).is_some();
    let target = match sender.view.target(node, Some(handle)) {
        Ok(target) => target,
        Err(errno) => return failed_for_good(sender, number, errno),
    };
    sender.view.files.forget_contents(node);
    let keeps = PutMode::NONE.and_if(target.fd != NOFD, PutMode::MORE);
    let cut = |size: u64, times: SetStat| {
        let set = SetStat { size: Some(size), ..times };
        Request::Put(Tput { set, ..put(target.clone(), keeps.and(PutMode::STAT)) })
    };
    // Where the copy has a hole, the file may have something.
    if has_holes {
        send(sender, number, PublishStep::Write, cut(0, SetStat::default()));
    }
    for (offset, data) in pieces {
        let request = Tput { offset, data: Data(data), ..put(target.clone(), keeps.and(PutMode::DATA)) };
        send(sender, number, PublishStep::Write, Request::Put(request));
    }
    send(sender, number, PublishStep::Write, cut(size, times));
}

/// Carries on with a reply to a Tput.
pub(crate) fn was_put(
    sender: &mut Sender<'_>,
    publishing: Publishing,
    sent: Time,
    asked: &Request,
    put: &Rput,
) {
    let Publishing { number, step } = publishing;
    let Some(publication) = sender.view.files.copies.publications.under_way.get_mut(&number) else { return };
    publication.left -= 1;
    let node = publication.node;
    if matches!(asked, Request::Put(asked) if (put.count as usize) < asked.data.0.len()) {
        publication.error.get_or_insert(Errno::NoSpace);
    }
    match step {
        PublishStep::Make if publication.error.is_none() => fill(sender, number, put),
        PublishStep::Make | PublishStep::Fill => filled(sender, number),
        PublishStep::Write => {
            let is_done = publication.left == 0;
            attributes::took_effect(
                sender.view,
                sender.outputs,
                node,
                Some(put.before),
                put.stat.as_ref(),
                sent,
            );
            if is_done {
                end(sender, number);
            }
        }
        PublishStep::Exchange | PublishStep::Appear | PublishStep::Move => {
            failed_for_good(sender, number, Errno::Protocol)
        }
    }
}

/// The new file has taken its place.
pub(crate) fn was_moved(sender: &mut Sender<'_>, publishing: Publishing, sent: Time, renamed: &Rrename) {
    let Publishing { number, step } = publishing;
    let Some(publication) = sender.view.files.copies.publications.under_way.get_mut(&number) else { return };
    publication.left -= 1;
    let temporary = publication.temporary.take();
    let (handle, base) = (publication.handle, publication.copy.base);
    let (node, now) = (publication.node, sender.view.mount.now);
    let (ranges, size) = (publication.copy.ranges().clone(), publication.copy.size());
    let place = place(sender.view, number);
    if let Some((parent, name)) = temporary {
        sender.view.names.unlink(parent, &name);
        let gone = sender.view.known_own(parent, &name, renamed.from_dir.as_ref(), sent);
        sender.view.directories.removed(parent, &name, gone, now);
        if let Some((_, replaced)) = place.as_ref().filter(|_| step == PublishStep::Exchange) {
            conflict_copies::start(sender, parent, (name, replaced.clone()), base);
        }
    }
    let Some(stat) = renamed.stat.filter(|stat| stat.kind == Kind::File) else {
        return lost_place(sender, number, (node, place), renamed, sent);
    };
    let known = sender.view.known(&stat, sent);
    if let Some(copy) = sender.view.files.open_mut(handle).and_then(|open| open.copy.as_mut()) {
        copy.base = Some(Base::of(&stat));
    }
    // A lookup of the new file meanwhile has made a node for it, which stays its node.
    let known_as = sender.view.names.of_file(stat.id).filter(|other| *other != node);
    match known_as {
        Some(_) => {
            sender.learn(&stat, known);
        }
        None => {
            sender.view.names.replaced(node, &stat, known, now);
            for handle in sender.view.files.handles_of(node).collect::<Vec<_>>() {
                handles::lose_fd(sender, handle);
            }
        }
    }
    let node = known_as.unwrap_or(node);
    if let Some((parent, name)) =
        place.filter(|(dir, name)| !sender.view.directories.is_changed_since(*dir, name, sent))
    {
        let there = sender.view.known_own(parent, &name, renamed.to_dir.as_ref(), sent);
        sender.view.directories.added(parent, &name, &stat, there, now);
        attributes::changed(sender.view, parent, renamed.to_dir.as_ref(), sent);
        // Others had given it to another file meanwhile.
        if sender.view.names.child(parent, &name) != Some(node) {
            sender.view.names.link(parent, &name, node);
            sender.view.invalidate_name(sender.outputs, parent, name);
        }
    }
    if ranges.cached_to(0, size) >= size && stat.size == size {
        sender.view.files.replaced(node, ranges, stat.version, known);
    } else {
        sender.view.files.invalidate_contents(node);
    }
    sender.outputs.invalidate(Invalidate::Node { node, offset: -1, length: 0 });
    end(sender, number);
}

/// The new file had its place, and another program has given that to something else since, or to nothing.
fn lost_place(
    sender: &mut Sender<'_>,
    number: u64,
    (node, place): (TreeNodeId, Option<(TreeNodeId, Vec<u8>)>),
    renamed: &Rrename,
    sent: Time,
) {
    attributes::changed(sender.view, node, None, sent);
    sender.view.files.invalidate_contents(node);
    if let Some((parent, name)) = place {
        let now = sender.view.mount.now;
        sender.view.directories.changed(parent, now);
        attributes::changed(sender.view, parent, renamed.to_dir.as_ref(), sent);
        sender.view.invalidate_name(sender.outputs, parent, name);
    }
    sender.outputs.invalidate(Invalidate::Node { node, offset: -1, length: 0 });
    end(sender, number);
}

/// A request of it failed.
pub(crate) fn failed(sender: &mut Sender<'_>, publishing: Publishing, errno: Errno) {
    let Publishing { number, step } = publishing;
    let Some(publication) = sender.view.files.copies.publications.under_way.get_mut(&number) else { return };
    publication.left -= 1;
    let node = publication.node;
    let is_named = is_named(sender.view, node);
    let Some(publication) = sender.view.files.copies.publications.under_way.get_mut(&number) else { return };
    match (step, errno) {
        (PublishStep::Make, Errno::Exists) if publication.tries < NAMES_MAX => make(sender, number),
        // The directory, or the owner, is not ours to make files in, or for.
        (PublishStep::Make, Errno::AccessDenied | Errno::NotPermitted | Errno::NameTooLong) if is_named => {
            publication.temporary = None;
            in_place(sender, number);
        }
        (PublishStep::Exchange, Errno::NotFound) => take_place(sender, number, PublishStep::Appear),
        (PublishStep::Exchange, Errno::Invalid) => take_place(sender, number, PublishStep::Move),
        (PublishStep::Appear, Errno::Exists) if publication.tries < NAMES_MAX => {
            publication.tries += 1;
            take_place(sender, number, PublishStep::Exchange);
        }
        (PublishStep::Make | PublishStep::Exchange | PublishStep::Appear | PublishStep::Move, _) => {
            failed_for_good(sender, number, errno);
        }
        (PublishStep::Fill, _) => {
            publication.error.get_or_insert(errno);
            filled(sender, number);
        }
        (PublishStep::Write, _) => {
            publication.error.get_or_insert(errno);
            if publication.left == 0 {
                end(sender, number);
            }
        }
    }
}

/// Ends a publication. A failed one leaves its copy to be published later.
fn end(sender: &mut Sender<'_>, number: u64) {
    let Some(publication) = sender.view.files.copies.publications.under_way.remove(&number) else { return };
    let Publication { node, handle, then, error, .. } = publication;
    sender.view.files.write_answered(node, 0);
    let copy = sender.view.files.open_mut(handle).and_then(|open| open.copy.as_mut());
    if let (Some(copy), Some(_)) = (copy, error) {
        copy.is_changed = true;
    }
    sender.outputs.leave(Step::PublicationEnded(node, handle, then, error));
    sender.outputs.leave(Step::ChangeEnded(node));
}
