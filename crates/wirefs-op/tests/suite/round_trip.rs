//! Decoding an encoded value returns the same value, from exactly one encoding, without copying contents.

use crate::inspect::{reply_data, reply_from, request_data, request_from};
use crate::values::message::{reply, request, tag};
use crate::values::{entry, found};
use proptest::prelude::*;
use wirefs_op::find_listing::{FindReader, FindRecord, FindWriter};
use wirefs_op::limits::{DATA_BYTES_MAX, LISTING_BYTES_MAX};
use wirefs_op::listing::{ListingWriter, entries};
use wirefs_op::{Reply, Request};

/// Returns true if `part` is a slice of `whole` in memory.
fn is_within(part: &[u8], whole: &[u8]) -> bool {
    let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
    part.is_empty() || whole.start <= part.start && part.end <= whole.end
}

proptest! {
    #[test]
    fn requests_round_trip(tag in tag(), request in request()) {
        let frame = request.encode(tag);
        prop_assert_eq!(request_from(&frame.to_body()), Ok((tag, request)));
    }

    #[test]
    fn replies_round_trip(tag in tag(), reply in reply()) {
        let frame = reply.encode(tag);
        prop_assert_eq!(reply_from(&frame.to_body()), Ok((tag, reply)));
    }

    #[test]
    fn request_data_is_shared_and_never_copied(tag in tag(), request in request()) {
        let frame = request.encode(tag);
        prop_assert_eq!(frame.data.as_ptr(), bytes_ptr(request_data(&request), &frame.data));
        let body = frame.to_body();
        let (_, decoded) = Request::decode(body.clone()).unwrap();
        prop_assert!(is_within(request_data(&decoded), &body));
    }

    #[test]
    fn reply_data_is_shared_and_never_copied(tag in tag(), reply in reply()) {
        let frame = reply.encode(tag);
        prop_assert_eq!(frame.data.as_ptr(), bytes_ptr(reply_data(&reply), &frame.data));
        let body = frame.to_body();
        let (_, decoded) = Reply::decode(body.clone()).unwrap();
        prop_assert!(is_within(reply_data(&decoded), &body));
    }

    #[test]
    fn listings_round_trip(
        listed in prop::collection::vec(entry(), 0..40),
        bytes_max in prop_oneof![Just(LISTING_BYTES_MAX), 0..4096_usize],
    ) {
        let mut writer = ListingWriter::new(bytes_max);
        let fitting = listed.iter().take_while(|entry| writer.push(entry)).count();
        let packed = writer.finish();
        prop_assert!(packed.len() <= bytes_max);
        prop_assert_eq!(entries(packed).unwrap(), &listed[..fitting]);
    }

    #[test]
    fn streams_round_trip(
        records in found(),
        bytes_max in prop_oneof![Just(DATA_BYTES_MAX), 0..1024_usize],
    ) {
        let mut writer = FindWriter::new(bytes_max);
        let fitting = records.iter().take_while(|record| push(&mut writer, record)).count();
        let packed = writer.finish();
        prop_assert!(packed.len() <= bytes_max);
        let taken: Vec<FindRecord> = FindReader::new(packed.clone()).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&taken, &records[..fitting]);
        for record in &taken {
            if let FindRecord::Entry(entry) = record {
                prop_assert!(is_within(entry.contents.as_deref().unwrap_or_default(), &packed));
            }
        }
    }
}

/// Adds a record to a stream message if it fits.
pub(crate) fn push(writer: &mut FindWriter, record: &FindRecord) -> bool {
    match record {
        FindRecord::Directory(directory) => writer.directory(directory),
        FindRecord::Entry(entry) => writer.entry(&entry.name, &entry.stat, entry.contents.as_deref()),
    }
}

/// Returns the address of the data; empty data has no address to compare.
fn bytes_ptr(data: &[u8], encoded: &[u8]) -> *const u8 {
    if data.is_empty() { encoded.as_ptr() } else { data.as_ptr() }
}
