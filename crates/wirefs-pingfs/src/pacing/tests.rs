use std::collections::VecDeque;

use bytes::Bytes;
use wirefs_echo::{
    Cipher, Distance, Echo, EchoBlockId, EchoConfig, EchoKey, HostConfig, HostId, Keep, Origin,
    ReceiveVerdict, Redundancy, SendRate,
};
use wirefs_raw::limits::BATCH_PACKETS_MAX;

use super::*;
use crate::echo_driver::PollBudget;

const HOST: HostId = HostId(0);
/// Duration of one keeper iteration.
const STEP: Duration = Duration::from_micros(100);
const SPAN: Duration = Duration::from_secs(10);

/// The state machine, a host that answers at once, and a keeper.
struct SimulatedKeeper {
    echo: Echo,
    now: Time,
    buffer: VecDeque<Vec<u8>>,
    pacing: ReceivePacing,
}

impl SimulatedKeeper {
    /// Creates a store with `packets` blocks of one packet each.
    fn with(rate: u32, packets: u64) -> SimulatedKeeper {
        let host = HostConfig {
            buffer_packets: packets * 2,
            parked_packets: packets,
            goal_packets: 0,
            rate: Some(SendRate::Fixed(rate)),
        };
        let config = EchoConfig {
            key: EchoKey([7; 32]),
            origin: Origin(1),
            cipher: Cipher::default(),
            hosts: vec![host],
            keep: Keep::Index,
            redundancy: Redundancy::Copies(1),
            rate: SendRate::Fixed(rate),
            packet_bytes: 1_472,
            ram_bytes: 0,
        };
        let (echo, buffer) = (Echo::new(&config).unwrap(), VecDeque::new());
        let mut keeper =
            SimulatedKeeper { echo, now: Time::default(), buffer, pacing: ReceivePacing::default() };
        let mut number = 0;
        while number < packets || !keeper.echo.is_sent_up_to(keeper.echo.sync_point()) {
            keeper.poll_once(PollBudget::Full);
            let (id, block) = (EchoBlockId::from(u128::from(number)), Bytes::from_static(b"block"));
            number += u64::from(
                number < packets && keeper.echo.store_block(keeper.now, id, block, Distance::Any).is_ok(),
            );
            keeper.now = keeper.now + STEP;
        }
        keeper
    }

    fn poll_once(&mut self, budget: PollBudget) -> bool {
        let is_waiting = budget == PollBudget::Quiet && self.pacing.wait(self.now).is_some();
        let max = if is_waiting { 0 } else { self.echo.allowance(self.now, HOST).min(BATCH_PACKETS_MAX) };
        if max > 0 {
            let count = self.buffer.len().min(max);
            let mut resent = 0;
            for _ in 0..count {
                let mut packet = self.buffer.pop_front().unwrap();
                if let ReceiveVerdict::Resend(_) =
                    self.echo.receive(self.now, HOST, Duration::ZERO, &mut packet)
                {
                    resent += 1;
                    self.buffer.push_back(packet);
                }
            }
            let is_drained = count < max;
            if is_drained {
                self.echo.drained(self.now, HOST);
            }
            let packets = self.echo.status(HOST).unwrap().packets;
            let taken = ReceivedBatch { replies: count as u32, resent, is_drained, packets };
            self.pacing.record(self.now, budget.rate(packets), taken);
        } else if !is_waiting {
            self.pacing.hold();
        }
        self.echo.tick(self.now);
        let mut room = vec![0; 1_472];
        while let Some(written) = self.echo.poll_packet(self.now, HOST, &mut room) {
            self.buffer.push_back(room[..written.bytes].to_vec());
        }
        max > 0 || is_waiting
    }

    /// Runs for `SPAN` without requests. Returns the packets sent again, and the keeper's iterations.
    fn quiet(&mut self) -> (u64, u32) {
        let (before, end, mut polls) = (self.echo.counters().circulated, self.now + SPAN, 0);
        while self.now < end {
            polls += 1;
            let may_read = self.poll_once(PollBudget::Quiet);
            let until = match self.pacing.wait(self.now) {
                Some(wait) => wait.min(self.echo.deadline() - self.now),
                // The socket is readable.
                None if may_read && !self.buffer.is_empty() => Duration::ZERO,
                None => self.echo.deadline() - self.now,
            };
            let wait_min = if until.is_zero() { STEP } else { pause_min(true, [&self.pacing].into_iter()) };
            self.now = self.now + until.max(wait_min);
        }
        (self.echo.counters().circulated - before, polls)
    }
}

#[test]
fn packets_of_a_near_host_circulate_within_two_seconds_or_at_its_rate() {
    for (rate, packets) in
        [(200, 500), (1_000, 1_000), (1_000, 4_096), (10_000, 4_096), (10_000, 16_000), (1_000_000, 4_096)]
    {
        let (resent, _) = SimulatedKeeper::with(rate, packets).quiet();
        let needed = (packets / 2).max(1_000).min(u64::from(rate)) * SPAN.as_secs();
        assert!(resent >= needed * 9 / 10, "{resent} of {needed}: {packets} packets at {rate}");
    }
}

#[test]
fn keeper_of_few_packets_polls_twenty_times_a_second() {
    for (rate, packets) in [(1_000, 4), (1_000, 6), (10_000, 4), (10_000, 60), (1_000_000, 40)] {
        let (resent, polls) = SimulatedKeeper::with(rate, packets).quiet();
        let expected = (SPAN.as_nanos() / QUIET_PAUSE_MIN.as_nanos()) as u32;
        assert!(resent >= packets * 5, "{resent} at {rate}");
        assert!(polls <= expected + expected / 10, "{polls} polls at {rate}");
    }
}

#[test]
fn foreign_packets_do_not_slow_the_keeper() {
    let mut pacing = ReceivePacing::default();
    let taken = ReceivedBatch { replies: 64, resent: 4, is_drained: false, packets: 1_000_000 };
    pacing.record(Time(0), Some(1_000), taken);
    assert_eq!(pacing.wait(Time(0)), Some(Duration::from_millis(4)), "own packets are sent at their rate");
    pacing.record(Time(0), Some(1_000), ReceivedBatch { resent: 0, ..taken });
    assert_eq!(
        pacing.wait(Time(0)),
        Some(Duration::from_secs(1) * 64 / IDLE_RATE),
        "foreign packets are discarded"
    );
    assert_eq!(pause_min(true, [&pacing].into_iter()), KEEPER_PAUSE_MIN);
    pacing.record(Time(0), Some(1_000), ReceivedBatch { resent: 0, is_drained: true, ..taken });
    assert_eq!(pause_min(true, [&pacing].into_iter()), QUIET_PAUSE_MIN);
    assert_eq!(pause_min(false, [&pacing].into_iter()), KEEPER_PAUSE_MIN);
}
