//! No bytes make a decoder panic or return a value beyond the limits.

use crate::inspect::{decode_by_all, listing_from, stream_from};
use crate::round_trip::push;
use crate::values::message::{reply, request, tag};
use crate::values::{entry, found};
use proptest::prelude::*;
use wirefs_op::Frame;
use wirefs_op::find_listing::FindWriter;
use wirefs_op::listing::ListingWriter;

/// A modification of a message, at a position given as a fraction of its length, in units of 2^-16.
#[derive(Clone, Debug)]
enum Damage {
    Replace(u16, u8),
    Insert(u16, u8),
    Delete(u16),
    Cut(u16),
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    // Lengths and bits come early; false ones are mostly small or extreme bytes.
    let byte = || prop_oneof![0..4_u8, Just(0x7f), Just(0x80), Just(0xff), any::<u8>()];
    let one = prop_oneof![
        (any::<u16>(), byte()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (any::<u16>(), byte()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        any::<u16>().prop_map(Damage::Delete),
        any::<u16>().prop_map(Damage::Cut),
    ];
    prop::collection::vec(one, 1..4)
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let place = |at: u16| usize::from(at) * bytes.len() / (1 << 16);
        match *damage {
            Damage::Replace(at, byte) => {
                let at = place(at);
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
            Damage::Insert(at, byte) => bytes.insert(place(at), byte),
            Damage::Delete(at) if !bytes.is_empty() => drop(bytes.remove(place(at))),
            Damage::Delete(_) => {}
            Damage::Cut(at) => bytes.truncate(place(at)),
        }
    }
    bytes
}

fn check(frame: &Frame, damages: &[Damage]) {
    decode_by_all(&damaged(frame.to_body().to_vec(), damages));
}

proptest! {
    #[test]
    fn random_bytes_are_rejected_or_valid(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        decode_by_all(&bytes);
    }

    #[test]
    fn damaged_requests_are_rejected_or_valid(tag in tag(), request in request(), damages in damage()) {
        check(&request.encode(tag), &damages);
    }

    #[test]
    fn damaged_replies_are_rejected_or_valid(tag in tag(), reply in reply(), damages in damage()) {
        check(&reply.encode(tag), &damages);
    }

    #[test]
    fn damaged_listings_are_rejected_or_valid(
        listed in prop::collection::vec(entry(), 1..8),
        damages in damage(),
    ) {
        let mut writer = ListingWriter::new(usize::MAX);
        for entry in &listed {
            writer.push(entry);
        }
        let _ = listing_from(&damaged(writer.finish().to_vec(), &damages));
    }

    #[test]
    fn damaged_streams_are_rejected_or_valid(records in found(), damages in damage()) {
        let mut writer = FindWriter::new(usize::MAX);
        for record in &records {
            push(&mut writer, record);
        }
        let _ = stream_from(&damaged(writer.finish().to_vec(), &damages));
    }
}
