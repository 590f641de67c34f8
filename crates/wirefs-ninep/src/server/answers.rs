//! Answers of the file system, each as the result that its call promises. Any other answer is an I/O error.

use bytes::Bytes;
use wirefs_client::call::{Answer, Entry, Handle, Listed};
use wirefs_op::{Errno, Stat};

fn other<T>(answer: Answer) -> Result<T, Errno> {
    match answer {
        Answer::Fail(errno) => Err(errno),
        _ => Err(Errno::Io),
    }
}

pub(super) fn done(answer: Answer) -> Result<(), Errno> {
    if let Answer::Done = answer { Ok(()) } else { other(answer) }
}

pub(super) fn entry(answer: Answer) -> Result<Entry, Errno> {
    match answer {
        Answer::Entry(entry) => Ok(entry),
        Answer::NoEntry(_) => Err(Errno::NotFound),
        answer => other(answer),
    }
}

pub(super) fn stat(answer: Answer) -> Result<Stat, Errno> {
    if let Answer::Attr(stat, _) = answer { Ok(stat) } else { other(answer) }
}

pub(super) fn opened(answer: Answer) -> Result<Handle, Errno> {
    if let Answer::Opened(handle, _) = answer { Ok(handle) } else { other(answer) }
}

pub(super) fn created(answer: Answer) -> Result<(Entry, Handle), Errno> {
    if let Answer::Created(entry, handle, _) = answer { Ok((entry, handle)) } else { other(answer) }
}

pub(super) fn data(answer: Answer) -> Result<Bytes, Errno> {
    if let Answer::Data(data) = answer { Ok(data) } else { other(answer) }
}

pub(super) fn count(answer: Answer) -> Result<u32, Errno> {
    if let Answer::Count(count) = answer { Ok(count) } else { other(answer) }
}

pub(super) fn listing(answer: Answer) -> Result<Vec<Listed>, Errno> {
    match answer {
        Answer::Listing(listed) => Ok(listed),
        Answer::ListingEnd => Ok(Vec::new()),
        answer => other(answer),
    }
}
