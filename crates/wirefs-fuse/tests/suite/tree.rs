//! The tree of the file system in memory.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Entry, Handle, Listed, PageCache, ROOT, TreeNodeId};
use wirefs_op::{Errno, FileId, FsStat, Kind, SetStat, SetTime, Stat, Timestamp};

/// The validity of answers.
const TTL: Duration = Duration::MAX;

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    kind: Option<Kind>,
    mode: u32,
    nlink: u32,
    rdev: u32,
    times: [Timestamp; 2],
    pub(crate) data: Vec<u8>,
    pub(crate) entries: BTreeMap<Vec<u8>, TreeNodeId>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

pub(crate) struct Tree {
    pub(crate) nodes: BTreeMap<TreeNodeId, Node>,
    handles: u64,
}

impl Default for Tree {
    fn default() -> Tree {
        let root = Node { kind: Some(Kind::Directory), mode: 0o755, nlink: 2, ..Node::default() };
        Tree { nodes: BTreeMap::from([(ROOT, root)]), handles: 0 }
    }
}

pub(crate) type Outcome = Result<Answer, Errno>;

impl Tree {
    fn node(&mut self, node: TreeNodeId) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&node).ok_or(Errno::Stale)
    }

    fn stat(&self, id: TreeNodeId) -> Result<Stat, Errno> {
        let node = self.nodes.get(&id).ok_or(Errno::Stale)?;
        let bytes = node.data.len() as u64;
        Ok(Stat {
            id: FileId { fs: 0, ino: id.0 + 1000, generation: 0 },
            kind: node.kind.ok_or(Errno::Stale)?,
            version: 0,
            mode: node.mode,
            nlink: node.nlink,
            uid: 0,
            gid: 0,
            rdev: node.rdev,
            size: bytes,
            blocks: bytes.div_ceil(512),
            blksize: 4096,
            atime: node.times[0],
            mtime: node.times[1],
            ctime: node.times[1],
            without_xattrs: true,
            leased: false,
        })
    }

    fn entry(&self, node: TreeNodeId) -> Result<Entry, Errno> {
        Ok(Entry { node, stat: self.stat(node)?, entry_ttl: TTL, attr_ttl: TTL, is_held: true })
    }

    fn child(&mut self, parent: TreeNodeId, name: &[u8]) -> Result<TreeNodeId, Errno> {
        self.node(parent)?.entries.get(name).copied().ok_or(Errno::NotFound)
    }

    /// Creates a node, with a name if one is given.
    pub(crate) fn make(
        &mut self,
        parent: TreeNodeId,
        name: Option<&[u8]>,
        kind: Kind,
        mode: u32,
    ) -> Result<Entry, Errno> {
        let id = TreeNodeId(self.nodes.len() as u64 + 100);
        let nlink = u32::from(name.is_some());
        self.nodes.insert(id, Node { kind: Some(kind), mode: mode & 0o7777, nlink, ..Node::default() });
        if let Some(name) = name {
            self.node(parent)?.entries.insert(name.to_vec(), id);
        }
        self.entry(id)
    }

    fn opened(&mut self) -> Handle {
        self.handles += 1;
        Handle(self.handles)
    }

    pub(crate) fn answer(&mut self, call: Call<'_>) -> Outcome {
        Ok(match call {
            Call::Lookup { parent, name } => match self.child(parent, name) {
                Ok(node) => Answer::Entry(self.entry(node)?),
                Err(_) => Answer::NoEntry(TTL),
            },
            Call::Getattr { node, .. } => Answer::Attr(self.stat(node)?, TTL),
            Call::Setattr { node, set, .. } => self.set(node, set)?,
            Call::Readlink { node } => Answer::Data(self.node(node)?.data.clone().into()),
            Call::Mknod { parent, name, mode, umask, rdev } => {
                let kind = Kind::from_mode(mode).ok_or(Errno::Invalid)?;
                let made = self.make(parent, Some(name), kind, mode & !umask)?;
                self.node(made.node)?.rdev = rdev;
                Answer::Entry(self.entry(made.node)?)
            }
            Call::Mkdir { parent, name, mode, umask } => {
                Answer::Entry(self.make(parent, Some(name), Kind::Directory, mode & !umask)?)
            }
            Call::Symlink { parent, name, target } => {
                let made = self.make(parent, Some(name), Kind::Symlink, 0o777)?;
                self.node(made.node)?.data = target.to_vec();
                Answer::Entry(self.entry(made.node)?)
            }
            Call::Unlink { parent, name } | Call::Rmdir { parent, name } => {
                let gone = self.child(parent, name)?;
                self.node(parent)?.entries.remove(name);
                let gone = self.node(gone)?;
                gone.nlink = gone.nlink.saturating_sub(1);
                Answer::Done
            }
            Call::Rename { parent, name, to_parent, to_name, flags } => {
                let moved = self.child(parent, name)?;
                if flags == 1 && self.child(to_parent, to_name).is_ok() {
                    return Err(Errno::Exists);
                }
                self.node(parent)?.entries.remove(name);
                self.node(to_parent)?.entries.insert(to_name.to_vec(), moved);
                Answer::Done
            }
            Call::Link { node, parent, name } => {
                self.node(node)?.nlink += 1;
                self.node(parent)?.entries.insert(name.to_vec(), node);
                Answer::Entry(self.entry(node)?)
            }
            call => return self.open(call),
        })
    }

    fn open(&mut self, call: Call<'_>) -> Outcome {
        Ok(match call {
            Call::Open { node, how } => {
                if how.truncate {
                    self.node(node)?.data.clear();
                }
                Answer::Opened(self.opened(), if how.direct { PageCache::Bypass } else { PageCache::Keep })
            }
            Call::Opendir { .. } => Answer::Opened(self.opened(), PageCache::Keep),
            Call::Create { parent, name, mode, umask, .. } => {
                let made = self.make(parent, Some(name), Kind::File, mode & !umask)?;
                Answer::Created(made, self.opened(), PageCache::Keep)
            }
            Call::Tmpfile { parent, mode, umask, .. } => {
                let made = self.make(parent, None, Kind::File, mode & !umask)?;
                Answer::Created(made, self.opened(), PageCache::Keep)
            }
            Call::Readdir { node, offset, bytes_max, entry_bytes, with_stats, .. } => {
                self.list(node, offset, bytes_max, entry_bytes, with_stats)?
            }
            call => return self.attribute(call),
        })
    }

    fn attribute(&mut self, call: Call<'_>) -> Outcome {
        Ok(match call {
            Call::Getxattr { node, name, .. } => {
                let value = self.node(node)?.xattrs.get(name).cloned();
                Answer::Data(value.ok_or(Errno::NoData)?.into())
            }
            Call::Listxattr { node, .. } => {
                let names = self.node(node)?.xattrs.keys().flat_map(|name| [name.as_slice(), b"\0"].concat());
                Answer::Data(names.collect::<Vec<u8>>().into())
            }
            Call::Setxattr { node, name, value, .. } => {
                self.node(node)?.xattrs.insert(name.to_vec(), value.to_vec());
                Answer::Done
            }
            Call::Removexattr { node, name } => {
                self.node(node)?.xattrs.remove(name).ok_or(Errno::NoData)?;
                Answer::Done
            }
            Call::Statfs { .. } => Answer::FsStat(FsStat {
                block_bytes: 4096,
                blocks: 1000,
                blocks_free: 900,
                blocks_available: 800,
                files: 70,
                files_free: 60,
                name_bytes_max: 255,
            }),
            call => return self.data(call),
        })
    }

    fn data(&mut self, call: Call<'_>) -> Outcome {
        let index = |offset: u64| usize::try_from(offset).map_err(|_| Errno::FileTooBig);
        Ok(match call {
            Call::Read { node, offset, count, .. } => {
                let data = &self.node(node)?.data;
                let rest = data.get(index(offset)?..).unwrap_or_default();
                Answer::Data(Bytes::copy_from_slice(&rest[..rest.len().min(count as usize)]))
            }
            Call::Write { node, offset, data, .. } => {
                let file = &mut self.node(node)?.data;
                let end = index(offset)? + data.len();
                file.resize(file.len().max(end), 0);
                file[index(offset)?..end].copy_from_slice(&data);
                Answer::Count(u32::try_from(data.len()).map_err(|_| Errno::FileTooBig)?)
            }
            Call::Fallocate { node, offset, length, mode: 0, .. } => {
                let file = &mut self.node(node)?.data;
                file.resize(file.len().max(index(offset + length)?), 0);
                Answer::Done
            }
            Call::Lseek { node, offset, whence: 3, .. } if offset < self.node(node)?.data.len() as u64 => {
                Answer::Offset(offset)
            }
            Call::Lseek { node, whence: 4, .. } => Answer::Offset(self.node(node)?.data.len() as u64),
            Call::Lseek { .. } => return Err(Errno::NoSuchDevice),
            Call::CopyRange { from, from_offset, to, to_offset, length, .. } => {
                let data = &self.node(from)?.data;
                let rest = data.get(index(from_offset)?..).unwrap_or_default();
                let copied = rest[..rest.len().min(index(length)?)].to_vec();
                let file = &mut self.node(to)?.data;
                let end = index(to_offset)? + copied.len();
                file.resize(file.len().max(end), 0);
                file[index(to_offset)?..end].copy_from_slice(&copied);
                Answer::Count(u32::try_from(copied.len()).map_err(|_| Errno::FileTooBig)?)
            }
            Call::Fsync { .. }
            | Call::Fsyncdir { .. }
            | Call::Syncfs { .. }
            | Call::Release { .. }
            | Call::Releasedir { .. }
            | Call::Forget { .. } => Answer::Done,
            _ => return Err(Errno::NotSupported),
        })
    }

    fn set(&mut self, id: TreeNodeId, set: SetStat) -> Outcome {
        let node = self.node(id)?;
        if let Some(mode) = set.mode {
            node.mode = mode;
        }
        if let Some(size) = set.size {
            node.data.resize(usize::try_from(size).map_err(|_| Errno::FileTooBig)?, 0);
        }
        for (time, set) in node.times.iter_mut().zip([set.atime, set.mtime]) {
            match set {
                Some(SetTime::At(at)) => *time = at,
                Some(SetTime::Now) => *time = Timestamp { secs: 1, nanos: 2 },
                None => {}
            }
        }
        Ok(Answer::Attr(self.stat(id)?, TTL))
    }

    fn list(
        &mut self,
        node: TreeNodeId,
        offset: u64,
        bytes_max: u32,
        entry_bytes: u32,
        stats: bool,
    ) -> Outcome {
        let dots = [(b".".to_vec(), node), (b"..".to_vec(), ROOT)];
        let entries = self.node(node)?.entries.clone();
        let mut listing = Vec::new();
        let mut room = bytes_max;
        let skip = usize::try_from(offset).map_err(|_| Errno::Invalid)?;
        for (next, (name, id)) in (1..).zip(dots.into_iter().chain(entries)).skip(skip) {
            let cost = (entry_bytes + u32::try_from(name.len()).unwrap_or(u32::MAX)).next_multiple_of(8);
            let Some(left) = room.checked_sub(cost) else { break };
            room = left;
            let entry = if stats && next > 2 { Some(self.entry(id)?) } else { None };
            let stat = self.stat(id)?;
            listing.push(Listed { name, next, ino: stat.id.ino, st_mode: stat.st_mode(), entry });
        }
        Ok(Answer::Listing(listing))
    }
}
