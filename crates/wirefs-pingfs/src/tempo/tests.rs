use std::collections::VecDeque;

use bytes::Bytes;
use wirefs_echo::{
    BlockId, Cipher, Config, Distance, Echo, HostConfig, HostId, Keep, Key, Origin, Rate, Redundancy, Verdict,
};
use wirefs_raw::limits::BATCH_PACKETS_MAX;

use super::*;
use crate::circuit::Zeal;

const HOST: HostId = HostId(0);
/// What a turn of the keeper takes.
const TURN: Duration = Duration::from_micros(100);
const SPAN: Duration = Duration::from_secs(10);

/// The machine, a host that is so near that each packet is back at once, and a keeper.
struct Played {
    echo: Echo,
    now: Time,
    buffer: VecDeque<Vec<u8>>,
    tempo: Tempo,
}

impl Played {
    /// A store with so many blocks of a packet each.
    fn with(rate: u32, packets: u64) -> Played {
        let host = HostConfig {
            buffer_packets: packets * 2,
            parked_packets: packets,
            goal_packets: 0,
            rate: Some(Rate::Fixed(rate)),
        };
        let config = Config {
            key: Key([7; 32]),
            origin: Origin(1),
            cipher: Cipher::default(),
            hosts: vec![host],
            keep: Keep::Index,
            redundancy: Redundancy::Copies(1),
            rate: Rate::Fixed(rate),
            packet_bytes: 1_472,
            ram_bytes: 0,
        };
        let (echo, buffer) = (Echo::new(&config).unwrap(), VecDeque::new());
        let mut played = Played { echo, now: Time::default(), buffer, tempo: Tempo::default() };
        let mut number = 0;
        while number < packets || !played.echo.has_left(played.echo.mark()) {
            played.turn(Zeal::Full);
            let (id, block) = (BlockId::from(u128::from(number)), Bytes::from_static(b"block"));
            number +=
                u64::from(number < packets && played.echo.keep(played.now, id, block, Distance::Any).is_ok());
            played.now = played.now + TURN;
        }
        played
    }

    fn turn(&mut self, zeal: Zeal) -> bool {
        let rests = zeal == Zeal::Quiet && self.tempo.rests(self.now).is_some();
        let most = if rests { 0 } else { self.echo.allowance(self.now, HOST).min(BATCH_PACKETS_MAX) };
        if most > 0 {
            let count = self.buffer.len().min(most);
            let mut sent_on = 0;
            for _ in 0..count {
                let mut packet = self.buffer.pop_front().unwrap();
                if let Verdict::Resend(_) = self.echo.receive(self.now, HOST, Duration::ZERO, &mut packet) {
                    sent_on += 1;
                    self.buffer.push_back(packet);
                }
            }
            let is_drained = count < most;
            if is_drained {
                self.echo.drained(self.now, HOST);
            }
            let packets = self.echo.status(HOST).unwrap().packets;
            let taken = Taken { replies: count as u32, sent_on, is_drained, packets };
            self.tempo.took(self.now, zeal.rate(packets), taken);
        } else if !rests {
            self.tempo.hold();
        }
        self.echo.tick(self.now);
        let mut room = vec![0; 1_472];
        while let Some(written) = self.echo.poll_packet(self.now, HOST, &mut room) {
            self.buffer.push_back(room[..written.bytes].to_vec());
        }
        most > 0 || rests
    }

    /// What goes on in a while, while nobody asks for anything, and how often the keeper looks.
    fn quiet(&mut self) -> (u64, u32) {
        let (before, end, mut turns) = (self.echo.counters().circulated, self.now + SPAN, 0);
        while self.now < end {
            turns += 1;
            let may_read = self.turn(Zeal::Quiet);
            let until = match self.tempo.rests(self.now) {
                Some(rests) => rests.min(self.echo.deadline() - self.now),
                // The socket is readable.
                None if may_read && !self.buffer.is_empty() => Duration::ZERO,
                None => self.echo.deadline() - self.now,
            };
            let least = if until.is_zero() { TURN } else { pause_min(true, [&self.tempo].into_iter()) };
            self.now = self.now + until.max(least);
        }
        (self.echo.counters().circulated - before, turns)
    }
}

#[test]
fn packets_of_a_near_host_go_on_within_two_seconds_or_as_its_rate_allows() {
    for (rate, packets) in
        [(200, 500), (1_000, 1_000), (1_000, 4_096), (10_000, 4_096), (10_000, 16_000), (1_000_000, 4_096)]
    {
        let (gone_on, _) = Played::with(rate, packets).quiet();
        let needed = (packets / 2).max(1_000).min(u64::from(rate)) * SPAN.as_secs();
        assert!(gone_on >= needed * 9 / 10, "{gone_on} of {needed}: {packets} packets at {rate}");
    }
}

#[test]
fn keeper_of_few_packets_looks_twenty_times_a_second() {
    for (rate, packets) in [(1_000, 4), (1_000, 6), (10_000, 4), (10_000, 60), (1_000_000, 40)] {
        let (gone_on, turns) = Played::with(rate, packets).quiet();
        let looks = (SPAN.as_nanos() / QUIET_PAUSE_MIN.as_nanos()) as u32;
        assert!(gone_on >= packets * 5, "{gone_on} at {rate}");
        assert!(turns <= looks + looks / 10, "{turns} looks at {rate}");
    }
}

#[test]
fn what_nobody_asked_for_does_not_slow_the_keeper() {
    let mut tempo = Tempo::default();
    let taken = Taken { replies: 64, sent_on: 4, is_drained: false, packets: 1_000_000 };
    tempo.took(Time(0), Some(1_000), taken);
    assert_eq!(tempo.rests(Time(0)), Some(Duration::from_millis(4)), "its own go on at their rate");
    tempo.took(Time(0), Some(1_000), Taken { sent_on: 0, ..taken });
    assert_eq!(tempo.rests(Time(0)), Some(Duration::from_secs(1) * 64 / IDLE_RATE), "the rest is read away");
    assert_eq!(pause_min(true, [&tempo].into_iter()), KEEPER_PAUSE_MIN);
    tempo.took(Time(0), Some(1_000), Taken { sent_on: 0, is_drained: true, ..taken });
    assert_eq!(pause_min(true, [&tempo].into_iter()), QUIET_PAUSE_MIN);
    assert_eq!(pause_min(false, [&tempo].into_iter()), KEEPER_PAUSE_MIN);
}
