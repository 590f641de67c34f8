//! Tput: creates, changes attributes, writes.

use super::tree::{At, Failure};
use crate::convert::{identity, kind_message, set_message, stat_of};
use crate::proto;
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::target::NOFD;
use wirefs_op::{Errno, FileId, Kind, SetStat, Stat};

/// In place of a version that is not known: it is none that a client has.
const UNKNOWN: u64 = u64::MAX;
/// The set-id bits of a mode.
const SET_ID: u32 = 0o6000;

impl At<'_> {
    /// # Cost
    /// One round trip for each of: creation, change of attributes, write, sync.
    pub(super) fn put(&self, request: &Tput) -> Result<Rput, Failure> {
        let mode = request.mode;
        if mode.has(PutMode::NAMELESS) || mode.has(PutMode::REMOVE) {
            return Err(Errno::NotSupported.into());
        }
        let path = &request.target.path;
        let (made, is_new) = match request.create.as_ref().filter(|_| mode.has(PutMode::CREATE)) {
            Some(create) => self.create(request, create)?,
            None => (None, false),
        };
        let has_data = mode.has(PutMode::DATA)
            && request.create.as_ref().is_none_or(|create| create.kind != Kind::Symlink);
        // With a creation, the id of the request is the directory's.
        let object = match (&made, mode.has(PutMode::CREATE)) {
            (Some(made), _) => Some(made.id),
            (None, true) => None,
            (None, false) => request.target.id,
        };
        let mut stat = made;
        if mode.has(PutMode::KILL_PRIVILEGES) && !is_new {
            stat = Some(self.kill_privileges(request, object)?);
        }
        if mode.has(PutMode::STAT) && !request.set.is_empty() {
            stat = Some(self.set(request, object, &request.set)?);
        }
        let mut count = 0;
        if has_data {
            let (written, after) = self.write(request, object)?;
            count = written;
            stat = Some(after);
        }
        if mode.has(PutMode::SYNC) {
            let path = self.named(path, object);
            let done = self.remote.ask(|mut client| async move { client.commit(path).await })?;
            self.check(done.verifier)?;
        }
        let stat = match stat {
            Some(stat) => stat,
            None => self.stat(path, object)?,
        };
        let offset = match mode.has(PutMode::APPEND) {
            true => stat.size.saturating_sub(u64::from(count)),
            false => request.offset,
        };
        let before = if is_new { 0 } else { UNKNOWN };
        Ok(Rput { fd: NOFD, count, offset, before, stat: Some(stat), dir: None })
    }

    /// Creates an object, or finds the file that is there. True: it is new.
    fn create(&self, request: &Tput, create: &Create) -> Result<(Option<Stat>, bool), Failure> {
        let path = self.full(&request.target.path);
        let mode = create.mode & !create.cred.umask & 0o7777;
        let ask = proto::CreateRequest {
            path: path.clone().into(),
            mode,
            exclusive: true,
            kind: kind_message(create.kind).into(),
            device: create.rdev,
        };
        let made = match create.kind {
            Kind::Directory => self.remote.ask(|mut client| async move { client.make_directory(ask).await }),
            Kind::Symlink => {
                let ask = proto::SymlinkRequest { path: path.into(), target: request.data.0.clone() };
                self.remote.ask(|mut client| async move { client.symlink(ask).await })
            }
            Kind::File | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                self.remote.ask(|mut client| async move { client.create(ask).await })
            }
        };
        match made.map_err(Failure::from) {
            Ok(made) => Ok((Some(stat_of(&made)), true)),
            Err(Failure::Errno(Errno::Exists))
                if create.kind == Kind::File && !request.mode.has(PutMode::EXCLUSIVE) =>
            {
                let found = self.stat(&request.target.path, None)?;
                if found.kind == Kind::File { Ok((Some(found), false)) } else { Err(Errno::Exists.into()) }
            }
            Err(failure) => Err(failure),
        }
    }

    fn kill_privileges(&self, request: &Tput, object: Option<FileId>) -> Result<Stat, Failure> {
        let found = self.stat(&request.target.path, object)?;
        if found.mode & SET_ID == 0 {
            return Ok(found);
        }
        let set = SetStat { mode: Some(found.mode & !SET_ID), ..SetStat::default() };
        self.set(request, object, &set)
    }

    fn set(&self, request: &Tput, object: Option<FileId>, set: &SetStat) -> Result<Stat, Failure> {
        let ask = set_message(self.full(&request.target.path), object, set);
        let found = self.remote.ask(|mut client| async move { client.set_attributes(ask).await })?;
        Ok(stat_of(&found))
    }

    fn write(&self, request: &Tput, object: Option<FileId>) -> Result<(u32, Stat), Failure> {
        let ask = proto::WriteRequest {
            path: self.full(&request.target.path).into(),
            offset: request.offset,
            data: request.data.0.clone(),
            append: request.mode.has(PutMode::APPEND),
            object: object.map(identity),
        };
        let written = self.remote.ask(|mut client| async move { client.write(ask).await })?;
        self.check(written.verifier)?;
        Ok((written.count, stat_of(&written.attributes.ok_or(Errno::Protocol)?)))
    }
}
