//! The files that published copies replaced. If the replaced file is not the version from which the copy was made,
//! another client has written it meanwhile. Then the last close wins, and the replaced file stays beside the new one as
//! a conflict copy.
//!
//! The copy and the file change places in one step (`RENAME_EXCHANGE`). So the temporary name then has the replaced
//! file, even if that was written just before. The client removes it or renames it in the background; only a removal of
//! the directory waits for that.

use crate::call::CallId;
use crate::core::Client;
use crate::operation::{attributes, remove};
use crate::output::Outputs;
use crate::pending::{Pending, ReplacedFile, ReplacedStep};
use crate::sending::Sender;
use crate::view::View;
use crate::view::conflicts::{NAMES_MAX, Rmdir, name_of, numbered};
use crate::view::files::Base;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::get::{GetMode, Rget, Tget};
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_op::message::rename::{NOREPLACE, Rrename, Trename};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::{Errno, Kind, Request, Stat, Time, Timestamp};

/// Settles the replaced file, after a new file `temporary` in `dir` has changed places with the former `name`.
///
/// # Cost
/// 2 requests.
pub(crate) fn start(
    sender: &mut Sender<'_>,
    dir: TreeNodeId,
    (temporary, name): (Vec<u8>, Vec<u8>),
    base: Option<Base>,
) {
    let Ok(path) = sender.view.entry_path(dir, &temporary) else { return };
    let target = Target { path, fd: NOFD, id: None };
    let get = Tget { target, mode: GetMode::STAT, nmsgs: 1, offset: 0, count: 0 };
    *sender.view.files.copies.replaced.under_way.entry(dir).or_default() += 1;
    let conflict_copies =
        ReplacedFile { dir, temporary, name, base, step: ReplacedStep::Look, kept_as: Vec::new(), tries: 0 };
    sender.send(Request::Get(get), Pending::Replaced(conflict_copies));
}

/// This is what was replaced.
pub(crate) fn looked(client: &mut Client, conflict_copies: ReplacedFile, got: Rget) {
    let Some(stat) = got.stat else { return failed(client, conflict_copies, Errno::Protocol) };
    let is_base = stat.kind == Kind::File && conflict_copies.base.is_some_and(|base| base.is(&stat));
    if is_base { remove(client, conflict_copies) } else { keep(client, conflict_copies, stat.mtime) }
}

fn remove(client: &mut Client, conflict_copies: ReplacedFile) {
    let Ok(place) = client.view.place(conflict_copies.dir, &conflict_copies.temporary) else {
        return end(client, conflict_copies.dir);
    };
    let conflict_copies = ReplacedFile { step: ReplacedStep::Remove, ..conflict_copies };
    client
        .sender()
        .send(Request::Remove(Tremove { place, directory: false }), Pending::Replaced(conflict_copies));
}

pub(crate) fn removed(client: &mut Client, conflict_copies: ReplacedFile, sent: Time, removed: Rremove) {
    gone(&mut client.view, &mut client.outputs, &conflict_copies, removed.dir.as_ref(), sent);
    end(client, conflict_copies.dir);
}

/// The temporary name is gone.
fn gone(
    view: &mut View,
    outputs: &mut Outputs,
    conflict_copies: &ReplacedFile,
    dir: Option<&Stat>,
    sent: Time,
) {
    let known = view.known_own(conflict_copies.dir, &conflict_copies.temporary, dir, sent);
    view.directories.removed(conflict_copies.dir, &conflict_copies.temporary, known, view.mount.now);
    view.invalidate_listing(outputs, conflict_copies.dir);
    attributes::changed(view, conflict_copies.dir, dir, sent);
}

fn keep(client: &mut Client, conflict_copies: ReplacedFile, mtime: Timestamp) {
    let (host, tries) = (client.view.mount.config.host, conflict_copies.tries);
    let kept_as = name_of(&conflict_copies.name, host.as_bytes(), mtime, tries);
    keep_as(client, ReplacedFile { step: ReplacedStep::Keep, kept_as, ..conflict_copies });
}

