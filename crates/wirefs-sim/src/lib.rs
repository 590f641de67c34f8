//! The simulation: client cores, a server core, and a network and disks between them with delays, losses and crashes, in virtual time.
//!
//! *Holds*: one seed gives one run, the same on every machine.
//!
//! [`Scene::Beside`]: programs work through kernels with caches. Each observation is compared with the states of the tree between the call
//! and the answer; each kernel's cache is compared at each change. A change waits for others for a bounded time, and each call is answered.
//! Without faults, all clients finally see the same tree, and no state is left.
//!
//! [`Scene::Ahead`]: an exclusive mount with a journal. After kills and power losses, the server finally has each change that the program
//! believes in, once and in order. A synced file is on the server's disk when the sync is answered.
//!
//! [`Scene::Rivals`]: programs on mounts and one at the server create the same names exclusively. A name has one holder at a time, and no
//! successful creation is rejected later.
//!
//! *Never*: clocks, threads, sockets, randomness except the seed's. Shipped.
//!
//! *Drive it*:
//! ```
//! let record = wirefs_sim::run(wirefs_sim::Scene::Beside, 7, None)?;
//! assert!(record.operations > 0);
//! # Ok::<(), wirefs_sim::Failure>(())
//! ```
//!
//! *Proved by*: `tests/suite`, which injects each [`Flaw`] and requires that it is found.

mod ahead;
mod check;
mod end;
mod event_counts;
mod faults;
mod flaw;
mod host;
mod kernel;
mod plan;
mod program;
mod rivals;
mod scene;
mod server;
mod truth;
mod wire;
mod world;

pub use event_counts::EventCounts;
pub use flaw::Flaw;
pub use scene::Scene;

use std::fmt;
use world::World;

/// Lines of history in a report.
const SHOWN: usize = 400;

/// A run with a violation.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of the run.
    pub scene: Scene,
    /// The seed of the run.
    pub seed: u64,
    /// The violation.
    pub what: String,
    /// The events, in order, with virtual times in seconds.
    pub history: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.history.len().saturating_sub(SHOWN);
        for line in self.history.iter().skip(hidden) {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "seed {}: {}", self.seed, self.what)?;
        let scene = self.scene.option();
        write!(f, "`make sim FROM={} SEEDS=1{scene}` runs it alone", self.seed)
    }
}

impl std::error::Error for Failure {}

/// Executes the run of a seed, with a flaw if one is given.
///
/// # Errors
/// Fails with the first violation; the run is then repeated for its history.
pub fn run(scene: Scene, seed: u64, flaw: Option<Flaw>) -> Result<EventCounts, Failure> {
    World::new(scene, seed, flaw, false).run().map_err(|what| {
        let history = tell(scene, seed, flaw);
        Failure { scene, seed, what, history }
    })
}

/// Returns the history of a run, line by line.
pub fn tell(scene: Scene, seed: u64, flaw: Option<Flaw>) -> Vec<String> {
    let mut world = World::new(scene, seed, flaw, true);
    // A violation is in the history.
    let _ = world.run();
    world.history()
}
