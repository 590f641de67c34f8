//! Memory use of the store.

use wirefs_echo::{Keep, Redundancy};

use crate::simulation::{HostProfile, Simulation, content, ms};

#[test]
fn index_takes_at_most_32_bytes_a_block_with_two_copies() {
    for copies in [1, 2] {
        let mut sim = Simulation::answering(&[HostProfile::at(ms(100))], 1, |config| {
            config.redundancy = Redundancy::Copies(copies)
        });
        (0..10_000).for_each(|number| sim.store_block(number, 8));
        sim.run(ms(500));
        let bytes = sim.echo.memory_bytes().index as f64 / 10_000.0;
        assert!(bytes <= 32.0, "{copies} copies: {bytes}");
        assert_eq!(sim.echo.block_count(), Some(10_000));
    }
}

#[test]
fn no_contents_are_in_memory_once_they_are_in_flight() {
    for redundancy in [Redundancy::Copies(1), Redundancy::Copies(3), Redundancy::Code { pieces: 3, extra: 2 }]
    {
        let mut sim =
            Simulation::answering(&[HostProfile::at(ms(100))], 1, |config| config.redundancy = redundancy);
        (0..1_000).for_each(|number| sim.store_block(number, 1_000));
        sim.run(ms(1_000));
        let memory = sim.echo.memory_bytes();
        assert_eq!((memory.send_queue, memory.collected, memory.ram), (0, 0, 0), "{redundancy:?}");
    }
}

#[test]
fn cached_blocks_are_read_at_once_and_repaired() {
    let mut sim = Simulation::answering(&[HostProfile::at(ms(100))], 1, |config| config.ram_bytes = 60_000);
    (0..100).for_each(|number| sim.store_block(number, 1_000));
    sim.run(ms(1_030));
    assert!(sim.echo.memory_bytes().ram <= 60_000);
    let before = sim.now;
    assert_eq!(sim.read(99).unwrap().0, content(99, 1_000));
    assert_eq!(sim.now, before);
    // All packets are lost; the cached blocks are sent again.
    sim.paths[0].lane.cut();
    sim.paths[0].lane.heal();
    sim.run(ms(1_000));
    let lost = sim.lost.len();
    assert!((45..55).contains(&lost), "{lost}");
    assert_eq!(sim.check_all(0..100, 1_000), 100 - lost);
}

#[test]
fn store_without_index_uses_one_bit_per_packet() {
    let keep = Keep::Root { window_packets: 1 << 16 };
    let mut sim = Simulation::answering(&[HostProfile::at(ms(100))], 1, |config| config.keep = keep);
    assert_eq!(sim.echo.memory_bytes().index, 8_192);
    (0..5_000).for_each(|number| sim.store_block(number, 8));
    sim.run(ms(500));
    assert_eq!(sim.echo.memory_bytes().index, 8_192);
    assert_eq!(sim.echo.memory_bytes().send_queue, 0);
}
