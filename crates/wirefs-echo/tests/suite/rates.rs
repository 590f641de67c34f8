//! Send rates and capacity.

use std::time::Duration;

use wirefs_echo::{Distance, EchoRefusal, HostId, Redundancy, SendRate};

use crate::simulation::{HostProfile, PACKET_BYTES, Simulation, content, id, ms};

const HOST: HostId = HostId(0);

/// Stores blocks until the store is full, and returns their number.
fn fill(sim: &mut Simulation, first: u64) -> u64 {
    for number in first.. {
        let end = sim.now + Duration::from_secs(120);
        loop {
            match sim.echo.store_block(sim.now, id(number), content(number, 1_000), Distance::Any) {
                Ok(()) => break,
                Err(EchoRefusal::NoSpace { may_grow: false }) => return number - first,
                Err(EchoRefusal::Busy | EchoRefusal::NoSpace { may_grow: true }) => sim.run(ms(5)),
                Err(refusal) => panic!("{refusal:?}"),
            }
            assert!(
                sim.now < end,
                "block {number}: neither accepted nor refused: {:?}",
                sim.echo.status(HOST)
            );
        }
    }
    0
}

fn adaptive(max: u32) -> impl Fn(&mut wirefs_echo::EchoConfig) {
    move |config| config.rate = SendRate::Adaptive { max }
}

#[test]
fn fixed_rate_is_kept_and_limits_the_capacity() {
    let mut sim =
        Simulation::answering(&[HostProfile::at(ms(200))], 1, |config| config.rate = SendRate::Fixed(1_000));
    let capacity = sim.echo.capacity();
    assert_eq!((capacity.packets_max, capacity.may_grow), (200, false));
    assert_eq!(capacity.bytes_max(), 200 * 1_416);
    assert_eq!(fill(&mut sim, 0), 200, "rate times RTT");
    assert_eq!(sim.echo.capacity().bytes_free(), 0);
    for _ in 0..50 {
        let before = sim.paths[0].sent;
        sim.run(ms(100));
        assert!(sim.paths[0].sent - before <= 106, "{}", sim.paths[0].sent - before);
    }
    assert_eq!(sim.check_all(0..200, 1_000), 200);
    sim.echo.drop_block(sim.now, id(3)).unwrap();
    assert_eq!(fill(&mut sim, 200), 1, "the freed room");
}

#[test]
fn capacity_is_divided_by_the_redundancy() {
    for (redundancy, blocks, block_bytes) in [
        (Redundancy::Copies(2), 100, 1_416),
        (Redundancy::Copies(3), 66, 1_416),
        (Redundancy::Code { pieces: 8, extra: 2 }, 20, 8 * 1_416),
    ] {
        let mut sim = Simulation::answering(&[HostProfile::at(ms(200))], 1, |config| {
            config.rate = SendRate::Fixed(1_000);
            config.redundancy = redundancy;
        });
        assert_eq!(sim.echo.capacity().bytes_max(), blocks * block_bytes);
        assert_eq!(fill(&mut sim, 0), blocks);
    }
}

#[test]
fn rate_is_found_at_a_bottleneck_without_loss() {
    // 1,000 full packets per second, and a queue for a tenth of a second.
    let profile = HostProfile::at(ms(100)).with(|path| {
        path.rate_bits = Some(1_000 * PACKET_BYTES as u64 * 8);
        path.queue_bytes = Some(100 * PACKET_BYTES as u64);
    });
    let mut sim = Simulation::answering(&[profile], 3, adaptive(1_000_000));
    let blocks = fill(&mut sim, 0);
    // The packets have 1,056 of 1,472 bytes, so more than 100 of them are in flight in the end.
    assert!((60..=150).contains(&blocks), "{blocks}: {:?}", sim.echo.status(HOST));
    assert!(sim.lost.is_empty(), "{:?}", sim.lost);
    sim.run(ms(60_000));
    assert!(sim.lost.is_empty(), "{:?}", sim.lost);
    assert_eq!(sim.check_all(0..blocks, 1_000) as u64, blocks);
}

