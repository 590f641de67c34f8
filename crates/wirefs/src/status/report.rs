//! The status of a mount, in the format of `--json`. Its fields are stable; new ones may be added.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wirefs_carrier::{PackedBytes, RateLimits};
use wirefs_client::{AheadStatus, Fate, LateError, LeaseStatus, LinkState, PrefetchStatus, Snapshot};
use wirefs_mount::{JournalStatus, MountStatus, StoreStatus};
use wirefs_op::message::attach::Watch;

use super::path::Path;

/// The version of the JSON format: greater once a field is removed or gets another meaning.
const SCHEMA: u32 = 1;

/// The constant properties of a mount.
#[derive(Clone, Debug)]
pub(crate) struct Constants {
    /// As the user wrote it.
    pub(crate) source: String,
    /// Whether the server rejects changes.
    pub(crate) read_only: bool,
    /// The memory limit for names and contents, in bytes.
    pub(crate) cache_bytes_max: usize,
    /// The address of metrics and the page.
    pub(crate) metrics: Option<SocketAddr>,
    /// The layers of the connections; `None`: the mount has no connection.
    pub(crate) line: Option<Line>,
}

/// The layers between a mount and its connections.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) limits: Arc<RateLimits>,
    pub(crate) packed: Arc<PackedBytes>,
}

/// Messages that were compressed, since the mount: bytes before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Compression {
    pub(crate) in_plain: u64,
    pub(crate) in_packed: u64,
    pub(crate) out_plain: u64,
    pub(crate) out_packed: u64,
}

impl Compression {
    fn of(line: &Line) -> Compression {
        let bytes = &line.packed;
        let ((in_plain, in_packed), (out_plain, out_packed)) = (bytes.received.get(), bytes.sent.get());
        Compression { in_plain, in_packed, out_plain, out_packed }
    }
}

/// The rate limits, and whether the user has paused the mount.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Of sending, in bytes per second; none: unlimited.
    pub(crate) up: Option<u64>,
    /// Of receiving.
    pub(crate) down: Option<u64>,
    pub(crate) paused: bool,
}

impl Limits {
    fn of(limits: &RateLimits) -> Limits {
        Limits { up: limits.up.rate(), down: limits.down.rate(), paused: limits.is_paused() }
    }
}

/// The status of one mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The version of this format; 0 from a process of an older wirefs.
    #[serde(default)]
    pub(crate) schema: u32,
    pub(crate) source: String,
    pub(crate) mountpoint: String,
    pub(crate) version: String,
    pub(crate) process: u32,
    /// Whether it is unmounted, and its process still sends changes to the server.
    #[serde(default)]
    pub(crate) unmounted: bool,
    pub(crate) peer: Peer,
    /// The kind of carrier: `unix`, `tcp+tls`, `tcp+plain`, `ether` or `ssh`.
    pub(crate) carrier: String,
    /// The network paths of this carrier, if it has several.
    #[serde(default)]
    pub(crate) paths: Vec<Path>,
    pub(crate) connected: bool,
    /// Why the last attempt to connect failed; none while connected.
    #[serde(default)]
    pub(crate) connect_error: Option<String>,
    #[serde(default)]
    pub(crate) limits: Limits,
    /// Time since the connection was established or lost, in milliseconds.
    pub(crate) connection_age_ms: u64,
    pub(crate) connections_lost: u64,
    /// Connections in use; data connections are added while socket buffers are the limit.
    #[serde(default)]
    pub(crate) connections: u64,
    pub(crate) mounted_for_ms: u64,
    /// The minimum round trip of late, in microseconds.
    pub(crate) rtt_us: Option<u64>,
    pub(crate) mode: String,
    pub(crate) read_only: bool,
    /// The deadline of a call to a silent server, in milliseconds; none: unlimited.
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) calls: u64,
    pub(crate) calls_waiting: u64,
    /// Requests sent, by kind.
    pub(crate) requests: BTreeMap<String, u64>,
    /// Requests without a reply yet, by kind.
    pub(crate) in_flight: BTreeMap<String, u64>,
    /// Those of them without any reply for 8 s, by kind.
    #[serde(default)]
    pub(crate) late: BTreeMap<String, u64>,
    /// Waits that have failed since the server was connected and did not reply.
    #[serde(default)]
    pub(crate) timed_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// How much of that was compressed, and to what.
    #[serde(default)]
    pub(crate) compression: Compression,
    /// The maximum rate of late, in bytes per second.
    pub(crate) rate_in: Option<u64>,
    pub(crate) rate_out: Option<u64>,
    pub(crate) cache: Cache,
    pub(crate) prefetch: Prefetch,
    /// None if the mode or the server has no leases.
    pub(crate) leases: Option<Leases>,
    /// Bytes written by programs that the server has not acknowledged yet.
    pub(crate) unacknowledged_bytes: u64,
    /// None without a journal.
    pub(crate) journal: Option<Journal>,
    /// Conflict copies: versions of other clients that a close here replaced; their number, and the last names.
    #[serde(default)]
    pub(crate) conflicts: u64,
    #[serde(default)]
    pub(crate) conflicts_last: Vec<String>,
    /// The address of metrics and the page, none without `--metrics`.
    #[serde(default)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// The journal: changes on the local disk until the server's disk has them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// Whether the session is exclusive, so that changes are answered before the server has them.
    pub(crate) alone: bool,
    /// Changes that may not be on the server's disk, and their bytes.
    pub(crate) changes: u64,
    pub(crate) bytes: u64,
    /// Those of them without a reply.
    pub(crate) unanswered_changes: u64,
    pub(crate) unanswered_bytes: u64,
    /// Number of fsyncs of the local disk.
    pub(crate) syncs: u64,
    /// The reason why the journal is not written any more; none if it is.
    pub(crate) failed: Option<String>,
    /// Quarantined changes of this source, by directory.
    pub(crate) aside: BTreeMap<String, u64>,
    /// Changes that the server rejected after they were answered, and the text of the last one.
    pub(crate) refused: u64,
    pub(crate) refused_last: Option<String>,
    /// Files with a lock delegation, and locks and unlocks answered from these.
    #[serde(default)]
    pub(crate) lent: usize,
    #[serde(default)]
    pub(crate) locks: u64,
}

