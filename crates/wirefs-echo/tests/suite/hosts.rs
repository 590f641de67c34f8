//! Hosts that fall silent, come back, are near or far.

use wirefs_echo::{Distance, HostId, Keep, Output, Rate, Redundancy, Refusal, Standing};

use crate::world::{Site, World, content, id, ms};

#[test]
fn nothing_is_kept_before_a_host_answers() {
    let mut world = World::new(&[Site::at(ms(100))], 1, |_| {});
    world.ways[0].cut();
    world.run(ms(500));
    let refusal = world.echo.keep(world.now, id(1), content(1, 10), Distance::Any);
    assert_eq!(refusal, Err(Refusal::NoSpace { may_grow: true }));
    assert_eq!(world.echo.capacity().packets_max, 0);
    world.ways[0].heal();
    world.run(ms(3_000));
    assert_eq!(world.hosts_told, [Output::Answers { host: HostId(0) }]);
    world.keep(1, 10);
    world.run(ms(300));
    assert!(world.read(1).is_some());
}

#[test]
fn blocks_move_away_from_a_host_that_falls_silent() {
    let sites = [30, 40, 50].map(|rtt| Site::at(ms(rtt)));
    let mut world = World::answering(&sites, 1, |config| config.redundancy = Redundancy::Copies(2));
    (0..300).for_each(|number| world.keep(number, 100));
    world.run(ms(1_000));
    assert!(world.echo.status(HostId(2)).unwrap().packets > 100);
    world.ways[2].cut();
    world.run(ms(2_000));
    assert!(world.lost.is_empty());
    let status = world.echo.status(HostId(2)).unwrap();
    assert_eq!((status.standing, status.packets), (Standing::Silent, 0));
    assert!(world.hosts_told.contains(&Output::Silent { host: HostId(2) }));
    // It is asked now and then, and not more.
    let before = world.ways[2].sent;
    world.run(ms(60_000));
    assert!((2..16).contains(&(world.ways[2].sent - before)), "{}", world.ways[2].sent - before);
    world.ways[2].heal();
    world.run(ms(11_000));
    assert_eq!(world.echo.status(HostId(2)).unwrap().standing, Standing::Answering);
    assert_eq!(world.check_all(0..300, 100), 300);
}

#[test]
fn only_host_that_pauses_costs_what_was_under_way_and_nothing_after() {
    let mut world = World::answering(&[Site::at(ms(50))], 1, |_| {});
    (0..50).for_each(|number| world.keep(number, 100));
    world.run(ms(500));
    world.ways[0].cut();
    world.run(ms(5_000));
    assert_eq!(world.lost.len(), 50, "one copy, and no memory of the contents");
    world.ways[0].heal();
    world.run(ms(11_000));
    (50..100).for_each(|number| world.keep(number, 100));
    world.run(ms(500));
    assert_eq!(world.check_all(0..100, 100), 50);
}

#[test]
fn near_blocks_are_with_near_hosts_and_far_ones_with_far() {
    let sites = [80, 10, 300].map(|rtt| Site::at(ms(rtt)));
    let mut world = World::answering(&sites, 1, |_| {});
    world.run(ms(1_000));
    for number in 0..30 {
        let distance = if number % 2 == 0 { Distance::Near } else { Distance::Far };
        world.echo.keep(world.now, id(number), content(number, 100), distance).unwrap();
    }
    let packets = [0, 1, 2].map(|host| world.echo.status(HostId(host)).unwrap().packets);
    assert_eq!(packets, [0, 15, 15]);
    world.run(ms(1_000));
    assert!(world.read(4).unwrap().1 <= ms(11));
}

#[test]
fn what_waits_for_a_host_that_fell_silent_does_not_hinder_its_replies() {
    let mut world = World::answering(&[Site::at(ms(30))], 1, |config| config.rate = Rate::Fixed(400));
    (0..5).for_each(|number| world.keep(number, 10));
    world.run(ms(500));
    // More waits than may be sent at once, and then nothing comes for a while.
    (5..10).for_each(|number| world.keep(number, 10));
    world.ways[0].cut();
    world.run(ms(1_000));
    world.ways[0].heal();
    world.run(ms(15_000));
    assert_eq!(world.check_all(0..10, 10), 10 - world.lost.len());
    assert_eq!(world.echo.status(HostId(0)).unwrap().standing, Standing::Answering);
}

#[test]
fn drained_host_is_emptied_to_one_that_was_added_and_nothing_is_lost() {
    for keep in [Keep::Index, Keep::Root { window_packets: 4_096 }] {
        let sites = [Site::at(ms(20)), Site::at(ms(30))];
        let mut world = World::answering(&sites[..1], 1, |config| {
            config.keep = keep;
            config.redundancy = Redundancy::Copies(2);
        });
        (0..300).for_each(|number| world.keep(number, 900));
        world.run(ms(200));
        let added = world.add(&sites[1]);
        world.run(ms(1_500));
        world.echo.drain_host(HostId(0));
        world.run(ms(500));
        let [old, new] = [HostId(0), added].map(|host| world.echo.status(host).unwrap());
        assert!(old.is_draining && !new.is_draining);
        assert_eq!((old.packets, new.packets), (0, 600), "{keep:?}");
        let sent = world.ways[0].sent;
        assert_eq!(world.check_all(0..300, 900), 300);
        world.run(ms(5_000));
        assert_eq!(world.ways[0].sent, sent, "nothing more is asked of it");
    }
}
