//! Tests of all messages: round trips, hostile bytes, the examples of the specification.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod examples;
mod fuzz;
mod hostile;
mod inspect;
mod protocol_doc;
mod round_trip;
mod values;
