//! Negotiation with offers of real kernels.

use super::*;
use crate::request::{self, Body};

/// The offer of Linux 6.18, without features that this crate does not know.
fn offer() -> Offer {
    Offer { major: 7, minor: 45, readahead_bytes_max: 131_072, features: u64::MAX }
}

fn negotiated(offer: &Offer, options: &SessionOptions) -> Negotiated {
    match negotiate(offer, options, 4096) {
        Outcome::Negotiated(negotiated) => negotiated,
        other => panic!("{other:?}"),
    }
}

fn le(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn offers_of_both_lengths_are_decoded() {
    let header = |bytes| le(&[bytes, 26, 1, 0, 0, 0, 0, 0, 0, 0]);
    let long = [header(104), le(&[7, 45, 131_072, 0x4000_0001, 0x12]), vec![0; 44]].concat();
    let (_, body) = request::decode(&long, Dialect::default()).expect("well formed");
    let offer = Offer { features: 0x12_4000_0001, ..offer() };
    assert_eq!(body, Body::Init(offer));
    let short = [header(56), le(&[7, 31, 131_072, 1])].concat();
    let (_, body) = request::decode(&short, Dialect::default()).expect("well formed");
    assert_eq!(body, Body::Init(Offer { minor: 31, features: 1, ..offer }));
}

#[test]
fn the_answer_has_the_kernels_format() {
    let negotiated =
        negotiated(&offer(), &SessionOptions { background_max: 64, ..SessionOptions::default() });
    let answer = negotiated.encode(CallId(2));
    assert_eq!(answer.len(), 80);
    let expected = le(&[80, 0, 2, 0, 7, 45, 131_072, 0x70e4_b46b, 0x0030_0040, 1 << 20, 1, 256, 0x50]);
    let (head, tail) = answer.split_at(expected.len());
    assert_eq!(head, expected);
    assert!(tail.iter().all(|&byte| byte == 0));
}

#[test]
fn only_offered_features_are_requested() {
    let old = Offer { minor: 31, features: feature::ASYNC_READ | feature::FLOCK_LOCKS, ..offer() };
    let negotiated = negotiated(&old, &SessionOptions::default());
    assert_eq!(negotiated.minor, 31);
    assert_eq!(negotiated.features, feature::ASYNC_READ | feature::FLOCK_LOCKS);
    assert_eq!(negotiated.write_bytes_max, 32 * 4096, "without MAX_PAGES a request has 32 pages");
    assert!(!negotiated.dialect().setxattr_ext);
}

#[test]
fn options_choose_features() {
    let with = |options: SessionOptions| negotiated(&offer(), &options).features;
    let default = SessionOptions::default();
    let explicit = with(SessionOptions { auto_inval_data: false, ..default });
    assert_eq!(explicit & feature::AUTO_INVAL_DATA, 0);
    assert_ne!(explicit & feature::EXPLICIT_INVAL_DATA, 0);
    assert_eq!(with(default) & (feature::POSIX_ACL | feature::READDIRPLUS_AUTO), 0);
    let both = with(SessionOptions { posix_acl: true, readdirplus_auto: true, ..default });
    assert_eq!(both & feature::POSIX_ACL, feature::POSIX_ACL);
    assert_eq!(both & feature::READDIRPLUS_AUTO, feature::READDIRPLUS_AUTO);
}

#[test]
fn a_writeback_cache_is_never_requested() {
    assert_eq!(negotiated(&offer(), &SessionOptions::default()).features & (1 << 16), 0);
}

#[test]
fn the_size_of_writes_stays_within_bounds() {
    let write_bytes_max = |max_write| {
        let options = SessionOptions { max_write, ..SessionOptions::default() };
        negotiated(&offer(), &options).write_bytes_max
    };
    assert_eq!(write_bytes_max(0), 4096);
    assert_eq!(write_bytes_max(128 * 1024), 128 * 1024);
    assert_eq!(write_bytes_max(u32::MAX), 1 << 20);
}

#[test]
fn a_kernel_that_is_too_old_or_too_new_is_refused() {
    let options = SessionOptions::default();
    assert_eq!(negotiate(&Offer { minor: 30, ..offer() }, &options, 4096), Outcome::TooOld);
    assert_eq!(negotiate(&Offer { major: 6, ..offer() }, &options, 4096), Outcome::TooOld);
    assert_eq!(negotiate(&Offer { major: 8, ..offer() }, &options, 4096), Outcome::OfferAgain);
    assert_eq!(encode_offer_again(CallId(2)), le(&[24, 0, 2, 0, 7, 45]));
}

// S-60
#[test]
fn the_kernel_gives_out_no_file_handles_if_it_supports_that() {
    let options = SessionOptions::default();
    assert_ne!(negotiated(&offer(), &options).features & feature::NO_EXPORT_SUPPORT, 0);
    let older = Offer { features: offer().features & !feature::NO_EXPORT_SUPPORT, ..offer() };
    assert_eq!(negotiated(&older, &options).features & feature::NO_EXPORT_SUPPORT, 0);
}
