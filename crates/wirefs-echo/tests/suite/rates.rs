//! How much is sent, and how much fits.

use std::time::Duration;

use wirefs_echo::{Distance, HostId, Rate, Redundancy, Refusal};

use crate::world::{PACKET_BYTES, Site, World, content, id, ms};

const HOST: HostId = HostId(0);

/// Keeps blocks until no more fit, and says how many.
fn fill(world: &mut World, first: u64) -> u64 {
    for number in first.. {
        let end = world.now + Duration::from_secs(120);
        loop {
            match world.echo.keep(world.now, id(number), content(number, 1_000), Distance::Any) {
                Ok(()) => break,
                Err(Refusal::NoSpace { may_grow: false }) => return number - first,
                Err(Refusal::Busy | Refusal::NoSpace { may_grow: true }) => world.run(ms(5)),
                Err(refusal) => panic!("{refusal:?}"),
            }
            assert!(
                world.now < end,
                "block {number}: neither room nor an end of it: {:?}",
                world.echo.status(HOST)
            );
        }
    }
    0
}

fn adaptive(most: u32) -> impl Fn(&mut wirefs_echo::Config) {
    move |config| config.rate = Rate::Adaptive { most }
}

#[test]
fn fixed_rate_is_kept_and_is_what_fits() {
    let mut world = World::answering(&[Site::at(ms(200))], 1, |config| config.rate = Rate::Fixed(1_000));
    let capacity = world.echo.capacity();
    assert_eq!((capacity.packets_max, capacity.may_grow), (200, false));
    assert_eq!(capacity.bytes_max(), 200 * 1_416);
    assert_eq!(fill(&mut world, 0), 200, "rate times distance");
    assert_eq!(world.echo.capacity().bytes_free(), 0);
    for _ in 0..50 {
        let before = world.ways[0].sent;
        world.run(ms(100));
        assert!(world.ways[0].sent - before <= 106, "{}", world.ways[0].sent - before);
    }
    assert_eq!(world.check_all(0..200, 1_000), 200);
    world.echo.drop_block(world.now, id(3)).unwrap();
    assert_eq!(fill(&mut world, 200), 1, "room that was given back");
}

#[test]
fn capacity_is_divided_by_the_redundancy() {
    for (redundancy, blocks, block_bytes) in [
        (Redundancy::Copies(2), 100, 1_416),
        (Redundancy::Copies(3), 66, 1_416),
        (Redundancy::Code { pieces: 8, extra: 2 }, 20, 8 * 1_416),
    ] {
        let mut world = World::answering(&[Site::at(ms(200))], 1, |config| {
            config.rate = Rate::Fixed(1_000);
            config.redundancy = redundancy;
        });
        assert_eq!(world.echo.capacity().bytes_max(), blocks * block_bytes);
        assert_eq!(fill(&mut world, 0), blocks);
    }
}

#[test]
fn rate_is_found_behind_a_bottleneck_and_nothing_is_lost_while_it_fills() {
    // 1,000 full packets a second, and room for a tenth of a second of them.
    let site = Site::at(ms(100)).with(|way| {
        way.rate_bits = Some(1_000 * PACKET_BYTES as u64 * 8);
        way.queue_bytes = Some(100 * PACKET_BYTES as u64);
    });
    let mut world = World::answering(&[site], 3, adaptive(1_000_000));
    let blocks = fill(&mut world, 0);
    // The packets have 1,056 of 1,472 bytes, so that more than 100 of them are under way in the end.
    assert!((60..=150).contains(&blocks), "{blocks}: {:?}", world.echo.status(HOST));
    assert!(world.lost.is_empty(), "{:?}", world.lost);
    world.run(ms(60_000));
    assert!(world.lost.is_empty(), "{:?}", world.lost);
    assert_eq!(world.check_all(0..blocks, 1_000) as u64, blocks);
}

