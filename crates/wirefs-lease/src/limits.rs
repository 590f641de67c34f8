//! The limits of leases.

use std::time::Duration;
use wirefs_op::limits::HEAD_BYTES_MAX;

/// The validity of a lease, counted from the sending of the last request that was answered.
pub const TERM: Duration = Duration::from_secs(15);
/// The time that the server waits beyond [`TERM`] before it ignores a silent holder. The client uses it to
/// invalidate the kernel's caches; it also covers clock drift.
pub const MARGIN: Duration = Duration::from_secs(5);
/// The part of [`MARGIN`] reserved for clock drift.
pub const DRIFT: Duration = Duration::from_millis(500);
/// The interval of pings from an idle client with leases.
pub const RENEWAL: Duration = Duration::from_secs(5);
/// A holder without a message for this time is silent, and may be slow to answer a recall.
pub const SILENCE: Duration = Duration::from_millis(7500);
/// The time that a holder which is not silent may take to answer a recall.
pub const ANSWER: Duration = Duration::from_secs(10);
/// The total time for an answer, however often the holder falls silent or reconnects.
pub const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The total time to recall an exclusive session while its changes arrive one after the other. The client may
/// have many unsent changes and a slow network.
pub const EXCLUSIVE_RECALL_MAX: Duration = Duration::from_secs(120);
/// The time without leases after the first missed recall of a party.
pub const PENALTY: Duration = Duration::from_secs(30);
/// The longest time without leases.
pub const PENALTY_MAX: Duration = Duration::from_secs(3600);
/// A penalty is forgotten after this many times its span without another one.
pub const PENALTY_MEMORY: u32 = 8;
/// The maximal number of parties with a penalty.
pub const OFFENDERS_MAX: usize = 1024;
/// A holder is removed after this time without a message.
pub const REMOVE_AFTER: Duration = Duration::from_secs(24 * 3600);
/// The maximal number of holders, including silent ones; equal to the number of sessions.
pub const HOLDERS_MAX: usize = 1024;
/// The maximal number of leases over all holders, about 16 bytes each.
pub const LEASES_MAX: usize = 4_000_000;
/// The maximal number of items in one recall; a limit of its message.
pub const RECALL_ITEMS_MAX: usize = wirefs_op::limits::RECALL_ITEMS_MAX;
/// The maximal size of the items of one recall, in bytes on the wire. Recalls precede queued messages, so
/// they are short.
pub const RECALL_BYTES_MAX: usize = 48 * 1024;
/// The size of an item without its name, in bytes on the wire: id, presence flag and name length, rounded up.
pub const ITEM_BYTES: usize = 20;
/// The maximal number of unanswered items of one holder; above it, everything is recalled.
pub const OUTSTANDING_MAX: usize = 16 * 1024;
/// The maximal number of missed items of one holder; above it, everything counts as missed.
pub const MISSED_MAX: usize = 4096;
/// The maximal number of recalls of single names, per directory and holder, within [`NAME_RECALLS_SPAN`]; the
/// next one is for the whole directory.
pub const NAME_RECALLS_MAX: u8 = 8;
/// See [`NAME_RECALLS_MAX`].
pub const NAME_RECALLS_SPAN: Duration = Duration::from_secs(10);
/// The maximal number of directories per holder with a count of name recalls; other directories are recalled
/// as a whole.
pub const NAME_RECALL_DIRECTORIES_MAX: usize = 1024;
/// The maximal number of recorded changes; a job that began before the oldest is granted nothing.
pub const CHANGES_MAX: usize = 16 * 1024;
/// The maximal number of objects whose own changes are recorded, to recognize a watcher's reports.
pub const OWN_OBJECTS_MAX: usize = 4096;
/// The maximal number of recorded own changes of one object.
pub const OWN_CHANGES_MAX: usize = 64;
/// The time for which own changes are recorded.
pub const OWN_AGE: Duration = Duration::from_secs(30);
/// The maximal number of reports that wait for own changes of the same object to end.
pub const UNATTRIBUTED_MAX: usize = 1024;
/// The maximal time that a report waits before its recalls are sent.
pub const ATTRIBUTION_SPAN: Duration = Duration::from_millis(40);
/// The maximal number of recalls that a client records while earlier requests are pending.
pub const OVERTAKEN_MAX: usize = 4096;

const _: () = assert!(RECALL_BYTES_MAX <= HEAD_BYTES_MAX, "a recall fits into one message");
const _: () =
    assert!(RECALL_ITEMS_MAX * ITEM_BYTES <= RECALL_BYTES_MAX, "items without names fit into a recall");
const _: () = assert!(
    RECALL_BYTES_MAX / 2 > ITEM_BYTES + wirefs_op::limits::NAME_BYTES_MAX,
    "each name fits into a recall"
);
const _: () = assert!(RENEWAL.as_millis() < SILENCE.as_millis(), "a client that pings is not silent");
const _: () = assert!(2 * RENEWAL.as_millis() < TERM.as_millis(), "a lost ping does not end a lease");
const _: () =
    assert!(DRIFT.as_millis() < MARGIN.as_millis(), "the client has time to invalidate the kernel's caches");
const _: () = assert!(MISSED_MAX <= OUTSTANDING_MAX, "all missed recalls can be outstanding");
const _: () = assert!(
    ANSWER_MAX.as_millis() < EXCLUSIVE_RECALL_MAX.as_millis(),
    "sending changes takes longer than invalidation"
);
const _: () = assert!(ANSWER.as_millis() < ANSWER_MAX.as_millis(), "a holder may fall silent once");
