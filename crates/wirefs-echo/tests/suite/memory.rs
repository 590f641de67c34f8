//! What the store holds in memory.

use wirefs_echo::{Keep, Redundancy};

use crate::world::{Site, World, content, ms};

#[test]
fn index_takes_at_most_32_bytes_a_block_with_two_copies() {
    for copies in [1, 2] {
        let mut world = World::answering(&[Site::at(ms(100))], 1, |config| {
            config.redundancy = Redundancy::Copies(copies)
        });
        (0..10_000).for_each(|number| world.keep(number, 8));
        world.run(ms(500));
        let bytes = world.echo.memory_bytes().index as f64 / 10_000.0;
        assert!(bytes <= 32.0, "{copies} copies: {bytes}");
        assert_eq!(world.echo.block_count(), Some(10_000));
    }
}

#[test]
fn no_contents_are_in_memory_once_they_are_under_way() {
    for redundancy in [Redundancy::Copies(1), Redundancy::Copies(3), Redundancy::Code { pieces: 3, extra: 2 }]
    {
        let mut world = World::answering(&[Site::at(ms(100))], 1, |config| config.redundancy = redundancy);
        (0..1_000).for_each(|number| world.keep(number, 1_000));
        world.run(ms(1_000));
        let memory = world.echo.memory_bytes();
        assert_eq!((memory.outbox, memory.gathered, memory.ram), (0, 0, 0), "{redundancy:?}");
    }
}

#[test]
fn blocks_in_ram_are_read_at_once_and_repair_themselves() {
    let mut world = World::answering(&[Site::at(ms(100))], 1, |config| config.ram_bytes = 60_000);
    (0..100).for_each(|number| world.keep(number, 1_000));
    world.run(ms(1_030));
    assert!(world.echo.memory_bytes().ram <= 60_000);
    let before = world.now;
    assert_eq!(world.read(99).unwrap().0, content(99, 1_000));
    assert_eq!(world.now, before);
    // All packets are lost; those in memory are sent again.
    world.ways[0].lane.cut();
    world.ways[0].lane.heal();
    world.run(ms(1_000));
    let lost = world.lost.len();
    assert!((45..55).contains(&lost), "{lost}");
    assert_eq!(world.check_all(0..100, 1_000), 100 - lost);
}

#[test]
fn store_without_index_takes_a_bit_a_packet_however_many_blocks_there_are() {
    let keep = Keep::Root { window_packets: 1 << 16 };
    let mut world = World::answering(&[Site::at(ms(100))], 1, |config| config.keep = keep);
    assert_eq!(world.echo.memory_bytes().index, 8_192);
    (0..5_000).for_each(|number| world.keep(number, 8));
    world.run(ms(500));
    assert_eq!(world.echo.memory_bytes().index, 8_192);
    assert_eq!(world.echo.memory_bytes().outbox, 0);
}
