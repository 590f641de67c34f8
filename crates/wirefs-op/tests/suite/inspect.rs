//! Accessors for the parts of any message.

use bytes::Bytes;
use wirefs_op::find_listing::{FindReader, FindRecord, FindWriter};
use wirefs_op::limits::{
    DATA_BYTES_MAX, FIND_PATH_BYTES_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX,
};
use wirefs_op::wire::Malformed;
use wirefs_op::{Frame, Reply, Request, Tag, TreePath, listing};

/// Returns the data of a request.
pub(crate) fn request_data(request: &Request) -> &[u8] {
    match request {
        Request::Put(put) => &put.data.0,
        Request::Xattr(xattr) => &xattr.value.0,
        Request::Version(_)
        | Request::Find(_)
        | Request::Recalled(_)
        | Request::Number(_)
        | Request::Attach(_)
        | Request::Flush(_)
        | Request::Ping(_)
        | Request::Remove(_)
        | Request::Get(_)
        | Request::Rename(_)
        | Request::Link(_)
        | Request::Statfs(_)
        | Request::Lock(_)
        | Request::Allocate(_)
        | Request::Copy(_)
        | Request::Seek(_)
        | Request::Commit(_) => &[],
    }
}

/// Returns the data of a reply.
pub(crate) fn reply_data(reply: &Reply) -> &[u8] {
    match reply {
        Reply::Get(get) => &get.data.0,
        Reply::Xattr(xattr) => &xattr.value.0,
        Reply::Find(find) => &find.data.0,
        Reply::Version(_)
        | Reply::Recall(_)
        | Reply::Alone(_)
        | Reply::Limited(_)
        | Reply::Times(_)
        | Reply::Attach(_)
        | Reply::Error(_)
        | Reply::Flush(_)
        | Reply::Ping(_)
        | Reply::Remove(_)
        | Reply::Put(_)
        | Reply::Rename(_)
        | Reply::Link(_)
        | Reply::Statfs(_)
        | Reply::Lock(_)
        | Reply::Allocate(_)
        | Reply::Copy(_)
        | Reply::Seek(_)
        | Reply::Commit(_) => &[],
    }
}

/// Returns the paths in a request.
pub(crate) fn request_paths(request: &Request) -> Vec<&TreePath> {
    match request {
        Request::Version(_)
        | Request::Flush(_)
        | Request::Ping(_)
        | Request::Recalled(_)
        | Request::Number(_) => vec![],
        Request::Attach(attach) => vec![&attach.path],
        Request::Remove(remove) => vec![&remove.place.path],
        Request::Get(get) => vec![&get.target.path],
        Request::Put(put) => vec![&put.target.path],
        Request::Rename(rename) => vec![&rename.from.path, &rename.to.path],
        Request::Link(link) => vec![&link.target.path, &link.to.path],
        Request::Xattr(xattr) => vec![&xattr.target.path],
        Request::Statfs(statfs) => vec![&statfs.target.path],
        Request::Lock(lock) => vec![&lock.target.path],
        Request::Allocate(allocate) => vec![&allocate.target.path],
        Request::Copy(copy) => vec![&copy.from.path, &copy.to.path],
        Request::Seek(seek) => vec![&seek.target.path],
        Request::Commit(commit) => vec![&commit.target.path],
        Request::Find(find) => vec![&find.target.path],
    }
}

fn path_is_clean(path: &TreePath) -> bool {
    let is_clean = |name: &[u8]| {
        !matches!(name, b"" | b"." | b"..") && name.len() <= NAME_BYTES_MAX && !name.contains(&0)
    };
    let bytes = path.as_bytes();
    bytes.len() <= PATH_BYTES_MAX && (bytes.is_empty() || bytes.split(|byte| *byte == b'/').all(is_clean))
}

fn frame_is_in_limits(frame: &Frame) {
    assert!(frame.wire_len() <= MESSAGE_BYTES_MAX);
    let size: [u8; 4] = frame.head[..4].try_into().unwrap();
    assert_eq!(u32::from_le_bytes(size) as usize, frame.wire_len());
}

/// Decodes untrusted bytes as a request; checks that the result is within the limits and encodes to the same
/// bytes.
pub(crate) fn request_from(body: &[u8]) -> Result<(Tag, Request), Malformed> {
    let (tag, request) = Request::decode(Bytes::copy_from_slice(body))?;
    assert!(request_paths(&request).into_iter().all(path_is_clean), "{request:?}");
    assert!(request_data(&request).len() <= DATA_BYTES_MAX);
    let frame = request.encode(tag);
    frame_is_in_limits(&frame);
    assert_eq!(frame.to_body(), body, "{request:?}");
    Ok((tag, request))
}

/// Decodes untrusted bytes as a reply; checks that the result is within the limits and encodes to the same
/// bytes.
pub(crate) fn reply_from(body: &[u8]) -> Result<(Tag, Reply), Malformed> {
    let (tag, reply) = Reply::decode(Bytes::copy_from_slice(body))?;
    assert!(reply_data(&reply).len() <= DATA_BYTES_MAX);
    let frame = reply.encode(tag);
    frame_is_in_limits(&frame);
    // All unknown error numbers become EIO.
    if !matches!(reply, Reply::Error(_)) {
        assert_eq!(frame.to_body(), body, "{reply:?}");
    }
    Ok((tag, reply))
}

/// Decodes untrusted bytes as a listing; checks that names are clean and positions are not 0.
pub(crate) fn listing_from(data: &[u8]) -> Result<(), Malformed> {
    for entry in listing::entries(Bytes::copy_from_slice(data))? {
        assert!(TreePath::root().join(&entry.name).is_some() && entry.next != 0);
    }
    Ok(())
}

/// Decodes untrusted bytes as a stream message; checks that the result is clean, within the limits, and
/// encodes to the same bytes.
pub(crate) fn stream_from(data: &[u8]) -> Result<(), Malformed> {
    let mut writer = FindWriter::new(data.len());
    let mut path_bytes = 0;
    let mut outcome = Ok(());
    for record in FindReader::new(Bytes::copy_from_slice(data)) {
        let fits = match record {
            Ok(FindRecord::Directory(directory)) => {
                path_bytes += directory.path.as_bytes().len();
                assert!(path_is_clean(&directory.path) && path_bytes <= FIND_PATH_BYTES_MAX);
                writer.directory(&directory)
            }
            Ok(FindRecord::Entry(entry)) => {
                assert!(TreePath::root().join(&entry.name).is_some());
                writer.entry(&entry.name, &entry.stat, entry.contents.as_deref())
            }
            Err(malformed) => {
                outcome = Err(malformed);
                break;
            }
        };
        assert!(fits, "more than it was");
    }
    let again = writer.finish();
    assert_eq!(again, data.get(..again.len()).unwrap_or_default());
    assert!(outcome.is_err() || again.len() == data.len());
    outcome
}

/// Passes bytes to all decoders; none may panic.
pub(crate) fn decode_by_all(bytes: &[u8]) {
    let outcomes = [
        request_from(bytes).map(drop).map_err(|malformed| malformed.at),
        reply_from(bytes).map(drop).map_err(|malformed| malformed.at),
        listing_from(bytes).map_err(|malformed| malformed.at),
        stream_from(bytes).map_err(|malformed| malformed.at),
    ];
    for blamed in outcomes.into_iter().filter_map(Result::err) {
        assert!(blamed <= bytes.len(), "the fault lies past the end");
    }
}
