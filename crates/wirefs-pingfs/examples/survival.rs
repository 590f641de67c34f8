//! Simulates how long data survives on a lossy line: the time to the first unreadable byte by packet loss,
//! for copies and codes, with an index (losses are repaired) and without.
//!
//! `cargo run --release -p wirefs-pingfs --example survival [seconds at most] [blocks] [round trip in ms]
//! [seeds]`

use std::error::Error;
use std::time::Duration;

use wirefs_echo::{Keep, Redundancy};
use wirefs_lab::Probability;

#[path = "../../wirefs-echo/tests/suite/simulation.rs"]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "it is a test module"
)]
mod sim;

use sim::{HostProfile, Simulation, id, ms};

/// Round-trip loss probabilities.
const LOSSES: [f64; 7] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1];
/// Interval at which a store without an index is read completely.
const READ_INTERVAL: Duration = Duration::from_secs(2);
/// Size of a block in bytes.
const BLOCK_BYTES: usize = 1_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Trial {
    loss: f64,
    redundancy: Redundancy,
    keep: Keep,
    blocks: u64,
    rtt: Duration,
    max: Duration,
}

impl Trial {
    /// Returns the time until a block cannot be read; `None` if all survive.
    fn run(&self, seed: u64) -> Outcome<Option<Duration>> {
        let mut sim = Simulation::answering(&[HostProfile::at(self.rtt)], seed, |config| {
            (config.redundancy, config.keep) = (self.redundancy, self.keep);
        });
        (0..self.blocks).for_each(|number| sim.store_block(number, BLOCK_BYTES));
        // Copies find their places first.
        sim.run(self.rtt * 10);
        let loss = Probability::new(self.loss).ok_or("no such loss")?;
        let lossy = HostProfile::at(self.rtt).with(|path| path.loss = loss).path;
        sim.paths.iter_mut().for_each(|path| path.lane.set_profile(lossy.clone()));
        let (begun, end) = (sim.now, sim.now + self.max);
        match self.keep {
            Keep::Index => {
                sim.run_until(end, |sim| !sim.lost.is_empty());
                Ok((!sim.lost.is_empty()).then(|| sim.now - begun))
            }
            Keep::Root { .. } => {
                while sim.now < end {
                    sim.run(READ_INTERVAL);
                    let now = sim.now;
                    sim.missing.clear();
                    let fetched = (0..self.blocks).try_for_each(|number| sim.echo.fetch(now, id(number)));
                    fetched.map_err(|refusal| format!("{refusal:?}"))?;
                    let count = self.blocks as usize;
                    sim.fetched.clear();
                    sim.run_until(now + ms(60_000), |sim| sim.fetched.len() + sim.missing.len() >= count);
                    if !sim.missing.is_empty() {
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
    let (max, blocks) = (Duration::from_secs(number(0, 600)?), number(1, 20)?);
    let (rtt, seeds) = (ms(number(2, 85)?), number(3, 3)?);
    println!(
        "{blocks} blocks of {BLOCK_BYTES} bytes at {} ms; median of {seeds}, {} s at most",
        rtt.as_millis(),
        max.as_secs()
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
                let trial = Trial { loss, redundancy, keep, blocks, rtt, max };
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
