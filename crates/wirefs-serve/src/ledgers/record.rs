//! The bytes of a ledger file.
//!
//! ```text
//!   magic[8], then records:  size[4] sum[16] kind[1] body     size counts kind and body, little-endian as all numbers
//!
//!   1 Opened    boot[8]                      the server that writes from here on
//!   2 Closed                                 all records above are on stable storage
//!   3 Begun     number[8] about[8] at[opt] of[opt] size[8]
//!   4 Done      number[8] created[opt] reply: an R-message without its size
//!   5 Answered  number[8]
//!   6 Next      number[8]
//!   7 Created   number[8] id[16]
//!   8 Owner     key[32]
//! ```

use bytes::Bytes;
use wirefs_log::{Form, HalfSha256, ReadOutcome};
use wirefs_op::message::version::BootId;
use wirefs_op::wire::{Malformed, Reader, Wire, Writer};
use wirefs_op::{FileId, NOTAG, Reply};
use wirefs_server::saved_ledger::SavedOutcome;
use wirefs_server::{LedgerRecord, PriorState, SavedLedger, StartedChange};

/// The first bytes of a log: its type and format version.
pub(super) const MAGIC: [u8; 8] = *b"wfnotes\x01";
/// The maximum size of a record's kind and body, in bytes. A reply to a change has few attributes and short texts.
pub(super) const RECORD_BYTES_MAX: usize = 4096;
/// The form of a record.
const FORM: Form<HalfSha256> = Form::new(RECORD_BYTES_MAX).without_length_in_sum();

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Opened(BootId),
    Closed,
    Note(LedgerRecord),
    Next(u64),
    Created(u64, FileId),
}

/// The contents of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogContents {
    pub(super) noted: SavedLedger,
    /// The boot id of the last writer.
    pub(super) boot: Option<BootId>,
    /// Whether the log was closed.
    pub(super) is_closed: bool,
    /// The end of the last complete record, in bytes.
    pub(super) whole_bytes: usize,
}

/// Damage of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Damage {
    #[error("it is no ledger, or one of another version")]
    Foreign,
    #[error("a record at {0} is damaged")]
    Record(usize),
}

impl Record {
    /// Appends the record to `log`. Returns `false`, without writing, if the record is too long.
    pub(super) fn write(&self, log: &mut Vec<u8>) -> bool {
        let mut writer = Writer::bare();
        let mut reply_body = Bytes::new();
        match self {
            Record::Opened(boot) => put(&mut writer, 1, boot),
            Record::Closed => 2_u8.put(&mut writer),
            Record::Note(LedgerRecord::Started { number, started: StartedChange { fingerprint, prior } }) => {
                put(&mut writer, 3, number);
                fingerprint.put(&mut writer);
                prior.named.put(&mut writer);
                prior.object.put(&mut writer);
                prior.size.put(&mut writer);
            }
            Record::Note(LedgerRecord::Done { number, created, reply }) => {
                put(&mut writer, 4, number);
                created.put(&mut writer);
                reply_body = reply.encode(NOTAG).to_body();
            }
            Record::Note(LedgerRecord::Acknowledged(number)) => put(&mut writer, 5, number),
            Record::Note(LedgerRecord::Owner(key)) => {
                8_u8.put(&mut writer);
                key.iter().for_each(|byte| byte.put(&mut writer));
            }
            Record::Next(number) => put(&mut writer, 6, number),
            Record::Created(number, id) => {
                put(&mut writer, 7, number);
                id.put(&mut writer);
            }
        }
        let body = writer.into_bytes();
        let is_short = body.len() + reply_body.len() <= RECORD_BYTES_MAX;
        if is_short {
            FORM.append(log, &[&body, &reply_body]);
        }
        is_short
    }

