//! Continues calls that wait: for changes or contents of a file, or for prefetched data.

use crate::call::{Answer, Handle};
use crate::core::Client;
use crate::operation::{as_opened, commit, fetch, flush, open, read, seek, session};
use crate::view::files::{Drained, Reader};
use crate::view::publications::AfterPublishing;
use wirefs_cache::TreeNodeId;
use wirefs_op::Errno;

/// How often one read asks again when changes overtook its data.
const TRIES_MAX: u8 = 8;

impl Client {
    /// Continues after a change of the node was answered, once [`Files::write_answered`](crate::view::files::Files::write_answered) has
    /// counted that: throttled writers, then the calls that wait for all changes of the node.
    pub(super) fn change_ended(&mut self, node: TreeNodeId) {
        self.view.names.release(node);
        while self.view.files.unacknowledged() <= self.requests.unacknowledged_bytes_max() {
            let Some((call, count)) = self.view.files.throttled.0.pop_front() else {
                break;
            };
            self.answerer().answer(call, Answer::Count(count));
        }
        if self.view.files.is_writing(node) {
            return;
        }
        for drained in std::mem::take(&mut self.view.files.contents(node).drained) {
            let result = match drained {
                Drained::Flush { call, handle, owner } => flush::drained(self, call, node, handle, owner),
                Drained::Fsync { call, handle } => commit::drained(&mut self.answerer(), call, handle),
                Drained::Seek { call, handle, offset, hole } => {
                    seek::send(&mut self.sender(), call, node, handle, offset, hole)
                }
                Drained::Open(opening) => {
                    session::go_on(self, node, opening);
                    Ok(())
                }
            };
            if let Err(errno) = result {
                self.answerer().fail(drained.call(), errno);
            }
        }
        self.view.drop_if_gone(node);
    }

    /// Continues the call that waited for the publication of a copy.
    pub(super) fn publication_ended(
        &mut self,
        node: TreeNodeId,
        handle: Handle,
        then: AfterPublishing,
        error: Option<Errno>,
    ) {
        let (call, result) = match (then, error) {
            (AfterPublishing::Nobody, _) => (None, Ok(())),
            (AfterPublishing::Flush { call, .. } | AfterPublishing::Fsync { call }, Some(errno)) => {
                (Some(call), Err(errno))
            }
            (AfterPublishing::Flush { call, owner }, None) => {
                (Some(call), flush::drained(self, call, node, handle, owner))
            }
            (AfterPublishing::Fsync { call }, None) => {
                (Some(call), commit::file(self, call, node, handle, false))
            }
        };
        if let (Some(call), Err(errno)) = (call, result) {
            self.answerer().fail(call, errno);
        }
    }

    /// Continues the opens that wait for contents. `all`: no more contents arrive.
    pub(super) fn serve_joined(&mut self, key: TreeNodeId, all: bool) {
        let Some(joined) = self.view.prefetch.contents.joined.remove(&key) else { return };
        let mut left = Vec::new();
        for joined in joined {
            if !self.calls.is_waiting(joined.call) {
                self.answerer().fail(joined.call, Errno::Interrupted);
            } else if all || self.view.is_known_node(joined.node) {
                open::go_on(self, joined);
            } else {
                left.push(joined);
            }
        }
        if !left.is_empty() {
            self.view.prefetch.contents.joined.entry(key).or_default().append(&mut left);
        }
    }
}

/// Answers the reads whose data is here; asks again for those whose data was overtaken.
pub(crate) fn serve_readers(client: &mut Client, node: TreeNodeId) {
    let readers = std::mem::take(&mut client.view.files.contents(node).readers);
    for mut reader in readers {
        if reader.opens.is_some() {
            serve_open(client, node, reader);
            continue;
        }
        if let Some(answer) = fetch::try_read(&mut client.view, node, &reader) {
            client.answerer().answer(reader.call, answer);
            continue;
        }
        let nothing_comes = fetch::next_gap(&client.view, node, reader.start, reader.end).is_some()
            || client.view.files.contents(node).fetching.is_empty();
        if nothing_comes && client.view.files.is_writing(node) {
            reader_alone(client, node, &reader);
            continue;
        }
        if nothing_comes {
            reader.tries += 1;
            // Others change the file faster than its pieces come.
            if reader.tries > TRIES_MAX {
                reader_alone(client, node, &reader);
                continue;
            }
        }
        // The reader queues before the request, which may fail at once.
        client.view.files.contents(node).readers.push(reader);
        if nothing_comes
            && let Err(errno) =
                fetch::ask(&mut client.sender(), node, reader.handle, (reader.start, reader.end), true)
        {
            client.view.files.contents(node).readers.retain(|other| other.call != reader.call);
            reader_failed(client, &reader, errno);
        }
    }
}

/// Answers a read by one request of its own, ordered after own changes. Its data is not cached, since its version is unknown.
fn reader_alone(client: &mut Client, node: TreeNodeId, reader: &Reader) {
    let count = u32::try_from(reader.end - reader.start).unwrap_or(u32::MAX);
    let asked = read::exactly(&mut client.sender(), reader.call, node, reader.handle, reader.start, count);
    if let Err(errno) = asked {
        reader_failed(client, reader, errno);
    }
}

/// An open that waits for all of a file goes on, or asks for what is still missing.
fn serve_open(client: &mut Client, node: TreeNodeId, mut opening: Reader) {
    if session::come(client, node, &mut opening) {
        return;
    }
    let is_coming = fetch::next_gap(&client.view, node, 0, opening.end).is_none()
        && !client.view.files.contents(node).fetching.is_empty();
    if is_coming {
        client.view.files.contents(node).readers.push(opening);
    } else if session::may_try_again(&mut opening) {
        session::go_on(client, node, opening);
    } else {
        session::failed(client, &opening, Errno::Io);
    }
}

/// Fails a read that waits for contents.
pub(super) fn reader_failed(client: &mut Client, reader: &Reader, errno: Errno) {
    if reader.opens.is_some() {
        return session::failed(client, reader, errno);
    }
    let wanted = (reader.handle, reader.start, reader.end - reader.start);
    as_opened::read_failed(&mut client.answerer(), reader.call, wanted, errno);
}