#[test]
fn host_that_limits_its_replies_is_not_sent_more() {
    let mut profile = HostProfile::at(ms(100));
    profile.replies_per_second = Some(2_000);
    let mut sim = Simulation::answering(&[profile], 3, |config| {
        adaptive(1_000_000)(config);
        config.hosts[0].goal_packets = 1_000;
    });
    // The rate is found before a block is stored.
    sim.run(ms(20_000));
    let status = sim.echo.status(HOST).unwrap();
    // The host answers an additional burst after a pause, which raises the measured rate.
    assert!((1_500.0..2_300.0).contains(&status.rate), "{status:?}");
    let blocks = fill(&mut sim, 0);
    assert!((100..=200).contains(&blocks), "{blocks}");
    let before = (sim.paths[0].sent, sim.now, sim.paths[0].lane.counters().offered_frames);
    sim.run(ms(20_000));
    let sent = sim.paths[0].sent - before.0;
    let rate = sent as f64 / (sim.now - before.1).as_secs_f64();
    assert!(rate <= 2_000.0, "{rate}");
    // Unanswered packets are padding probes that test for a higher rate.
    let answered = sim.paths[0].lane.counters().offered_frames - before.2;
    assert!(answered as f64 > sent as f64 * 0.99, "{answered} of {sent}");
    assert!(sim.lost.is_empty());
}

#[test]
fn no_probes_are_sent_for_unneeded_room() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(100))], 3, adaptive(1_000_000));
    sim.run(ms(60_000));
    assert!(sim.paths[0].sent < 100, "{}", sim.paths[0].sent);
}

#[test]
fn narrower_bottleneck_costs_time_and_no_block() {
    let profile = HostProfile::at(ms(100)).with(|path| {
        path.rate_bits = Some(2_000 * PACKET_BYTES as u64 * 8);
        path.queue_bytes = Some(1_000 * PACKET_BYTES as u64);
    });
    let mut sim = Simulation::answering(std::slice::from_ref(&profile), 3, |config| {
        adaptive(1_000_000)(config);
        config.hosts[0].goal_packets = 120;
    });
    sim.run(ms(5_000));
    let blocks = fill(&mut sim, 0);
    sim.run(ms(5_000));
    let narrow = profile.clone().with(|path| path.rate_bits = Some(1_000 * PACKET_BYTES as u64 * 8));
    sim.paths[0].lane.set_profile(narrow.path);
    sim.run(ms(120_000));
    assert!(sim.lost.is_empty(), "{:?}", sim.lost);
    assert_eq!(sim.check_all(0..blocks, 1_000) as u64, blocks);
    let status = sim.echo.status(HOST).unwrap();
    assert!(status.rate < 1_600.0, "{status:?}");
}

#[test]
fn no_more_is_admitted_than_the_receive_buffer_holds() {
    let mut profile = HostProfile::at(ms(100));
    profile.config.buffer_packets = 70;
    let mut sim = Simulation::answering(&[profile], 3, |_| {});
    assert_eq!(fill(&mut sim, 0), 70);
    // All packets arrive while the driver pauses.
    sim.run(ms(500));
    sim.now = sim.now + ms(400);
    sim.run(ms(1_000));
    assert_eq!(sim.paths[0].dropped_by_buffer, 0);
    assert_eq!(sim.check_all(0..70, 1_000), 70);
}

#[test]
fn parked_packets_are_admitted_and_reported_separately() {
    let mut profile = HostProfile::at(ms(1));
    profile.config.parked_packets = 500;
    let mut sim = Simulation::answering(&[profile], 3, |config| config.rate = SendRate::Fixed(10_000));
    let capacity = sim.echo.capacity();
    assert_eq!((capacity.packets_max, capacity.parked_max), (510, 500));
    assert_eq!(fill(&mut sim, 0), 510);
    sim.run(ms(3_000));
    assert_eq!(sim.check_all(0..510, 1_000), 510);
    assert!(sim.lost.is_empty());
    let status = sim.echo.status(HOST).unwrap();
    assert!(status.rtt_min.unwrap() < ms(2), "{status:?}");
    assert!(status.cycle.unwrap() > ms(40), "{status:?}");
}

/// 20 Mbit/s and a queue of 50 packets, as on a home line.
fn home_line(rtt: Duration) -> HostProfile {
    HostProfile::at(rtt).with(|path| {
        path.rate_bits = Some(20_000_000);
        path.queue_bytes = Some(50 * PACKET_BYTES as u64);
    })
}

#[test]
fn line_with_a_small_queue_is_used_without_loss() {
    for rtt in [1, 4, 20, 85] {
        let mut profile = home_line(ms(rtt));
        (profile.config.goal_packets, profile.config.parked_packets) = (4_352, 256);
        let mut sim = Simulation::answering(&[profile], 1, adaptive(10_000));
        // The search loses padding probes at most.
        sim.run(ms(5_000));
        let found = sim.echo.status(HOST).unwrap().rate;
        let dropped = |sim: &Simulation| sim.paths[0].lane.counters().dropped_by_queue;
        let before = dropped(&sim);
        let blocks = fill(&mut sim, 0);
        assert!(blocks >= 256, "rtt {rtt}: {blocks} at {found}");
        sim.run(ms(25_000));
        assert_eq!(dropped(&sim), before, "rtt {rtt}: dropped in steady state");
        let (sent, begun) = (sim.paths[0].sent, sim.now);
        sim.run(ms(10_000));
        let used = (sim.paths[0].sent - sent) as f64 * PACKET_BYTES as f64 * 8.0
            / (sim.now - begun).as_secs_f64()
            / 20e6;
        assert!(used >= 0.8, "rtt {rtt}: {used} of the line is used");
        // Probing for a higher rate loses nothing.
        sim.run(ms(60_000));
        assert_eq!(dropped(&sim), before, "rtt {rtt}: dropped while probing");
        assert!(sim.lost.is_empty(), "rtt {rtt}: {:?}", sim.lost);
    }
}

