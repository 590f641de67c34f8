use super::Rtimes;
use crate::message::tests::reply_is;
use crate::message::{Reply, Tag};

#[test]
fn rtimes_has_these_bytes() {
    let times = Rtimes { is_parked: false, queue_us: 1, run_us: 2, disk_us: 0x0102_0304, recall_us: 5 };
    reply_is(Tag(7), Reply::Times(times), "18000000 a7 0700 00 01000000 02000000 04030201 05000000");
}
