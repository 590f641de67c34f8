//! The bytes of fanotify events.
//!
//! ```text
//! event:  length[4] version[1] -[1] header length[2] mask[8] fd[4] pid[4]  record*
//! record: type[1] -[1] length[2] fsid[8] handle length[4] handle type[4] handle  name NUL, if the type has one
//! ```
//! Numbers are in native byte order. (`fanotify(7)`, the kernel's `uapi/linux/fanotify.h`.)

/// Events that change the meaning of a name.
pub(super) const NAMES: u64 = libc::FAN_CREATE | libc::FAN_DELETE | libc::FAN_MOVED_FROM | libc::FAN_MOVED_TO;
/// Events that change an object.
pub(super) const OBJECTS: u64 =
    libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE | libc::FAN_ATTRIB | libc::FAN_DELETE_SELF | libc::FAN_MOVE_SELF;

/// The supported layout (`FANOTIFY_METADATA_VERSION`).
const LAYOUT: u8 = 3;
const HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 20;

/// An object in the kernel's events: file system and handle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle {
    pub(crate) fsid: u64,
    pub(crate) kind: i32,
    pub(crate) bytes: Box<[u8]>,
}

/// The subject of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seen {
    /// This object changed.
    Object(Handle),
    /// This name in this directory has another meaning.
    Name(Handle, Vec<u8>),
    /// An unknown object changed.
    Lost,
}

/// One decoded event.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) mask: u64,
    /// Whether a thread of the given process caused it.
    pub(super) is_own: bool,
    /// The changed object, if the event has its handle.
    pub(super) object: Option<Handle>,
    /// The directory and the name of the object.
    pub(super) place: Option<(Handle, Vec<u8>)>,
}

impl Report {
    /// Whether a name has another meaning now.
    pub(super) fn changes_names(&self) -> bool {
        self.mask & NAMES != 0
    }

    /// Whether the object changed. The removal of a directory that is still open has no event of its own, but the
    /// event of its name has the handle of the directory.
    pub(super) fn changes_object(&self) -> bool {
        self.mask & OBJECTS != 0 || self.mask & libc::FAN_DELETE != 0 && self.mask & libc::FAN_ONDIR != 0
    }
}

/// Decodes each event and marks those of the process `own`. `None`: an unknown object changed.
pub(super) fn reports(mut events: &[u8], own: i32, mut see: impl FnMut(Option<Report>)) {
    while !events.is_empty() {
        let Some((event, rest)) = cut(events) else {
            return see(None);
        };
        let is_lost = event.mask & libc::FAN_Q_OVERFLOW != 0;
        match if is_lost { None } else { event.records() } {
            Some(records) => see(Some(event.report(records, own))),
            None if is_lost || event.process != own => see(None),
            None => {}
        }
        events = rest;
    }
}

/// The subjects of all events, except for those of the process `own`.
pub(super) fn each(events: &[u8], own: i32, mut see: impl FnMut(Seen)) {
    reports(events, own, |report| match report {
        None => see(Seen::Lost),
        Some(report) if report.is_own => {}
        Some(report) => classify(report, &mut see),
    });
}

fn classify(report: Report, see: &mut impl FnMut(Seen)) {
    let (changes_names, changes_object) = (report.changes_names(), report.changes_object());
    let mut is_reported = false;
    if let Some(object) = report.object.filter(|_| changes_object) {
        is_reported = true;
        see(Seen::Object(object));
    }
    // Without the object's handle the change is reported by its name.
    if let Some((dir, name)) = report.place.filter(|_| changes_names || !is_reported) {
        is_reported = true;
        see(Seen::Name(dir, name));
    }
    if !is_reported {
        see(Seen::Lost);
    }
}

struct Event<'a> {
    mask: u64,
    process: i32,
    records: &'a [u8],
}

#[derive(Default)]
struct Records {
    object: Option<Handle>,
    name: Option<(Handle, Vec<u8>)>,
}

fn bytes<const N: usize>(from: &[u8], at: usize) -> Option<[u8; N]> {
    from.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn cut(events: &[u8]) -> Option<(Event<'_>, &[u8])> {
    let length = u32::from_ne_bytes(bytes(events, 0)?) as usize;
    let (event, rest) = events.split_at_checked(length)?;
    let header_bytes = usize::from(u16::from_ne_bytes(bytes(event, 6)?));
    if event.get(4) != Some(&LAYOUT) || header_bytes < HEADER_BYTES {
        return None;
    }
    let event = Event {
        mask: u64::from_ne_bytes(bytes(event, 8)?),
        process: i32::from_ne_bytes(bytes(event, 20)?),
        records: event.get(header_bytes..)?,
    };
    Some((event, rest))
}

impl Event<'_> {
    fn report(&self, records: Records, own: i32) -> Report {
        let Records { object, name } = records;
        // The kernel reports a directory itself as the name "." in it.
        let (itself, place) = match name {
            Some((dir, name)) if name.is_empty() || name == b"." => (Some(dir), None),
            name => (None, name),
        };
        Report { mask: self.mask, is_own: self.process == own, object: object.or(itself), place }
    }

    /// The decoded records; `None`: invalid.
    fn records(&self) -> Option<Records> {
        let mut rest = self.records;
        let mut records = Records::default();
        while !rest.is_empty() {
            let length = usize::from(u16::from_ne_bytes(bytes(rest, 2)?));
            // A record of length 0 would cause an endless loop.
            let (record, following) = rest.split_at_checked(length.max(1))?;
            rest = following;
            match *record.first()? {
                libc::FAN_EVENT_INFO_TYPE_FID => records.object = Some(handle(record)?.0),
                libc::FAN_EVENT_INFO_TYPE_DFID => records.name = Some((handle(record)?.0, Vec::new())),
                libc::FAN_EVENT_INFO_TYPE_DFID_NAME => {
                    let (dir, name) = handle(record)?;
                    let end = name.iter().position(|byte| *byte == 0)?;
                    records.name = Some((dir, name.get(..end)?.to_vec()));
                }
                // An event type that was not requested.
                _ => {}
            }
        }
        Some(records)
    }
}

/// The handle in a record, and the bytes after it.
fn handle(record: &[u8]) -> Option<(Handle, &[u8])> {
    let [low, high] = [4, 8].map(|at| bytes(record, at).map(u32::from_ne_bytes));
    let length = u32::from_ne_bytes(bytes(record, 12)?) as usize;
    let kind = i32::from_ne_bytes(bytes(record, 16)?);
    let (handle, rest) = record.get(RECORD_HEADER_BYTES..)?.split_at_checked(length)?;
    // The order of the two words is that of `statvfs`.
    let fsid = u64::from(low?) | u64::from(high?) << 32;
    Some((Handle { fsid, kind, bytes: handle.into() }, rest))
}

#[cfg(test)]
mod tests;
