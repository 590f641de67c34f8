//! Redials, and a connection that is established while the mount stops.

use super::*;
use crate::engine::Engine;
use std::sync::Arc;
use wirefs_cache::Mode;
use wirefs_carrier::{Carrier, Dial, DialError, memory};
use wirefs_client::Attachment;
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::{FileId, Kind, Stat};

/// A dialer that is not used.
struct Nowhere;

impl Dial for Nowhere {
    fn dial(&self) -> Result<Carrier, DialError> {
        unreachable!("the carrier is there")
    }
}

fn plan() -> MountPlan {
    MountPlan {
        dial: Arc::new(Nowhere),
        path: Vec::new(),
        user: "tester".to_owned(),
        mode: Mode::parse("window").expect("a mode"),
        deadline: None,
        cache_bytes_max: 0,
        threads: 1,
        connections_max: 1,
        uid: 0,
        gid: 0,
        confines_links: false,
        store: None,
        journal: None,
        tell: |_| {},
    }
}

fn attached(carrier: Carrier) -> Attached {
    let root = Stat::blank(FileId { fs: 0, ino: 2, generation: 1 }, Kind::Directory);
    let attachment = Attachment {
        root,
        uid: 0,
        gid: 0,
        acts_for_callers: true,
        read_only: false,
        boot: BootId(1),
        ledger: None,
        has_barriers: false,
        data_connections: 0,
        leases: None,
    };
    Attached { carrier, attachment, resumed: false, early: Vec::new() }
}

// S-81
#[test]
fn each_protocol_fault_in_a_row_doubles_the_wait_before_the_next_dial() {
    let waits = |ends: &[End]| {
        let next = |wait: &mut Duration, end: &End| {
            *wait = wait_after(*end, *wait);
            Some(wait.as_millis())
        };
        ends.iter().scan(Duration::ZERO, next).collect::<Vec<_>>()
    };
    assert_eq!(waits(&[End::Fault, End::Fault, End::Fault, End::Broken, End::Fault]), [5, 10, 20, 0, 5]);
    assert_eq!(waits(&[End::Fault; 20]).last(), Some(&RETRY_MAX.as_millis()));
}

#[test]
fn connection_after_the_stop_is_closed_and_unused() {
    for stops in [false, true] {
        let (first, _far) = memory::pair().expect("two ends");
        let engine = Arc::new(Engine::new(&plan(), SessionId([7; 16]), &attached(first), None, None));
        if stops {
            engine.stop();
        }
        let (near, _far) = memory::pair().expect("two ends");
        let closer = near.closer.clone();
        let _source = install(&engine, attached(near), true);
        assert_eq!(closer.is_closed(), stops);
        assert_eq!(engine.lock().closer.is_none(), stops);
    }
}