impl Journal {
    fn of(status: &JournalStatus, optimistic: &AheadStatus) -> Journal {
        let JournalStatus { figures, failed, syncs, kept } = status;
        let in_words = |late: &LateError| {
            let path = String::from_utf8_lossy(late.path.as_bytes()).into_owned();
            format!("{} of {path}: {}", late.what, late.errno)
        };
        Journal {
            alone: optimistic.is_alone,
            refused: optimistic.late_count,
            lent: optimistic.lent,
            locks: optimistic.locks,
            refused_last: optimistic.late.last().map(in_words),
            changes: figures.records,
            bytes: figures.bytes,
            unanswered_changes: figures.unanswered_records,
            unanswered_bytes: figures.unanswered_bytes,
            syncs: *syncs,
            failed: failed.clone(),
            aside: kept.iter().map(|kept| (kept.dir.display().to_string(), kept.changes)).collect(),
        }
    }
}

/// The server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Peer {
    pub(crate) address: String,
    /// The fingerprint of its key, if the carrier has keys.
    pub(crate) key: Option<String>,
}

/// Cached data, and the number of hits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cache {
    pub(crate) name_hits: u64,
    pub(crate) name_misses: u64,
    pub(crate) data_hits: u64,
    pub(crate) data_misses: u64,
    pub(crate) names: u64,
    /// Contents in memory, in bytes.
    pub(crate) bytes: u64,
    /// Names, listings and encoded listings in memory, in bytes.
    #[serde(default)]
    pub(crate) names_bytes: u64,
    #[serde(default)]
    pub(crate) listings_bytes: u64,
    #[serde(default)]
    pub(crate) packed_bytes: u64,
    /// Other memory of the process, as measured: tables, buffers, freed memory, in bytes.
    #[serde(default)]
    pub(crate) other_bytes: u64,
    /// The limit of all of them together, in bytes.
    pub(crate) bytes_max: u64,
    /// The disk cache; none if disabled.
    pub(crate) disk: Option<Disk>,
}

impl Cache {
    fn of(snapshot: &Snapshot, store: Option<&StoreStatus>, constants: &Constants) -> Cache {
        let counters = &snapshot.counters;
        Cache {
            name_hits: counters.name_hits,
            name_misses: counters.name_misses,
            data_hits: counters.data_hits,
            data_misses: counters.data_misses,
            names: snapshot.nodes as u64,
            bytes: snapshot.cached_bytes as u64,
            names_bytes: snapshot.memory.names as u64,
            listings_bytes: snapshot.memory.listings as u64,
            packed_bytes: snapshot.memory.packed as u64,
            other_bytes: snapshot.memory.other as u64,
            bytes_max: constants.cache_bytes_max as u64,
            disk: store.map(Disk::of),
        }
    }
}

/// Prefetched data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Prefetch {
    /// Requests, and the bytes of their replies.
    pub(crate) asked: u64,
    pub(crate) bytes: u64,
    pub(crate) directories: Counts,
    pub(crate) files: Counts,
    /// Bytes of these files.
    pub(crate) contents: Counts,
}

/// Fetched; of these used; of these already known, or evicted unused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) fetched: u64,
    pub(crate) used: u64,
    pub(crate) wasted: u64,
}

