//! Every limit of leases, named once.

use std::time::Duration;
use wirefs_op::limits::HEAD_BYTES_MAX;

/// How long a client believes what it was granted after it sent the last request that was answered.
pub const TERM: Duration = Duration::from_secs(15);
/// How much longer the server waits before it goes on without a silent holder. In it the client empties the kernel's
/// caches, and it covers what the two clocks drift apart.
pub const MARGIN: Duration = Duration::from_secs(5);
/// What of [`MARGIN`] is kept for clocks that run at different speeds.
pub const DRIFT: Duration = Duration::from_millis(500);
/// How often an idle client that holds something sends a request.
pub const RENEWAL: Duration = Duration::from_secs(5);
/// A holder that was not heard for so long is silent: it is no wonder then that it does not answer a recall.
pub const SILENCE: Duration = Duration::from_millis(7500);
/// How long a holder that is heard may take to answer a recall.
pub const ANSWER: Duration = Duration::from_secs(10);
/// How long it may take in all, however often it falls silent or comes back meanwhile.
pub const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long a lone holder may take in all to give way, as long as one of its changes after the other is carried out: it may
/// have gone ahead by much, over a slow line.
pub const EXCLUSIVE_RECALL_MAX: Duration = Duration::from_secs(120);
/// After so much silence a holder is forgotten.
pub const REMOVE_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Holders at a time, the silent ones included; as many as the server has sessions.
pub const HOLDERS_MAX: usize = 256;
/// Objects that all holders together know, at most; about 16 bytes each.
pub const LEASES_MAX: usize = 4_000_000;
/// Items in one recall, as many as its message takes.
pub const RECALL_ITEMS_MAX: usize = wirefs_op::limits::RECALL_ITEMS_MAX;
/// Bytes that the items of one recall take on the wire, at most; recalls travel ahead of all else, so they are short.
pub const RECALL_BYTES_MAX: usize = 48 * 1024;
/// Bytes of an item beside its name, on the wire: the id, whether there is a name, its length; rounded up.
pub const ITEM_BYTES: usize = 20;
/// Items that one holder was sent and has not answered; past it everything is recalled at once.
pub const OUTSTANDING_MAX: usize = 16 * 1024;
/// Items that a holder missed; past it, it missed everything.
pub const MISSED_MAX: usize = 4096;
/// Recalls of single names of one directory that one holder gets within [`NAME_RECALLS_SPAN`]; the next is of the whole.
pub const NAME_RECALLS_MAX: u8 = 8;
/// See [`NAME_RECALLS_MAX`].
pub const NAME_RECALLS_SPAN: Duration = Duration::from_secs(10);
/// Directories per holder whose recalls of single names are counted; past it directories are recalled as a whole.
pub const NAME_RECALL_DIRECTORIES_MAX: usize = 1024;
/// Objects that were changed of late; a job that began before the oldest of them is granted nothing.
pub const CHANGES_MAX: usize = 16 * 1024;
/// Objects whose own changes are remembered, so that a watcher's report of them is recognised.
pub const OWN_OBJECTS_MAX: usize = 4096;
/// Own changes remembered of one object.
pub const OWN_CHANGES_MAX: usize = 64;
/// How long own changes are remembered.
pub const OWN_AGE: Duration = Duration::from_secs(30);
/// Reports of a watcher that wait for the end of own changes of the same object.
pub const UNATTRIBUTED_MAX: usize = 1024;
/// How long others are not told of what was reported since it may be an own change, at most.
pub const ATTRIBUTION_SPAN: Duration = Duration::from_millis(40);
/// Recalls that a client remembers while requests from before them are under way.
pub const OVERTAKEN_MAX: usize = 4096;

const _: () = assert!(RECALL_BYTES_MAX <= HEAD_BYTES_MAX, "a recall fits in one message");
const _: () = assert!(RECALL_ITEMS_MAX * ITEM_BYTES <= RECALL_BYTES_MAX, "so many items without names fit");
const _: () =
    assert!(RECALL_BYTES_MAX / 2 > ITEM_BYTES + wirefs_op::limits::NAME_BYTES_MAX, "so does each name");
const _: () = assert!(RENEWAL.as_millis() < SILENCE.as_millis(), "who pings is not silent");
const _: () = assert!(2 * RENEWAL.as_millis() < TERM.as_millis(), "one lost ping ends no lease");
const _: () =
    assert!(DRIFT.as_millis() < MARGIN.as_millis(), "the client has time to empty the kernel's caches");
const _: () = assert!(MISSED_MAX <= OUTSTANDING_MAX, "what was missed can be sent at once");
const _: () = assert!(
    ANSWER_MAX.as_millis() < EXCLUSIVE_RECALL_MAX.as_millis(),
    "changes are sent, not merely forgotten"
);
const _: () = assert!(ANSWER.as_millis() < ANSWER_MAX.as_millis(), "one silence is forgiven");
