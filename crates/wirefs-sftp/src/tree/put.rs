//! Tput: creates, opens, changes attributes, writes.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::{Errno, Kind, SetStat, SetTime, Stat};
use wirefs_server::Replies;

use super::locate::{Named, check_kind};
use super::{At, Failure, OpenFile};
use crate::attributes::{Attributes, kind_of};
use crate::message::{Request, Status, open};
use crate::wire::{Fault, Sent};

/// The bits that a write by another user clears.
const SET_ID: u32 = 0o6000;

/// The object of a Tput.
enum Subject {
    Open(Arc<OpenFile>),
    /// Named by its path.
    Path {
        path: Vec<u8>,
        ino: u64,
    },
}

/// An object that was created now.
struct Created {
    subject: Subject,
    stat: Stat,
    dir: Stat,
}

impl At<'_> {
    pub(super) fn put(&self, request: &Tput, replies: &mut dyn Replies) -> Result<Rput, Failure> {
        let mode = request.mode;
        if mode.has(PutMode::NAMELESS) || mode.has(PutMode::REMOVE) {
            return Err(Errno::NotSupported.into());
        }
        let Some(create) = request.create.as_ref().filter(|_| mode.has(PutMode::CREATE)) else {
            let subject = self.subject(request)?;
            let (before, after) = self.change(request, &subject, true, replies)?;
            return Ok(self.reply(request, subject, before.version, after, None));
        };
        match self.create(request, create)? {
            Some(Created { subject, stat, dir }) => {
                let changes = mode.has(PutMode::STAT) || mode.has(PutMode::SYNC);
                let writes = mode.has(PutMode::DATA) && create.kind == Kind::File;
                let stat = match changes || writes {
                    true => self.change(request, &subject, writes, replies)?.1,
                    false => stat,
                };
                Ok(self.reply(request, subject, 0, stat, Some(dir)))
            }
            None => {
                // The file is there, and the request takes it.
                let target = Target { path: request.target.path.clone(), fd: NOFD, id: None };
                let reads = mode.has(PutMode::READ) || !mode.has(PutMode::WRITE);
                let writes = mode.has(PutMode::DATA) || mode.has(PutMode::WRITE);
                let subject = Subject::Open(self.open_file(&target, reads, writes)?);
                let (before, after) = self.change(request, &subject, true, replies)?;
                let place = Place { path: request.target.path.clone(), dir: None };
                let named = self.named(&place)?;
                let dir = self.remote.lstat(&named.parent_path)?.attributes()?.stat(named.parent);
                Ok(self.reply(request, subject, before.version, after, Some(dir)))
            }
        }
    }

    fn reply(&self, request: &Tput, subject: Subject, before: u64, stat: Stat, dir: Option<Stat>) -> Rput {
        let mode = request.mode;
        let writes = mode.has(PutMode::DATA) && matches!(subject, Subject::Open(_));
        let count = if writes { request.data.0.len() as u32 } else { 0 };
        let offset = match mode.has(PutMode::APPEND) {
            true => stat.size.saturating_sub(u64::from(count)),
            false => request.offset,
        };
        let is_open = self.client.find(&request.target).is_some();
        let fd = match subject {
            Subject::Open(_) if mode.has(PutMode::MORE) && is_open => request.target.fd,
            Subject::Open(file) if mode.has(PutMode::MORE) => self.client.files.keep(file),
            Subject::Open(_) | Subject::Path { .. } => NOFD,
        };
        if !mode.has(PutMode::MORE) {
            self.client.files.close(request.target.fd);
        }
        Rput { fd, count, offset, before, stat: Some(stat), dir }
    }

    /// Returns an existing object, opened if the request needs that.
    fn subject(&self, request: &Tput) -> Result<Subject, Failure> {
        let (mode, target) = (request.mode, &request.target);
        let keeps = mode.has(PutMode::MORE);
        if mode.has(PutMode::DATA) && mode.has(PutMode::APPEND) {
            let ino = self.ino_of(target)?;
            let path = self.full(&target.path);
            self.check_is_file(target, &path)?;
            let opened = self.remote.open(&path, open::WRITE | open::APPEND)?;
            let handle = self.remote.opened(opened)?;
            return Ok(Subject::Open(Arc::new(OpenFile { handle, ino, reads: false, writes: true })));
        }
        let writes = mode.has(PutMode::DATA) || (keeps && mode.has(PutMode::WRITE));
        let reads = keeps && mode.has(PutMode::READ);
        if writes || reads || keeps || mode.has(PutMode::SYNC) {
            return Ok(Subject::Open(self.open_file(target, reads, writes)?));
        }
        match self.client.find(target) {
            Some(file) => Ok(Subject::Open(file)),
            None => Ok(Subject::Path { path: self.full(&target.path), ino: self.ino_of(target)? }),
        }
    }

    fn ask_stat(&self, subject: &Subject) -> Result<Sent, Fault> {
        match subject {
            Subject::Open(file) => self.remote.fstat(&file.handle),
            Subject::Path { path, .. } => self.remote.lstat(path),
        }
    }

    /// Changes attributes, writes and syncs. Returns the attributes before and after.
    ///
    /// # Cost
    /// One round trip, and one more for a change of an owner, of a group or of one time alone.
    fn change(
        &self,
        request: &Tput,
        subject: &Subject,
        writes: bool,
        replies: &mut dyn Replies,
    ) -> Result<(Stat, Stat), Failure> {
        let mode = request.mode;
        let (ino, id) = match subject {
            Subject::Open(file) => (file.ino, None),
            Subject::Path { ino, .. } => (*ino, request.target.id),
        };
        let kind = id.and_then(kind_of);
        let mut sent = vec![];
        let before = self.ask_stat(subject)?;
        let set = if mode.has(PutMode::STAT) { request.set } else { SetStat::default() };
        // The server's kernel clears these bits for all users but root.
        let kills = mode.has(PutMode::KILL_PRIVILEGES) && self.tree.owner.0 == 0;
        let before = match kills || is_partial(&set) {
            true => {
                let found = before.attributes()?;
                check_kind(&found.stat(ino), id)?;
                let attributes = attributes_of(&set, &found, kills);
                sent.extend(self.set(subject, kind, attributes)?);
                Ok(found)
            }
            false => {
                sent.extend(self.set(subject, kind, attributes_of(&set, &Attributes::default(), false))?);
                Err(before)
            }
        };
        if let (true, true, Subject::Open(file)) = (writes, mode.has(PutMode::DATA), subject) {
            sent.extend(self.remote.write(&file.handle, request.offset, &request.data.0)?);
        }
        if let (true, true, Subject::Open(file)) =
            (mode.has(PutMode::SYNC), self.remote.extensions.syncs, subject)
        {
            sent.push(self.remote.send(&Request::Fsync { handle: file.handle.bytes() })?);
        }
        let after = self.ask_stat(subject)?;
        // The server keeps the order of all that was sent, so the session's next change may be sent.
        replies.release_slot();
        let before = before.or_else(Sent::attributes)?;
        let outcomes: Vec<_> = sent.into_iter().map(Sent::done).collect();
        for outcome in outcomes {
            outcome.map_err(|fault| self.explain(fault))?;
        }
        Ok((before.stat(ino), after.attributes()?.stat(ino)))
    }

    /// Finds out whether a failed change found the disk full.
    fn explain(&self, fault: Fault) -> Failure {
        let is_unclear = fault == Fault::Refused(Status::Failure);
        let root = if self.tree.base.is_empty() { b"/" } else { &self.tree.base[..] };
        match is_unclear.then(|| self.remote.figures(root)) {
            Some(Ok(Some(figures))) if figures.blocks_available == 0 => Errno::NoSpace.into(),
            _ => fault.into(),
        }
    }

    fn set(
        &self,
        subject: &Subject,
        kind: Option<Kind>,
        attributes: Attributes,
    ) -> Result<Option<Sent>, Failure> {
        if attributes == Attributes::default() {
            return Ok(None);
        }
        let request = match subject {
            Subject::Open(file) => Request::Fsetstat { handle: file.handle.bytes(), attributes },
            Subject::Path { path, .. } if kind != Some(Kind::Symlink) => {
                Request::Setstat { path, attributes }
            }
            Subject::Path { path, .. } if self.remote.extensions.sets_links => {
                Request::Lsetstat { path, attributes }
            }
            Subject::Path { .. } => return Err(Errno::NotSupported.into()),
        };
        Ok(Some(self.remote.send(&request)?))
    }

    /// Creates an object; none if a file is there and the request takes it.
    fn create(&self, request: &Tput, create: &Create) -> Result<Option<Created>, Failure> {
        let place = Place { path: request.target.path.clone(), dir: request.target.id };
        let named = self.named(&place)?;
        let mode = create.mode & !create.cred.umask & 0o7777;
        let (path, attributes) = (&named.path[..], Attributes::mode(mode));
        let sent = self.remote.send(&match create.kind {
            Kind::File => {
                let flags = open::READ | open::WRITE | open::CREATE | open::EXCLUSIVE;
                Request::Open { path, flags, attributes }
            }
            Kind::Directory => Request::Mkdir { path, attributes },
            Kind::Symlink => Request::Symlink { target: &request.data.0, path },
            // SFTP has no request for these.
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                return Err(Errno::NotPermitted.into());
            }
        })?;
        let (found, dir) = (self.remote.lstat(path)?, self.remote.lstat(&named.parent_path)?);
        let made = match create.kind {
            Kind::File => self.remote.opened(sent).map(Some),
            _ => sent.done().map(|()| None),
        };
        let found = found.attributes();
        let handle = match (made, &found) {
            (Ok(handle), _) => handle,
            (Err(Fault::Refused(_)), Ok(found)) => {
                let is_taken = create.kind == Kind::File
                    && found.kind() == Kind::File
                    && !request.mode.has(PutMode::EXCLUSIVE);
                return if is_taken { Ok(None) } else { Err(Errno::Exists.into()) };
            }
            (Err(fault), _) => return Err(self.explain(fault)),
        };
        let found = self.with_mode(found?, mode, &named, create.kind)?;
        let ino = self.tree.ids.child(named.parent, named.name);
        let dir = dir.attributes()?.stat(named.parent);
        let subject = match handle {
            Some(handle) => Subject::Open(Arc::new(OpenFile { handle, ino, reads: true, writes: true })),
            None => Subject::Path { path: named.path, ino },
        };
        Ok(Some(Created { subject, stat: found.stat(ino), dir }))
    }

    /// Sets the mode of a new object that the server's own umask has cut.
    fn with_mode(
        &self,
        found: Attributes,
        mode: u32,
        named: &Named<'_>,
        kind: Kind,
    ) -> Result<Attributes, Failure> {
        // A directory takes over the set-group-id bit of the one above.
        let differs = found.permissions.is_some_and(|found| found & 0o777 != mode & 0o777);
        if kind == Kind::Symlink || !differs {
            return Ok(found);
        }
        let set = found.permissions.unwrap_or_default() & 0o7000 | mode;
        let attributes = Attributes::mode(set & 0o7777);
        let changed = self.remote.send(&Request::Setstat { path: &named.path, attributes })?;
        let again = self.remote.lstat(&named.path)?;
        changed.done()?;
        Ok(again.attributes()?)
    }
}

