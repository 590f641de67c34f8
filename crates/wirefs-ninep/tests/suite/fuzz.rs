//! Fuzz targets for the decoders; on the stable toolchain they run as property tests.

use crate::round_trip::decode_by_all;

#[test]
fn fuzz_decoders() {
    bolero::check!().for_each(|body: &[u8]| decode_by_all(body));
}

/// Starts with a type that exists, so that each message's fields are reached without coverage.
#[test]
fn fuzz_fields_of_each_message() {
    bolero::check!().with_type::<(u8, Vec<u8>)>().for_each(|(code, fields)| {
        decode_by_all(&[&[code % 128, 1, 0], &fields[..]].concat());
    });
}
