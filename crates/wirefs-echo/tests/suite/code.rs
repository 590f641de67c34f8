//! Blocks in coded pieces.

use wirefs_echo::Redundancy;

use crate::world::{Site, World, content, ms};

#[test]
fn block_of_several_packets_is_read_from_any_that_are_enough() {
    let code = Redundancy::Code { pieces: 4, extra: 2 };
    let sites = [20, 60, 90].map(|rtt| Site::at(ms(rtt)));
    let mut world = World::answering(&sites, 1, |config| config.redundancy = code);
    let bytes = world.echo.block_bytes_max();
    assert_eq!(bytes, 4 * 1_416);
    for number in 0..40 {
        world.keep(number, bytes - number as usize);
    }
    world.run(ms(1_000));
    for number in 0..40 {
        let (block, took) = world.read(number).unwrap();
        assert_eq!(block, content(number, bytes - number as usize));
        // Two pieces are at each host; four come from the two near ones.
        assert!(took <= ms(61), "{took:?}");
    }
    assert_eq!(world.echo.memory_bytes().gathered, 0);
}

#[test]
fn pieces_of_a_block_are_with_different_hosts() {
    let code = Redundancy::Code { pieces: 2, extra: 1 };
    let sites = [30, 40, 50].map(|rtt| Site::at(ms(rtt)));
    let mut world = World::answering(&sites, 1, |config| config.redundancy = code);
    (0..90).for_each(|number| world.keep(number, 2_000));
    world.run(ms(500));
    // One host goes, with a third of all packets.
    world.ways[1].cut();
    world.run(ms(3_000));
    assert!(world.lost.is_empty());
    assert_eq!(world.check_all(0..90, 2_000), 90);
    assert_eq!(world.echo.counters().rebuilt, 90);
}
