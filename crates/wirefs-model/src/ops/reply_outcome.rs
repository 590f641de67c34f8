//! The outcome of one request: the parts of the replies on which two trees must agree.

use crate::posix::{ObservedStat, OperationOutcome};
use std::collections::BTreeMap;
use wirefs_op::message::get::{GotMode, Rget};
use wirefs_op::message::target::NOFD;
use wirefs_op::{DirEntry, Errno, Reply, Stat};

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplyOutcome {
    /// Skipped: the slot is empty.
    Skipped,
    /// A violation of the protocol.
    ProtocolError(String),
    /// The values of the reply, in the order of its fields.
    Parts(Vec<OperationOutcome>),
}

/// Errors for an object of the wrong type; the exact one depends on how the tree opens it.
const WRONG_KIND: [Errno; 5] =
    [Errno::IsDirectory, Errno::Invalid, Errno::Loop, Errno::NoSuchDevice, Errno::NotSupported];

impl ReplyOutcome {
    /// Returns whether `other` is an allowed outcome where the model has `self`.
    pub(super) fn allows(&self, other: &ReplyOutcome, counts_subdirectories: bool) -> bool {
        let (ReplyOutcome::Parts(model), ReplyOutcome::Parts(other)) = (self, other) else {
            return self == other;
        };
        let pairs = model.iter().zip(other);
        model.len() == other.len()
            && pairs.into_iter().all(|(model, other)| match (model, other) {
                (OperationOutcome::Failed(one), OperationOutcome::Failed(two))
                    if WRONG_KIND.contains(one) =>
                {
                    WRONG_KIND.contains(two)
                }
                _ => model.allows(other, counts_subdirectories),
            })
    }

    /// Returns whether the request failed because of the object's type.
    pub(super) fn is_wrong_kind(&self) -> bool {
        matches!(self, ReplyOutcome::Parts(parts) if matches!(parts.as_slice(), [OperationOutcome::Failed(errno)] if WRONG_KIND.contains(errno)))
    }

    /// Returns whether the request did nothing, or only a part.
    pub(super) fn has_failed(&self) -> bool {
        match self {
            ReplyOutcome::Skipped | ReplyOutcome::ProtocolError(_) => true,
            ReplyOutcome::Parts(parts) => matches!(parts.as_slice(), [OperationOutcome::Failed(_)]),
        }
    }

    /// Returns whether the file system lacks the feature.
    pub(super) fn is_unsupported(&self) -> bool {
        *self == ReplyOutcome::Parts(vec![OperationOutcome::Failed(Errno::NotSupported)])
    }

    /// Returns the result of a seek.
    pub(super) fn place(&self) -> Option<Result<u64, Errno>> {
        match self {
            ReplyOutcome::Parts(parts) => match parts.as_slice() {
                [OperationOutcome::Offset(place)] => Some(Ok(*place)),
                [OperationOutcome::Failed(errno)] => Some(Err(*errno)),
                _ => None,
            },
            ReplyOutcome::Skipped | ReplyOutcome::ProtocolError(_) => None,
        }
    }

    /// Returns the outcome of the replies to a request, except for listings.
    pub(super) fn from_replies(replies: Vec<Reply>) -> ReplyOutcome {
        let single = match <[Reply; 1]>::try_from(replies) {
            Ok([single]) => single,
            Err(replies) => return from_pieces(&replies),
        };
        ReplyOutcome::Parts(match single {
            Reply::Error(error) => vec![OperationOutcome::Failed(error.errno)],
            Reply::Get(_) => return from_pieces(&[single]),
            Reply::Put(put) => vec![
                flag(put.fd != NOFD),
                OperationOutcome::Count(put.count.into()),
                // Without written data the offset is irrelevant.
                OperationOutcome::Offset(if put.count > 0 { put.offset } else { 0 }),
                flag(put.before != 0),
                stat(put.stat),
                stat(put.dir),
            ],
            Reply::Remove(remove) => vec![stat(remove.dir)],
            Reply::Rename(rename) => vec![stat(rename.stat), stat(rename.from_dir), stat(rename.to_dir)],
            Reply::Link(link) => vec![stat(link.stat), stat(link.dir)],
            Reply::Xattr(xattr) => {
                vec![stat(xattr.stat), OperationOutcome::Data(sorted_names(&xattr.value.0))]
            }
            Reply::Allocate(allocate) => vec![stat(allocate.stat)],
            Reply::Copy(copy) => vec![OperationOutcome::Count(copy.count), stat(copy.stat)],
            Reply::Seek(seek) => vec![OperationOutcome::Offset(seek.offset)],
            Reply::Commit(_) | Reply::Statfs(_) => vec![OperationOutcome::Done],
            Reply::Version(_)
            | Reply::Attach(_)
            | Reply::Flush(_)
            | Reply::Ping(_)
            | Reply::Lock(_)
            | Reply::Find(_)
            | Reply::Recall(_)
            | Reply::Alone(_)
            | Reply::Limited(_)
            | Reply::Times(_) => {
                return ReplyOutcome::ProtocolError(format!("{single:?}"));
            }
        })
    }

    /// Returns the outcome of a whole listing.
    pub(super) fn from_listing(entries: &[DirEntry]) -> ReplyOutcome {
        let by_name: BTreeMap<&[u8], &Stat> =
            entries.iter().map(|entry| (entry.name.as_slice(), &entry.stat)).collect();
        if by_name.len() != entries.len() {
            return ReplyOutcome::ProtocolError("a name is listed twice".into());
        }
        let names = OperationOutcome::Names(by_name.keys().map(|name| name.to_vec()).collect());
        let stats = by_name.into_values().map(|stat| OperationOutcome::Stat(ObservedStat::of(stat)));
        ReplyOutcome::Parts([names].into_iter().chain(stats).collect())
    }
}

/// Returns the outcome of the replies to a Tget of bytes.
fn from_pieces(replies: &[Reply]) -> ReplyOutcome {
    let pieces: Vec<&Rget> = replies
        .iter()
        .filter_map(|reply| if let Reply::Get(get) = reply { Some(get) } else { None })
        .collect();
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
        return ReplyOutcome::ProtocolError("no reply".into());
    };
    if pieces.len() != replies.len() {
        return ReplyOutcome::ProtocolError("other replies among those to a Tget".into());
    }
    let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.data.0.iter().copied()).collect();
    ReplyOutcome::Parts(vec![
        flag(first.fd != NOFD),
        stat(first.stat),
        flag(last.mode.has(GotMode::DATA)),
        flag(last.mode.has(GotMode::MORE)),
        flag(last.mode.has(GotMode::ABSENT)),
        OperationOutcome::Data(bytes),
    ])
}

fn flag(fact: bool) -> OperationOutcome {
    OperationOutcome::Count(fact.into())
}

fn stat(stat: Option<Stat>) -> OperationOutcome {
    stat.map_or(OperationOutcome::Done, |stat| OperationOutcome::Stat(ObservedStat::of(&stat)))
}

/// Sorts a list of attribute names, which has no order. A value does not end in NUL and is unchanged.
fn sorted_names(value: &[u8]) -> Vec<u8> {
    if !value.ends_with(b"\0") {
        return value.to_vec();
    }
    let mut names: Vec<&[u8]> = value.split_inclusive(|byte| *byte == 0).collect();
    names.retain(|name| name.starts_with(b"user."));
    names.sort_unstable();
    names.concat()
}
