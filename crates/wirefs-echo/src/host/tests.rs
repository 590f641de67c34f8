use super::*;

const RTT: Duration = Duration::from_millis(100);

fn ms(count: u64) -> Time {
    Time(count * 1_000_000)
}

fn host() -> Host {
    let config = HostConfig { buffer_packets: 10_000, parked_packets: 0, goal_packets: 0, rate: None };
    let mut host = Host::new(HostId(0), config, SendRate::Fixed(10_000));
    // Twenty cycles of one packet.
    for cycle in 0..20 {
        let sequence = host.send(ms(cycle * 100), false);
        reply(&mut host, sequence, cycle * 100, cycle * 100 + 100);
    }
    host
}

fn reply(host: &mut Host, sequence: PacketSequence, sent: u64, now: u64) {
    host.timeline.answered(sequence);
    host.answered(ms(now), Reply { sequence, sent: ms(sent), waited: Duration::ZERO });
}

#[test]
fn loss_is_detected_when_later_packets_are_answered() {
    let mut host = host();
    let lost = host.send(ms(2_000), false);
    let later = host.send(ms(2_040), false);
    assert!(!host.close(ms(2_120)));
    reply(&mut host, later, 2_040, 2_140);
    assert!(host.close(ms(2_140)), "0.4 cycles after its reply was due");
    assert!(lost < host.timeline.closed_below());
    assert_eq!(host.lost, 1);
}

#[test]
fn loss_of_the_only_packet_is_detected_within_two_cycles() {
    let mut host = host();
    host.send(ms(2_000), false);
    for now in 2_000..2_110 {
        host.drained(ms(now));
        assert!(!host.close(ms(now)), "{now}");
    }
    let noticed = (2_110..2_300).find(|&now| {
        host.drained(ms(now));
        host.close(ms(now))
    });
    assert!(noticed.is_some_and(|now| now <= 2_200), "{noticed:?}");
}

#[test]
fn paused_driver_detects_no_loss() {
    let mut host = host();
    host.send(ms(2_000), false);
    assert!(!host.close(ms(9_000)), "the receive buffer was not empty since");
    assert!(!host.detect_silence());
}

#[test]
fn growing_queue_is_no_loss() {
    let mut host = host();
    let sequences: Vec<PacketSequence> =
        (0..100).map(|number| host.send(ms(2_000 + number), false)).collect();
    for (number, sequence) in sequences.into_iter().enumerate() {
        // Each reply is ten times as late as the one before.
        let (sent, now) = (2_000 + number as u64, 2_100 + number as u64 * 11);
        assert!(!host.close(ms(now)));
        reply(&mut host, sequence, sent, now);
    }
    assert_eq!(host.lost, 0);
}

#[test]
fn silence_is_detected_and_ends_with_any_reply() {
    let mut host = host();
    host.send(ms(2_000), false);
    let silent = (2_000..3_000).find(|&now| {
        host.drained(ms(now));
        host.detect_silence()
    });
    assert!(silent.is_some_and(|now| (2_200..2_600).contains(&now)), "{silent:?}");
    assert_eq!((host.status().state, host.limit()), (HostState::Silent, 0));
    host.plan_probes(ms(3_000));
    assert!(host.take_probe() && !host.take_probe(), "one probe is due");
    host.plan_probes(ms(3_500));
    assert!(!host.take_probe(), "no probe within the next second");
    host.plan_probes(ms(4_000));
    assert!(host.take_probe());
    let probe = host.send(ms(4_000), true);
    assert!(host.timeline.probe_answered(probe));
    assert!(host.answered(ms(4_100), Reply { sequence: probe, sent: ms(4_000), waited: Duration::ZERO }));
    assert!(host.is_answering());
}

#[test]
fn fixed_rate_admits_rate_times_rtt() {
    let host = host();
    assert_eq!(host.rtt_min(), Some(RTT));
    assert_eq!(host.limit(), 1_000);
    let mut config = HostConfig { buffer_packets: 1_300, parked_packets: 500, goal_packets: 0, rate: None };
    let limit = |config| Host { config, ..self::host() }.limit();
    assert_eq!(limit(config), 1_300, "never more than the receive buffer holds");
    config.buffer_packets = 9_999;
    assert_eq!(limit(config), 1_500);
}

#[test]
fn time_in_the_receive_buffer_is_not_part_of_the_rtt() {
    let mut host = host();
    let sequence = host.send(ms(2_000), false);
    host.timeline.answered(sequence);
    let waited = Duration::from_millis(430);
    host.answered(ms(2_500), Reply { sequence, sent: ms(2_000), waited });
    assert_eq!(host.rtt_min(), Some(Duration::from_millis(70)));
}

#[test]
fn wait_longer_than_the_cycle_does_not_yield_a_zero_rtt() {
    for waited in [100, 101, 5_000] {
        let mut host = host();
        let sequence = host.send(ms(2_000), false);
        host.timeline.answered(sequence);
        host.answered(ms(2_100), Reply { sequence, sent: ms(2_000), waited: Duration::from_millis(waited) });
        assert_eq!(host.rtt_min(), Some(RTT), "waited {waited}");
        assert_eq!(host.limit(), 1_000);
    }
}