fn keep_as(client: &mut Client, conflict_copies: ReplacedFile) {
    let from = client.view.place(conflict_copies.dir, &conflict_copies.temporary);
    let to = client.view.place(conflict_copies.dir, &conflict_copies.kept_as);
    match (from, to) {
        (Ok(from), Ok(to)) => {
            let rename = Trename { from, to, flags: NOREPLACE };
            client.sender().send(Request::Rename(rename), Pending::Replaced(conflict_copies));
        }
        // The directory is gone from where it was; what was replaced is in it, under the name that it has.
        _ => tell(client, conflict_copies.dir, &conflict_copies.temporary),
    }
}

pub(crate) fn kept(client: &mut Client, conflict_copies: ReplacedFile, sent: Time, renamed: &Rrename) {
    gone(&mut client.view, &mut client.outputs, &conflict_copies, renamed.from_dir.as_ref(), sent);
    if let Some(stat) = renamed.stat {
        let there = client.view.known_own(
            conflict_copies.dir,
            &conflict_copies.kept_as,
            renamed.to_dir.as_ref(),
            sent,
        );
        let stat = Stat { leased: client.view.known(&stat, sent).leased, ..stat };
        client.view.directories.added(
            conflict_copies.dir,
            &conflict_copies.kept_as,
            &stat,
            there,
            client.view.mount.now,
        );
    }
    tell(client, conflict_copies.dir, &conflict_copies.kept_as);
}

pub(crate) fn failed(client: &mut Client, conflict_copies: ReplacedFile, errno: Errno) {
    client.view.directories.invalidate(conflict_copies.dir);
    client.view.invalidate_listing(&mut client.outputs, conflict_copies.dir);
    match (conflict_copies.step, errno) {
        (ReplacedStep::Keep, Errno::Exists) if conflict_copies.tries < NAMES_MAX => {
            let tries = conflict_copies.tries + 1;
            let kept_as = numbered(&conflict_copies.kept_as, conflict_copies.tries, tries);
            keep_as(client, ReplacedFile { kept_as, tries, ..conflict_copies });
        }
        // Another client removed it, or its loss does not matter.
        (_, Errno::NotFound) | (ReplacedStep::Remove, _) => end(client, conflict_copies.dir),
        // It stays where it is.
        (ReplacedStep::Look | ReplacedStep::Keep, _) => {
            tell(client, conflict_copies.dir, &conflict_copies.temporary)
        }
    }
}

fn tell(client: &mut Client, dir: TreeNodeId, name: &[u8]) {
    let path = client.view.entry_path(dir, name).map(|path| path.as_bytes().to_vec());
    client.view.files.copies.replaced.conflicts.add(path.unwrap_or_else(|_| name.to_vec()));
    end(client, dir);
}

/// One is done with.
fn end(client: &mut Client, dir: TreeNodeId) {
    let under_way = &mut client.view.files.copies.replaced.under_way;
    match under_way.get_mut(&dir) {
        Some(count) if *count > 1 => return *count -= 1,
        _ => under_way.remove(&dir),
    };
    let rmdirs = std::mem::take(&mut client.view.files.copies.replaced.rmdirs);
    let (ready, waiting): (Vec<_>, Vec<_>) = rmdirs.into_iter().partition(|rmdir| rmdir.dir == dir);
    client.view.files.copies.replaced.rmdirs = waiting;
    for Rmdir { call, parent, name, .. } in ready {
        if let Err(errno) = remove::start(&mut client.sender(), call, parent, &name, true) {
            client.answerer().fail(call, errno);
        }
    }
}

/// Whether the removal of a directory was put off until what was replaced in it has its place. Calls are bounded by the kernel, so
/// these are.
pub(crate) fn holds_up(view: &mut View, call: CallId, parent: TreeNodeId, name: &[u8]) -> bool {
    let dir = view.names.child(parent, name);
    let dir = dir.filter(|dir| view.files.copies.replaced.under_way.contains_key(dir));
    view.files.copies.replaced.rmdirs.extend(dir.map(|dir| Rmdir { call, dir, parent, name: name.to_vec() }));
    dir.is_some()
}