#[test]
fn host_that_limits_its_answers_is_not_asked_for_more() {
    let mut site = Site::at(ms(100));
    site.answers_per_second = Some(2_000);
    let mut world = World::answering(&[site], 3, |config| {
        adaptive(1_000_000)(config);
        config.hosts[0].goal_packets = 1_000;
    });
    // Found before anything is kept.
    world.run(ms(20_000));
    let status = world.echo.status(HOST).unwrap();
    // It answers some more at once after a pause, which shows in what is found.
    assert!((1_500.0..2_300.0).contains(&status.rate), "{status:?}");
    let blocks = fill(&mut world, 0);
    assert!((100..=200).contains(&blocks), "{blocks}");
    let before = (world.ways[0].sent, world.now, world.ways[0].lane.counters().offered_frames);
    world.run(ms(20_000));
    let sent = world.ways[0].sent - before.0;
    let rate = sent as f64 / (world.now - before.1).as_secs_f64();
    assert!(rate <= 2_000.0, "{rate}");
    // What is not answered is ballast, of a look at whether the host answers more by now.
    let answered = world.ways[0].lane.counters().offered_frames - before.2;
    assert!(answered as f64 > sent as f64 * 0.99, "{answered} of {sent}");
    assert!(world.lost.is_empty());
}

#[test]
fn nothing_is_sent_for_room_that_nobody_wants() {
    let mut world = World::answering(&[Site::at(ms(100))], 3, adaptive(1_000_000));
    world.run(ms(60_000));
    assert!(world.ways[0].sent < 100, "{}", world.ways[0].sent);
}

#[test]
fn bottleneck_that_becomes_narrower_costs_time_and_no_block() {
    let site = Site::at(ms(100)).with(|way| {
        way.rate_bits = Some(2_000 * PACKET_BYTES as u64 * 8);
        way.queue_bytes = Some(1_000 * PACKET_BYTES as u64);
    });
    let mut world = World::answering(std::slice::from_ref(&site), 3, |config| {
        adaptive(1_000_000)(config);
        config.hosts[0].goal_packets = 120;
    });
    world.run(ms(5_000));
    let blocks = fill(&mut world, 0);
    world.run(ms(5_000));
    let narrow = site.clone().with(|way| way.rate_bits = Some(1_000 * PACKET_BYTES as u64 * 8));
    world.ways[0].lane.set_profile(narrow.way);
    world.run(ms(120_000));
    assert!(world.lost.is_empty(), "{:?}", world.lost);
    assert_eq!(world.check_all(0..blocks, 1_000) as u64, blocks);
    let status = world.echo.status(HOST).unwrap();
    assert!(status.rate < 1_600.0, "{status:?}");
}

#[test]
fn no_more_is_admitted_than_the_receive_buffer_holds() {
    let mut site = Site::at(ms(100));
    site.config.buffer_packets = 70;
    let mut world = World::answering(&[site], 3, |_| {});
    assert_eq!(fill(&mut world, 0), 70);
    // All of them come while the driver is away for a moment.
    world.run(ms(500));
    world.now = world.now + ms(400);
    world.run(ms(1_000));
    assert_eq!(world.ways[0].dropped_by_buffer, 0);
    assert_eq!(world.check_all(0..70, 1_000), 70);
}

#[test]
fn parked_packets_are_admitted_and_told_apart() {
    let mut site = Site::at(ms(1));
    site.config.parked_packets = 500;
    let mut world = World::answering(&[site], 3, |config| config.rate = Rate::Fixed(10_000));
    let capacity = world.echo.capacity();
    assert_eq!((capacity.packets_max, capacity.parked_max), (510, 500));
    assert_eq!(fill(&mut world, 0), 510);
    world.run(ms(3_000));
    assert_eq!(world.check_all(0..510, 1_000), 510);
    assert!(world.lost.is_empty());
    let status = world.echo.status(HOST).unwrap();
    assert!(status.way.unwrap() < ms(2), "{status:?}");
    assert!(status.lap.unwrap() > ms(40), "{status:?}");
}

/// 20 Mbit/s and a queue of 50 packets, as a home's line has.
fn home_line(rtt: Duration) -> Site {
    Site::at(rtt).with(|way| {
        way.rate_bits = Some(20_000_000);
        way.queue_bytes = Some(50 * PACKET_BYTES as u64);
    })
}

