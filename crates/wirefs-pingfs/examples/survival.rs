//! How long data lives on a line that loses packets, in virtual time: the time to the first unreadable byte against the loss
//! of packets, for copies and codes, with an index (losses are noticed and repaired) and without.
//!
//! `cargo run --release -p wirefs-pingfs --example survival [seconds at most] [blocks] [round trip in ms] [seeds]`

use std::error::Error;
use std::time::Duration;

use wirefs_echo::{Keep, Redundancy};
use wirefs_lab::Probability;

#[path = "../../wirefs-echo/tests/suite/world.rs"]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "it is a world of tests"
)]
mod world;

use world::{Site, World, id, ms};

/// Losses of the line there and back together, as parts.
const LOSSES: [f64; 7] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1];
/// How often a store without an index is read to see whether all is there.
const LOOK_EACH: Duration = Duration::from_secs(2);
/// The bytes of a block, whatever it is cut into.
const BLOCK_BYTES: usize = 1_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Trial {
    loss: f64,
    redundancy: Redundancy,
    keep: Keep,
    blocks: u64,
    rtt: Duration,
    most: Duration,
}

impl Trial {
    /// The time until something cannot be read; none when that did not happen.
    fn run(&self, seed: u64) -> Outcome<Option<Duration>> {
        let mut world = World::answering(&[Site::at(self.rtt)], seed, |config| {
            (config.redundancy, config.keep) = (self.redundancy, self.keep);
        });
        (0..self.blocks).for_each(|number| world.keep(number, BLOCK_BYTES));
        // Copies find their places first.
        world.run(self.rtt * 10);
        let loss = Probability::new(self.loss).ok_or("no such loss")?;
        let lossy = Site::at(self.rtt).with(|way| way.loss = loss).way;
        world.ways.iter_mut().for_each(|way| way.lane.set_profile(lossy.clone()));
        let (begun, end) = (world.now, world.now + self.most);
        match self.keep {
            Keep::Index => {
                world.run_until(end, |world| !world.lost.is_empty());
                Ok((!world.lost.is_empty()).then(|| world.now - begun))
            }
            Keep::Root { .. } => {
                while world.now < end {
                    world.run(LOOK_EACH);
                    let now = world.now;
                    world.missing.clear();
                    let asked = (0..self.blocks).try_for_each(|number| world.echo.fetch(now, id(number)));
                    asked.map_err(|refusal| format!("{refusal:?}"))?;
                    let count = self.blocks as usize;
                    world.fetched.clear();
                    world.run_until(now + ms(60_000), |world| {
                        world.fetched.len() + world.missing.len() >= count
                    });
                    if !world.missing.is_empty() {
                        return Ok(Some(now - begun));
                    }
                }
                Ok(None)
            }
        }
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| arguments.get(index).map_or(Ok(default), |word| word.parse());
    let (most, blocks) = (Duration::from_secs(number(0, 600)?), number(1, 20)?);
    let (rtt, seeds) = (ms(number(2, 85)?), number(3, 3)?);
    println!(
        "{blocks} blocks of {BLOCK_BYTES} bytes at {} ms; median of {seeds}, {} s at most",
        rtt.as_millis(),
        most.as_secs()
    );
    let heads: Vec<String> = LOSSES.iter().map(|loss| format!("{} %", loss * 100.0)).collect();
    println!("| | {} |\n|---|{}", heads.join(" | "), "---|".repeat(LOSSES.len()));
    let keeps = [("index", Keep::Index), ("no index", Keep::Root { window_packets: 1 << 16 })];
    let code = |pieces, extra| Redundancy::Code { pieces, extra };
    for (keep_name, keep) in keeps {
        for (name, redundancy) in [
            ("1 copy", Redundancy::Copies(1)),
            ("2 copies", Redundancy::Copies(2)),
            ("3 copies", Redundancy::Copies(3)),
            ("8+2", code(8, 2)),
            ("8+4", code(8, 4)),
        ] {
            let cells = LOSSES.iter().map(|&loss| {
                let trial = Trial { loss, redundancy, keep, blocks, rtt, most };
                let times: Outcome<Vec<Option<Duration>>> = (0..seeds).map(|seed| trial.run(seed)).collect();
                let mut times = times?;
                times.sort_by_key(|time| time.unwrap_or(Duration::MAX));
                let middle = times.get(times.len() / 2).copied().flatten();
                Ok(middle.map_or("all live".to_owned(), |time| format!("{:.1} s", time.as_secs_f64())))
            });
            let cells: Outcome<Vec<String>> = cells.collect();
            println!("| {name}, {keep_name} | {} |", cells?.join(" | "));
        }
    }
    Ok(())
}