#[test]
fn rate_is_found_with_blocks_in_flight_without_loss() {
    for rtt in [4, 20, 85] {
        let mut profile = home_line(ms(rtt));
        (profile.config.goal_packets, profile.config.parked_packets) = (100, 256);
        let mut sim = Simulation::answering(&[profile], 1, adaptive(10_000));
        (0..260).for_each(|number| sim.store_block(number, 1_416));
        sim.run(ms(90_000));
        assert!(sim.lost.is_empty(), "rtt {rtt}: {:?}", sim.lost);
        let status = sim.echo.status(HOST).unwrap();
        assert!(status.rate > 0.8 * 1_698.0, "rtt {rtt}: {status:?}");
    }
}

/// Parked packets circulate in turn, so a slower line is detected a cycle late, and a second copy covers the
/// loss until then. Without parked packets it is detected at once.
#[test]
fn line_whose_rate_halves_loses_nothing() {
    for (rtt, parked, copies) in
        [(20, 0, 1), (85, 0, 1), (1, 256, 2), (4, 256, 2), (20, 256, 2), (85, 256, 2)]
    {
        let mut profile = home_line(ms(rtt));
        (profile.config.goal_packets, profile.config.parked_packets) = (4_096 + parked, parked);
        let mut sim = Simulation::answering(std::slice::from_ref(&profile), 1, |config| {
            adaptive(10_000)(config);
            config.redundancy = Redundancy::Copies(copies);
        });
        sim.run(ms(5_000));
        let blocks = fill(&mut sim, 0);
        sim.run(ms(20_000));
        sim.paths[0].lane.set_profile(profile.with(|path| path.rate_bits = Some(10_000_000)).path);
        sim.run(ms(60_000));
        let status = sim.echo.status(HOST).unwrap();
        assert!(sim.lost.is_empty(), "rtt {rtt}: {:?} {status:?}", sim.lost);
        assert!((0.6 * 849.0..1.4 * 849.0).contains(&status.rate), "rtt {rtt}: {status:?}");
        assert_eq!(sim.check_all(0..blocks, 1_000) as u64, blocks);
    }
}

#[test]
fn near_host_soon_reaches_the_maximum_rate() {
    let mut profile = HostProfile::at(Duration::from_micros(50));
    (profile.config.goal_packets, profile.config.parked_packets) = (8_192, 4_096);
    let mut sim = Simulation::answering(&[profile], 1, adaptive(100_000));
    sim.run(ms(2_000));
    let status = sim.echo.status(HOST).unwrap();
    assert_eq!(status.rate, 100_000.0, "{status:?}");
}

/// A router in between pauses for a moment: packets behind it arrive more slowly for that time.
#[test]
fn short_slowdown_of_the_line_does_not_reduce_the_rate() {
    let mut profile = HostProfile::at(ms(10));
    (profile.config.goal_packets, profile.config.parked_packets) = (5_000, 1_000);
    let mut sim = Simulation::answering(std::slice::from_ref(&profile), 1, adaptive(10_000));
    sim.run(ms(5_000));
    (0..600).for_each(|number| sim.store_block(number, 1_416));
    sim.run(ms(5_000));
    let slow = profile.clone().with(|path| {
        path.rate_bits = Some(2_500 * PACKET_BYTES as u64 * 8);
        path.queue_bytes = Some(4_000 * PACKET_BYTES as u64);
    });
    for moment in 0..5 {
        sim.paths[0].lane.set_profile(slow.path.clone());
        sim.run(ms(15));
        sim.paths[0].lane.set_profile(profile.path.clone());
        sim.run(ms(3_000));
        let status = sim.echo.status(HOST).unwrap();
        assert_eq!(status.rate, 10_000.0, "{moment}: {status:?}");
    }
    assert!(sim.lost.is_empty(), "{:?}", sim.lost);
    assert_eq!(sim.check_all(0..600, 1_416), 600);
}
