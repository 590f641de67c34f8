//! The specification agrees with the code.

use crate::examples::{SPECIFICATION, examples};
use crate::inspect::{listing_from, reply_data, reply_from, request_from, stream_from};
use std::collections::BTreeSet;
use wirefs_op::{Errno, Reply, Tag};

/// The range of type codes.
const CODES: std::ops::RangeInclusive<u8> = 100..=165;

/// Returns the name of the message with this type code, including its T or R; `None` for an unused code.
fn message_name(code: u8) -> Option<String> {
    // A message of this type alone decodes or ends within a field; an unknown type is rejected as such.
    let known = |refused: Option<&str>| refused != Some("no such message type");
    let body = [code, 0, 0];
    let request = request_from(&body).map_err(|malformed| malformed.what).err();
    let reply = reply_from(&body).map_err(|malformed| malformed.what).err();
    let letter = match (known(request), known(reply)) {
        (true, false) => 'T',
        (false, true) => 'R',
        (false, false) => return None,
        (true, true) => panic!("{code} is a request and a reply"),
    };
    let row = SPECIFICATION.lines().find(|line| line.starts_with(&format!("| {code} | {letter}")));
    let row = row.unwrap_or_else(|| panic!("type {code} is missing in the table of messages"));
    Some(row.split('|').nth(2).unwrap().trim().to_string())
}

#[test]
fn each_example_decodes_to_its_message_and_encodes_to_the_same_bytes() {
    for example in examples() {
        let place = format!("{} at line {}", example.name, example.line);
        if example.name == "entry" {
            assert_eq!(listing_from(&example.bytes), Ok(()), "{place}");
            continue;
        }
        let (size, body) = example.bytes.split_at(4);
        assert_eq!(size, (example.bytes.len() as u32).to_le_bytes(), "size of {place}");
        // Both functions compare the bytes after encoding again.
        let decoded = match example.name.split_at(1) {
            ("T", name) => request_from(body)
                .map(|(_, request)| (request.name().eq_ignore_ascii_case(name), request.code())),
            ("R", name) => {
                reply_from(body).map(|(_, reply)| (reply.name().eq_ignore_ascii_case(name), reply.code()))
            }
            _ => panic!("{place} is neither T nor R"),
        };
        assert_eq!(decoded, Ok((true, body[0])), "{place}");
        if let Ok((_, reply @ Reply::Find(_))) = reply_from(body) {
            assert_eq!(stream_from(reply_data(&reply)), Ok(()), "{place}");
        }
    }
}

#[test]
fn each_message_has_a_row_a_layout_and_an_example() {
    let shown: BTreeSet<String> = examples().into_iter().map(|example| example.name).collect();
    for name in CODES.filter_map(message_name) {
        assert!(shown.contains(&name), "no example of {name}");
        let layout = format!("size[4] {name} tag[2]");
        assert!(SPECIFICATION.lines().any(|line| line.starts_with(&layout)), "no line {layout:?}");
    }
}

#[test]
fn the_table_of_errors_matches_the_wire_codes() {
    for errno in Errno::ALL {
        let row = format!("| {} | {} |", errno.code(), errno.text());
        let listed = SPECIFICATION.lines().any(|line| line.replace('`', "").ends_with(&row));
        assert!(listed, "no row that ends {row:?}");
    }
}

#[test]
fn notag_has_the_value_in_the_specification() {
    assert_eq!(wirefs_op::NOTAG, Tag(0xffff));
}
