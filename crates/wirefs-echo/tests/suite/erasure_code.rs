//! Blocks in coded pieces.

use wirefs_echo::Redundancy;

use crate::simulation::{HostProfile, Simulation, content, ms};

#[test]
fn coded_block_is_read_from_any_sufficient_packets() {
    let code = Redundancy::Code { pieces: 4, extra: 2 };
    let profiles = [20, 60, 90].map(|rtt| HostProfile::at(ms(rtt)));
    let mut sim = Simulation::answering(&profiles, 1, |config| config.redundancy = code);
    let bytes = sim.echo.block_bytes_max();
    assert_eq!(bytes, 4 * 1_416);
    for number in 0..40 {
        sim.store_block(number, bytes - number as usize);
    }
    sim.run(ms(1_000));
    for number in 0..40 {
        let (block, took) = sim.read(number).unwrap();
        assert_eq!(block, content(number, bytes - number as usize));
        // Two pieces are at each host; four arrive from the two near ones.
        assert!(took <= ms(61), "{took:?}");
    }
    assert_eq!(sim.echo.memory_bytes().collected, 0);
}

#[test]
fn pieces_of_a_block_are_on_different_hosts() {
    let code = Redundancy::Code { pieces: 2, extra: 1 };
    let profiles = [30, 40, 50].map(|rtt| HostProfile::at(ms(rtt)));
    let mut sim = Simulation::answering(&profiles, 1, |config| config.redundancy = code);
    (0..90).for_each(|number| sim.store_block(number, 2_000));
    sim.run(ms(500));
    // One host fails, with a third of all packets.
    sim.paths[1].cut();
    sim.run(ms(3_000));
    assert!(sim.lost.is_empty());
    assert_eq!(sim.check_all(0..90, 2_000), 90);
    assert_eq!(sim.echo.counters().rebuilt, 90);
}