/// Returns whether SFTP needs other attributes to set these: it sets user and group together, and both times.
fn is_partial(set: &SetStat) -> bool {
    set.uid.is_some() != set.gid.is_some() || set.atime.is_some() != set.mtime.is_some()
}

/// Returns the attributes to set. `found` has those that must be set along.
fn attributes_of(set: &SetStat, found: &Attributes, kills: bool) -> Attributes {
    let (uid, gid) = found.owner.unwrap_or_default();
    let (atime, mtime) = found.times.unwrap_or_default();
    let owner = set.uid.is_some() || set.gid.is_some();
    let times = set.atime.is_some() || set.mtime.is_some();
    let has_set_id = found.permissions.filter(|mode| kills && mode & SET_ID != 0);
    Attributes {
        size: set.size,
        owner: owner.then(|| (set.uid.unwrap_or(uid), set.gid.unwrap_or(gid))),
        permissions: set.mode.or(has_set_id.map(|mode| mode & 0o7777 & !SET_ID)),
        times: times.then(|| (set.atime.map_or(atime, secs_of), set.mtime.map_or(mtime, secs_of))),
    }
}

/// Returns a time in seconds. SFTP cannot name the server's present time, so this machine's is sent.
fn secs_of(time: SetTime) -> u32 {
    let secs = match time {
        SetTime::At(time) => time.secs.max(0).unsigned_abs(),
        SetTime::Now => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs()),
    };
    u32::try_from(secs).unwrap_or(u32::MAX)
}