    fn read(body: Bytes) -> Result<Record, Malformed> {
        let mut reader = Reader::new(body);
        let record = match u8::take(&mut reader)? {
            1 => Record::Opened(BootId::take(&mut reader)?),
            2 => Record::Closed,
            3 => {
                let (number, fingerprint) = (u64::take(&mut reader)?, u64::take(&mut reader)?);
                let (named, object) = (Wire::take(&mut reader)?, Wire::take(&mut reader)?);
                let prior = PriorState { named, object, size: u64::take(&mut reader)? };
                Record::Note(LedgerRecord::Started { number, started: StartedChange { fingerprint, prior } })
            }
            4 => {
                let (number, created) = (u64::take(&mut reader)?, Wire::take(&mut reader)?);
                let (_, reply) = Reply::decode(reader.bytes(reader.remaining())?)?;
                Record::Note(LedgerRecord::Done { number, created, reply: Box::new(reply) })
            }
            5 => Record::Note(LedgerRecord::Acknowledged(u64::take(&mut reader)?)),
            6 => Record::Next(u64::take(&mut reader)?),
            7 => Record::Created(u64::take(&mut reader)?, FileId::take(&mut reader)?),
            8 => {
                let key = reader.bytes(32)?;
                let key = <[u8; 32]>::try_from(&*key).map_err(|_| reader.malformed("a key has 32 bytes"))?;
                Record::Note(LedgerRecord::Owner(key))
            }
            _ => return Err(reader.malformed("no such record")),
        };
        reader.end()?;
        Ok(record)
    }
}

fn put(writer: &mut Writer, kind: u8, value: &impl Wire) {
    kind.put(writer);
    value.put(writer);
}

/// Encodes a new log with these contents.
pub(super) fn whole(boot: BootId, noted: &SavedLedger) -> Vec<u8> {
    let mut log = MAGIC.to_vec();
    let outcome = |(number, outcome): (&u64, &SavedOutcome)| {
        let number = *number;
        Record::Note(match outcome {
            SavedOutcome::Started(started) => LedgerRecord::Started { number, started: *started },
            SavedOutcome::Done(reply) => LedgerRecord::Done { number, created: None, reply: reply.clone() },
        })
    };
    let owner = noted.owner.map(|key| Record::Note(LedgerRecord::Owner(key)));
    let head = [
        Record::Opened(boot),
        Record::Note(LedgerRecord::Acknowledged(noted.answered)),
        Record::Next(noted.next),
    ];
    let created = noted.created.iter().map(|(number, id)| Record::Created(number, id));
    for record in head.into_iter().chain(owner).chain(created).chain(noted.outcomes.iter().map(outcome)) {
        record.write(&mut log);
    }
    log
}

/// Decodes a log. An incomplete last record was being written when its process ended, and its change had not begun: it
/// is ignored.
///
/// # Errors
/// Any other damage makes all of the log invalid: a change whose record is lost would be applied twice.
pub(super) fn read(log: &Bytes) -> Result<LogContents, Damage> {
    if !log.starts_with(&MAGIC) {
        return Err(Damage::Foreign);
    }
    let mut contents = LogContents { whole_bytes: MAGIC.len(), ..LogContents::default() };
    loop {
        let rest = log.get(contents.whole_bytes..).unwrap_or_default();
        let damage = Damage::Record(contents.whole_bytes);
        let (body, rest) = match FORM.read(rest, HalfSha256::default()) {
            ReadOutcome::Record { contents, rest, .. } => (contents, rest),
            ReadOutcome::Incomplete => return Ok(contents),
            ReadOutcome::Damaged => return Err(damage),
        };
        let record = Record::read(log.slice_ref(body)).map_err(|_| damage)?;
        contents.is_closed = record == Record::Closed;
        contents.whole_bytes = log.len() - rest.len();
        match record {
            Record::Opened(boot) => contents.boot = Some(boot),
            Record::Closed => {}
            Record::Note(note) => contents.noted.apply(note),
            Record::Next(number) => contents.noted.next = contents.noted.next.max(number),
            Record::Created(number, id) => contents.noted.created.insert(number, id),
        }
    }
}

#[cfg(test)]
mod tests;
