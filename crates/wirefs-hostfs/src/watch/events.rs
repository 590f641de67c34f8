//! The bytes of fanotify's events.
//!
//! ```text
//! event:  length[4] version[1] -[1] header length[2] mask[8] fd[4] pid[4]  record*
//! record: type[1] -[1] length[2] fsid[8] handle length[4] handle type[4] handle  name NUL, where the type has one
//! ```
//! Numbers are in the machine's own order. (`fanotify(7)`, the kernel's `uapi/linux/fanotify.h`.)

/// Changes of what a name means.
pub(super) const NAMES: u64 = libc::FAN_CREATE | libc::FAN_DELETE | libc::FAN_MOVED_FROM | libc::FAN_MOVED_TO;
/// Changes of an object.
pub(super) const OBJECTS: u64 =
    libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE | libc::FAN_ATTRIB | libc::FAN_DELETE_SELF | libc::FAN_MOVE_SELF;

/// The layout that is understood (`FANOTIFY_METADATA_VERSION`).
const LAYOUT: u8 = 3;
const HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 20;

/// An object as the kernel names it in events: file system and handle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle {
    pub(crate) fsid: u64,
    pub(crate) kind: i32,
    pub(crate) bytes: Box<[u8]>,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seen {
    /// This object changed.
    Object(Handle),
    /// This name in this directory means something else.
    Name(Handle, Vec<u8>),
    /// Something changed, and what it was is not known.
    Lost,
}

/// One event, as far as it is understood.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) mask: u64,
    /// The process made it that was asked about; other threads of it too.
    pub(super) is_own: bool,
    /// What changed, where the event has its handle.
    pub(super) object: Option<Handle>,
    /// Where it is: the directory, and the name there.
    pub(super) place: Option<(Handle, Vec<u8>)>,
}

impl Report {
    /// Whether a name means something else now.
    pub(super) fn changes_names(&self) -> bool {
        self.mask & NAMES != 0
    }

    /// Whether the object changed. Whatever else removes or moves an object has an event of its own; the removal of a directory
    /// that is still held has not, but is told with the directory beside its name.
    pub(super) fn changes_object(&self) -> bool {
        self.mask & OBJECTS != 0 || self.mask & libc::FAN_DELETE != 0 && self.mask & libc::FAN_ONDIR != 0
    }
}

/// Hands on each event, with those of the process `own` marked; `None`: something happened, and what it was is not known.
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

/// Tells what the events are about, but for those of the process `own`.
pub(super) fn each(events: &[u8], own: i32, mut see: impl FnMut(Seen)) {
    reports(events, own, |report| match report {
        None => see(Seen::Lost),
        Some(report) if report.is_own => {}
        Some(report) => tell(report, &mut see),
    });
}

fn tell(report: Report, see: &mut impl FnMut(Seen)) {
    let (changes_names, changes_object) = (report.changes_names(), report.changes_object());
    let mut is_told = false;
    if let Some(object) = report.object.filter(|_| changes_object) {
        is_told = true;
        see(Seen::Object(object));
    }
    // A change of an object that has no handle of its own in the event is told by its name.
    if let Some((dir, name)) = report.place.filter(|_| changes_names || !is_told) {
        is_told = true;
        see(Seen::Name(dir, name));
    }
    if !is_told {
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
        // A directory is told of as the name "." in itself.
        let (itself, place) = match name {
            Some((dir, name)) if name.is_empty() || name == b"." => (Some(dir), None),
            name => (None, name),
        };
        Report { mask: self.mask, is_own: self.process == own, object: object.or(itself), place }
    }

    /// `None`: they are not understood.
    fn records(&self) -> Option<Records> {
        let mut rest = self.records;
        let mut records = Records::default();
        while !rest.is_empty() {
            let length = usize::from(u16::from_ne_bytes(bytes(rest, 2)?));
            // A record of no length would be met for ever.
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
                // Nothing that was asked for.
                _ => {}
            }
        }
        Some(records)
    }
}

/// The handle in a record, and what stands behind it.
fn handle(record: &[u8]) -> Option<(Handle, &[u8])> {
    let [low, high] = [4, 8].map(|at| bytes(record, at).map(u32::from_ne_bytes));
    let length = u32::from_ne_bytes(bytes(record, 12)?) as usize;
    let kind = i32::from_ne_bytes(bytes(record, 16)?);
    let (handle, rest) = record.get(RECORD_HEADER_BYTES..)?.split_at_checked(length)?;
    // As `statvfs` puts the two words together.
    let fsid = u64::from(low?) | u64::from(high?) << 32;
    Some((Handle { fsid, kind, bytes: handle.into() }, rest))
}

#[cfg(test)]
mod tests;