impl Prefetch {
    fn of(status: &PrefetchStatus) -> Prefetch {
        let counts = |Fate { fetched, used, wasted }: Fate| Counts { fetched, used, wasted };
        Prefetch {
            asked: status.asked,
            bytes: status.bytes,
            directories: counts(status.directories),
            files: counts(status.files),
            contents: counts(status.contents),
        }
    }
}

/// The disk cache, which outlives the mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Disk {
    pub(crate) bytes: u64,
    pub(crate) bytes_max: u64,
    /// Files and pieces of files.
    pub(crate) pieces: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Damaged pieces found and evicted.
    pub(crate) damaged: u64,
    /// Directories loaded from the last mount's snapshot.
    pub(crate) listings_taken: u64,
}

impl Disk {
    fn of(status: &StoreStatus) -> Disk {
        let StoreStatus { contents, listings_taken } = status;
        Disk {
            bytes: contents.bytes,
            bytes_max: contents.bytes_max,
            pieces: contents.pieces,
            hits: contents.hits,
            misses: contents.misses,
            damaged: contents.damaged,
            listings_taken: *listings_taken,
        }
    }
}

/// Leases granted by the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Leases {
    /// Objects whose attributes and contents are leased.
    pub(crate) objects: u64,
    /// Names in leased listings.
    pub(crate) names: u64,
    /// Whether they are valid: the server was reachable recently.
    pub(crate) valid: bool,
    /// Number of recalls.
    pub(crate) recalls: u64,
    /// Which changes by server programs are noticed: `none`, `directories` (leased ones) or `filesystem`.
    pub(crate) watch: String,
}

impl Leases {
    fn of(status: &LeaseStatus) -> Leases {
        let watch = match status.watch {
            Watch::None => "none",
            Watch::Directories => "directories",
            Watch::Filesystem => "filesystem",
        };
        Leases {
            objects: status.objects as u64,
            names: status.names as u64,
            valid: status.are_valid,
            recalls: status.recalls,
            watch: watch.to_owned(),
        }
    }
}

impl Report {
    /// Returns the current status of a mount.
    pub(crate) fn of(status: &MountStatus, constants: &Constants) -> Report {
        let MountStatus {
            mountpoint,
            peer,
            dial_error,
            paths,
            mode,
            deadline,
            snapshot,
            store,
            journal,
            up_for,
        } = status;
        let counters = &snapshot.counters;
        let (connected, since) = match snapshot.link {
            LinkState::Up(since) => (true, since),
            LinkState::Down(since) => (false, since),
        };
        let (rate_in, rate_out) = snapshot.rates;
        Report {
            schema: SCHEMA,
            source: constants.source.clone(),
            mountpoint: mountpoint.to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            unmounted: wirefs_fuse::is_read_only(mountpoint).is_none(),
            peer: Peer {
                address: peer.address.clone(),
                key: peer.identity.map(|key| key.fingerprint().to_string()),
            },
            carrier: peer.carrier.to_owned(),
            paths: paths.iter().map(Path::of).collect(),
            connected,
            connect_error: dial_error.clone(),
            limits: constants.line.as_ref().map(|line| Limits::of(&line.limits)).unwrap_or_default(),
            connection_age_ms: ms(snapshot.at.since(since)),
            connections_lost: snapshot.losses,
            connections: u64::from(connected) + snapshot.data_connections as u64,
            mounted_for_ms: ms(*up_for),
            rtt_us: snapshot.rtt.map(|rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)),
            mode: mode.to_string(),
            // Set by the mount or by the server.
            read_only: constants.read_only || wirefs_fuse::is_read_only(mountpoint).unwrap_or(false),
            deadline_ms: deadline.map(ms),
            calls: counters.calls,
            calls_waiting: snapshot.calls_waiting as u64,
            requests: counters
                .requests()
                .into_iter()
                .map(|kind| (kind.name.to_owned(), kind.count))
                .collect(),
            in_flight: named(&snapshot.in_flight),
            late: named(&snapshot.late),
            timed_out: snapshot.timed_out,
            bytes_in: counters.bytes_in,
            bytes_out: counters.bytes_out,
            compression: constants.line.as_ref().map(Compression::of).unwrap_or_default(),
            rate_in,
            rate_out,
            cache: Cache::of(snapshot, store.as_ref(), constants),
            prefetch: Prefetch::of(&snapshot.prefetch),
            leases: snapshot.leases.as_ref().map(Leases::of),
            unacknowledged_bytes: snapshot.unacknowledged_bytes,
            journal: journal.as_ref().map(|journal| Journal::of(journal, &snapshot.ahead)),
            conflicts: snapshot.conflicts.count,
            conflicts_last: snapshot.conflicts.last.iter().map(|path| in_words(path)).collect(),
            metrics: constants.metrics,
        }
    }
}

fn in_words(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Counts by kind, as a report has them.
fn named(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}
