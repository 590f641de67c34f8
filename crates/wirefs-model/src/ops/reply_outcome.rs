//! What the replies to one request say, as far as two trees must say the same.

use crate::posix::{Outcome, Seen};
use std::collections::BTreeMap;
use wirefs_op::message::get::{GotMode, Rget};
use wirefs_op::message::target::NOFD;
use wirefs_op::{DirEntry, Errno, Reply, Stat};

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It was left out: its slot is empty.
    LeftOut,
    /// The replies break the protocol.
    Nonsense(String),
    /// One by one, in the order of the reply's fields.
    Parts(Vec<Outcome>),
}

/// Errors for an operation on an object of the wrong kind; which one depends on how it is opened.
const WRONG_KIND: [Errno; 5] =
    [Errno::IsDirectory, Errno::Invalid, Errno::Loop, Errno::NoSuchDevice, Errno::NotSupported];

impl Told {
    /// Whether another tree may tell `other` where the model tells `self`.
    pub(super) fn allows(&self, other: &Told, counts_subdirectories: bool) -> bool {
        let (Told::Parts(model), Told::Parts(other)) = (self, other) else { return self == other };
        let pairs = model.iter().zip(other);
        model.len() == other.len()
            && pairs.into_iter().all(|(model, other)| match (model, other) {
                (Outcome::Failed(one), Outcome::Failed(two)) if WRONG_KIND.contains(one) => {
                    WRONG_KIND.contains(two)
                }
                _ => model.allows(other, counts_subdirectories),
            })
    }

    /// Whether it failed because of what kind of object it is.
    pub(super) fn is_wrong_kind(&self) -> bool {
        matches!(self, Told::Parts(parts) if matches!(parts.as_slice(), [Outcome::Failed(errno)] if WRONG_KIND.contains(errno)))
    }

    /// Whether it did nothing, or not all of it.
    pub(super) fn has_failed(&self) -> bool {
        match self {
            Told::LeftOut | Told::Nonsense(_) => true,
            Told::Parts(parts) => matches!(parts.as_slice(), [Outcome::Failed(_)]),
        }
    }

    /// Whether the file system cannot do it.
    pub(super) fn is_unsupported(&self) -> bool {
        *self == Told::Parts(vec![Outcome::Failed(Errno::NotSupported)])
    }

    /// What a seek answered.
    pub(super) fn place(&self) -> Option<Result<u64, Errno>> {
        match self {
            Told::Parts(parts) => match parts.as_slice() {
                [Outcome::Place(place)] => Some(Ok(*place)),
                [Outcome::Failed(errno)] => Some(Err(*errno)),
                _ => None,
            },
            Told::LeftOut | Told::Nonsense(_) => None,
        }
    }

    /// What the replies to anything but a listing say.
    pub(super) fn by(replies: Vec<Reply>) -> Told {
        let single = match <[Reply; 1]>::try_from(replies) {
            Ok([single]) => single,
            Err(replies) => return by_pieces(&replies),
        };
        Told::Parts(match single {
            Reply::Error(error) => vec![Outcome::Failed(error.errno)],
            Reply::Get(_) => return by_pieces(&[single]),
            Reply::Put(put) => vec![
                is(put.fd != NOFD),
                Outcome::Count(put.count.into()),
                // Where nothing was written, nothing went anywhere.
                Outcome::Place(if put.count > 0 { put.offset } else { 0 }),
                is(put.before != 0),
                stat(put.stat),
                stat(put.dir),
            ],
            Reply::Remove(remove) => vec![stat(remove.dir)],
            Reply::Rename(rename) => vec![stat(rename.stat), stat(rename.from_dir), stat(rename.to_dir)],
            Reply::Link(link) => vec![stat(link.stat), stat(link.dir)],
            Reply::Xattr(xattr) => {
                vec![stat(xattr.stat), Outcome::Data(sorted_names(&xattr.value.0))]
            }
            Reply::Allocate(allocate) => vec![stat(allocate.stat)],
            Reply::Copy(copy) => vec![Outcome::Count(copy.count), stat(copy.stat)],
            Reply::Seek(seek) => vec![Outcome::Place(seek.offset)],
            Reply::Commit(_) | Reply::Statfs(_) => vec![Outcome::Done],
            Reply::Version(_)
            | Reply::Attach(_)
            | Reply::Flush(_)
            | Reply::Ping(_)
            | Reply::Lock(_)
            | Reply::Find(_)
            | Reply::Recall(_)
            | Reply::Alone(_)
            | Reply::Limited(_) => {
                return Told::Nonsense(format!("{single:?}"));
            }
        })
    }

    /// What a whole listing says.
    pub(super) fn by_listing(entries: &[DirEntry]) -> Told {
        let by_name: BTreeMap<&[u8], &Stat> =
            entries.iter().map(|entry| (entry.name.as_slice(), &entry.stat)).collect();
        if by_name.len() != entries.len() {
            return Told::Nonsense("a name is listed twice".into());
        }
        let names = Outcome::Names(by_name.keys().map(|name| name.to_vec()).collect());
        let stats = by_name.into_values().map(|stat| Outcome::Seen(Seen::of(stat)));
        Told::Parts([names].into_iter().chain(stats).collect())
    }
}

/// What the replies to a Tget of bytes say together.
fn by_pieces(replies: &[Reply]) -> Told {
    let pieces: Vec<&Rget> = replies
        .iter()
        .filter_map(|reply| if let Reply::Get(get) = reply { Some(get) } else { None })
        .collect();
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
        return Told::Nonsense("no reply".into());
    };
    if pieces.len() != replies.len() {
        return Told::Nonsense("other replies among those to a Tget".into());
    }
    let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.data.0.iter().copied()).collect();
    Told::Parts(vec![
        is(first.fd != NOFD),
        stat(first.stat),
        is(last.mode.has(GotMode::DATA)),
        is(last.mode.has(GotMode::MORE)),
        is(last.mode.has(GotMode::ABSENT)),
        Outcome::Data(bytes),
    ])
}

fn is(fact: bool) -> Outcome {
    Outcome::Count(fact.into())
}

fn stat(stat: Option<Stat>) -> Outcome {
    stat.map_or(Outcome::Done, |stat| Outcome::Seen(Seen::of(&stat)))
}

/// Lists of attribute names have no order; a value ends in no NUL, so it stays as it is.
fn sorted_names(value: &[u8]) -> Vec<u8> {
    if !value.ends_with(b"\0") {
        return value.to_vec();
    }
    let mut names: Vec<&[u8]> = value.split_inclusive(|byte| *byte == 0).collect();
    names.retain(|name| name.starts_with(b"user."));
    names.sort_unstable();
    names.concat()
}