#[test]
fn line_with_a_small_queue_is_used_and_loses_nothing() {
    for rtt in [1, 4, 20, 85] {
        let mut site = home_line(ms(rtt));
        (site.config.goal_packets, site.config.parked_packets) = (4_352, 256);
        let mut world = World::answering(&[site], 1, adaptive(10_000));
        // The search costs packets that carry nothing, at most.
        world.run(ms(5_000));
        let found = world.echo.status(HOST).unwrap().rate;
        let dropped = |world: &World| world.ways[0].lane.counters().dropped_by_queue;
        let before = dropped(&world);
        let blocks = fill(&mut world, 0);
        assert!(blocks >= 256, "rtt {rtt}: {blocks} at {found}");
        world.run(ms(25_000));
        assert_eq!(dropped(&world), before, "rtt {rtt}: dropped in steady state");
        let (sent, begun) = (world.ways[0].sent, world.now);
        world.run(ms(10_000));
        let used = (world.ways[0].sent - sent) as f64 * PACKET_BYTES as f64 * 8.0
            / (world.now - begun).as_secs_f64()
            / 20e6;
        assert!(used >= 0.8, "rtt {rtt}: {used} of the line is used");
        // It is looked whether more can be sent, without a loss.
        world.run(ms(60_000));
        assert_eq!(dropped(&world), before, "rtt {rtt}: dropped when it was looked for more");
        assert!(world.lost.is_empty(), "rtt {rtt}: {:?}", world.lost);
    }
}

#[test]
fn line_is_found_with_blocks_under_way_and_loses_none_of_them() {
    for rtt in [4, 20, 85] {
        let mut site = home_line(ms(rtt));
        (site.config.goal_packets, site.config.parked_packets) = (100, 256);
        let mut world = World::answering(&[site], 1, adaptive(10_000));
        (0..260).for_each(|number| world.keep(number, 1_416));
        world.run(ms(90_000));
        assert!(world.lost.is_empty(), "rtt {rtt}: {:?}", world.lost);
        let status = world.echo.status(HOST).unwrap();
        assert!(status.rate > 0.8 * 1_698.0, "rtt {rtt}: {status:?}");
    }
}

/// Packets that are parked come round in turn, so a line that has become slower shows a lap late: what is lost until then
/// takes a second copy. Without them it shows at once.
#[test]
fn line_whose_rate_halves_loses_nothing() {
    for (rtt, parked, copies) in
        [(20, 0, 1), (85, 0, 1), (1, 256, 2), (4, 256, 2), (20, 256, 2), (85, 256, 2)]
    {
        let mut site = home_line(ms(rtt));
        (site.config.goal_packets, site.config.parked_packets) = (4_096 + parked, parked);
        let mut world = World::answering(std::slice::from_ref(&site), 1, |config| {
            adaptive(10_000)(config);
            config.redundancy = Redundancy::Copies(copies);
        });
        world.run(ms(5_000));
        let blocks = fill(&mut world, 0);
        world.run(ms(20_000));
        world.ways[0].lane.set_profile(site.with(|way| way.rate_bits = Some(10_000_000)).way);
        world.run(ms(60_000));
        let status = world.echo.status(HOST).unwrap();
        assert!(world.lost.is_empty(), "rtt {rtt}: {:?} {status:?}", world.lost);
        assert!((0.6 * 849.0..1.4 * 849.0).contains(&status.rate), "rtt {rtt}: {status:?}");
        assert_eq!(world.check_all(0..blocks, 1_000) as u64, blocks);
    }
}

#[test]
fn near_host_is_soon_sent_the_most() {
    let mut site = Site::at(Duration::from_micros(50));
    (site.config.goal_packets, site.config.parked_packets) = (8_192, 4_096);
    let mut world = World::answering(&[site], 1, adaptive(100_000));
    world.run(ms(2_000));
    let status = world.echo.status(HOST).unwrap();
    assert_eq!(status.rate, 100_000.0, "{status:?}");
}

/// A machine between that had something else to do for a moment: what is behind it comes more slowly for so long.
#[test]
fn moment_in_which_the_line_is_slow_costs_no_rate() {
    let mut site = Site::at(ms(10));
    (site.config.goal_packets, site.config.parked_packets) = (5_000, 1_000);
    let mut world = World::answering(std::slice::from_ref(&site), 1, adaptive(10_000));
    world.run(ms(5_000));
    (0..600).for_each(|number| world.keep(number, 1_416));
    world.run(ms(5_000));
    let slow = site.clone().with(|way| {
        way.rate_bits = Some(2_500 * PACKET_BYTES as u64 * 8);
        way.queue_bytes = Some(4_000 * PACKET_BYTES as u64);
    });
    for moment in 0..5 {
        world.ways[0].lane.set_profile(slow.way.clone());
        world.run(ms(15));
        world.ways[0].lane.set_profile(site.way.clone());
        world.run(ms(3_000));
        let status = world.echo.status(HOST).unwrap();
        assert_eq!(status.rate, 10_000.0, "{moment}: {status:?}");
    }
    assert!(world.lost.is_empty(), "{:?}", world.lost);
    assert_eq!(world.check_all(0..600, 1_416), 600);
}
