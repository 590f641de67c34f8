//! Fuzz targets for the decoders. On the stable toolchain they run as property tests, limited by
//! `BOLERO_RANDOM_ITERATIONS` and `BOLERO_RANDOM_TEST_TIME_MS`; under `cargo bolero test` they are guided by
//! coverage.

use crate::examples::examples;
use crate::inspect::{decode_by_all, listing_from, reply_from, request_from, stream_from};

// S-80
#[test]
fn fuzz_request_decoder() {
    bolero::check!().for_each(|body: &[u8]| {
        let _ = request_from(body);
    });
}

// S-80
#[test]
fn fuzz_reply_decoder() {
    bolero::check!().for_each(|body: &[u8]| {
        let _ = reply_from(body);
    });
}

#[test]
fn fuzz_listing_decoder() {
    bolero::check!().for_each(|data: &[u8]| {
        let _ = listing_from(data);
    });
}

// S-80
#[test]
fn fuzz_stream_decoder() {
    bolero::check!().for_each(|data: &[u8]| {
        let _ = stream_from(data);
    });
}

/// Starts with an open directory, so that entries are valid.
#[test]
fn fuzz_stream_decoder_within_a_directory() {
    bolero::check!().for_each(|entries: &[u8]| {
        let _ = stream_from(&[&[0x13, 0, 1, b'd', 0], entries].concat());
    });
}

/// Starts with the examples of the specification, so that deep parts of each message are reached without
/// coverage.
#[test]
fn fuzz_edited_examples() {
    let bodies: Vec<Vec<u8>> = examples().into_iter().map(|example| example.bytes[4..].to_vec()).collect();
    bolero::check!().with_type::<(u8, Vec<(u8, u8)>, u8)>().for_each(|(which, edits, cut)| {
        let mut body = bodies[usize::from(*which) % bodies.len()].clone();
        for &(at, byte) in edits {
            let at = usize::from(at) % body.len();
            body[at] = byte;
        }
        body.truncate(body.len() - usize::from(*cut).saturating_sub(200) % body.len());
        decode_by_all(&body);
    });
}
