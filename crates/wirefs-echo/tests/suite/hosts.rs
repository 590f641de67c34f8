//! Hosts that become silent, return, or are near or far.

use wirefs_echo::{Distance, EchoOutput, EchoRefusal, HostId, HostState, Keep, Redundancy, SendRate};

use crate::simulation::{HostProfile, Simulation, content, id, ms};

#[test]
fn no_block_is_accepted_before_a_host_answers() {
    let mut sim = Simulation::new(&[HostProfile::at(ms(100))], 1, |_| {});
    sim.paths[0].cut();
    sim.run(ms(500));
    let refusal = sim.echo.store_block(sim.now, id(1), content(1, 10), Distance::Any);
    assert_eq!(refusal, Err(EchoRefusal::NoSpace { may_grow: true }));
    assert_eq!(sim.echo.capacity().packets_max, 0);
    sim.paths[0].heal();
    sim.run(ms(3_000));
    assert_eq!(sim.host_events, [EchoOutput::Answers { host: HostId(0) }]);
    sim.store_block(1, 10);
    sim.run(ms(300));
    assert!(sim.read(1).is_some());
}

#[test]
fn blocks_move_away_from_a_silent_host() {
    let profiles = [30, 40, 50].map(|rtt| HostProfile::at(ms(rtt)));
    let mut sim = Simulation::answering(&profiles, 1, |config| config.redundancy = Redundancy::Copies(2));
    (0..300).for_each(|number| sim.store_block(number, 100));
    sim.run(ms(1_000));
    assert!(sim.echo.status(HostId(2)).unwrap().packets > 100);
    sim.paths[2].cut();
    sim.run(ms(2_000));
    assert!(sim.lost.is_empty());
    let status = sim.echo.status(HostId(2)).unwrap();
    assert_eq!((status.state, status.packets), (HostState::Silent, 0));
    assert!(sim.host_events.contains(&EchoOutput::Silent { host: HostId(2) }));
    // The host is only probed once in a while.
    let before = sim.paths[2].sent;
    sim.run(ms(60_000));
    assert!((2..16).contains(&(sim.paths[2].sent - before)), "{}", sim.paths[2].sent - before);
    sim.paths[2].heal();
    sim.run(ms(11_000));
    assert_eq!(sim.echo.status(HostId(2)).unwrap().state, HostState::Answering);
    assert_eq!(sim.check_all(0..300, 100), 300);
}

#[test]
fn pause_of_the_only_host_loses_blocks_in_flight_and_none_later() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(50))], 1, |_| {});
    (0..50).for_each(|number| sim.store_block(number, 100));
    sim.run(ms(500));
    sim.paths[0].cut();
    sim.run(ms(5_000));
    assert_eq!(sim.lost.len(), 50, "one copy, and no cache");
    sim.paths[0].heal();
    sim.run(ms(11_000));
    (50..100).for_each(|number| sim.store_block(number, 100));
    sim.run(ms(500));
    assert_eq!(sim.check_all(0..100, 100), 50);
}

#[test]
fn blocks_are_placed_by_distance() {
    let profiles = [80, 10, 300].map(|rtt| HostProfile::at(ms(rtt)));
    let mut sim = Simulation::answering(&profiles, 1, |_| {});
    sim.run(ms(1_000));
    for number in 0..30 {
        let distance = if number % 2 == 0 { Distance::Near } else { Distance::Far };
        sim.echo.store_block(sim.now, id(number), content(number, 100), distance).unwrap();
    }
    let packets = [0, 1, 2].map(|host| sim.echo.status(HostId(host)).unwrap().packets);
    assert_eq!(packets, [0, 15, 15]);
    sim.run(ms(1_000));
    assert!(sim.read(4).unwrap().1 <= ms(11));
}

#[test]
fn packets_queued_for_a_silent_host_do_not_block_its_replies() {
    let mut sim =
        Simulation::answering(&[HostProfile::at(ms(30))], 1, |config| config.rate = SendRate::Fixed(400));
    (0..5).for_each(|number| sim.store_block(number, 10));
    sim.run(ms(500));
    // More packets are queued than may be sent at once, and then no reply arrives for a while.
    (5..10).for_each(|number| sim.store_block(number, 10));
    sim.paths[0].cut();
    sim.run(ms(1_000));
    sim.paths[0].heal();
    sim.run(ms(15_000));
    assert_eq!(sim.check_all(0..10, 10), 10 - sim.lost.len());
    assert_eq!(sim.echo.status(HostId(0)).unwrap().state, HostState::Answering);
}

#[test]
fn drained_host_is_emptied_to_an_added_one_without_loss() {
    for keep in [Keep::Index, Keep::Root { window_packets: 4_096 }] {
        let profiles = [HostProfile::at(ms(20)), HostProfile::at(ms(30))];
        let mut sim = Simulation::answering(&profiles[..1], 1, |config| {
            config.keep = keep;
            config.redundancy = Redundancy::Copies(2);
        });
        (0..300).for_each(|number| sim.store_block(number, 900));
        sim.run(ms(200));
        let added = sim.add(&profiles[1]);
        sim.run(ms(1_500));
        sim.echo.drain_host(HostId(0));
        sim.run(ms(500));
        let [old, new] = [HostId(0), added].map(|host| sim.echo.status(host).unwrap());
        assert!(old.is_draining && !new.is_draining);
        assert_eq!((old.packets, new.packets), (0, 600), "{keep:?}");
        let sent = sim.paths[0].sent;
        assert_eq!(sim.check_all(0..300, 900), 300);
        sim.run(ms(5_000));
        assert_eq!(sim.paths[0].sent, sent, "no more packets are sent to it");
    }
}
