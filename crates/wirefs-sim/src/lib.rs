//! The simulation: client cores, a server core and everything between them that can be late, cut or dead, in virtual time.
//!
//! *Holds*: one seed is one run, the same on every machine. What a program sees in it, through a kernel that keeps what it was told to
//! keep, is compared with the tree as it was at some moment between the question and the answer; what a kernel believes under
//! leases is compared at each change. A change waits for others for a bounded time, and each call is answered. Once all is
//! well again, all clients see the same tree, and nothing is left at anybody.
//!
//! A mount that is ahead of its server, with a journal: what its program was told is what the server has in the end, each change once and in
//! order, whoever was killed and whichever machine lost power; what was synced is on the server's disk when that is answered.
//!
//! Programs on mounts and one at the server that create the same names exclusively: a name has one holder at a time, and no creation that
//! succeeded is refused later.
//!
//! *Never*: clocks, threads, sockets, randomness but the seed's. Shipped.
//!
//! *Drive it*:
//! ```
//! let record = wirefs_sim::run(wirefs_sim::Scene::Beside, 7, None)?;
//! assert!(record.operations > 0);
//! # Ok::<(), wirefs_sim::Failure>(())
//! ```
//!
//! *Proved by*: `tests/suite`, where each [`Flaw`] is built in and has to be found.

mod ahead;
mod check;
mod end;
mod flaw;
mod kernel;
mod plan;
mod program;
mod record;
mod rivals;
mod scene;
mod seat;
mod server;
mod troubles;
mod truth;
mod wire;
mod world;

pub use flaw::Flaw;
pub use record::Record;
pub use scene::Scene;

use std::fmt;
use world::World;

/// So many lines of what happened before are shown.
const SHOWN: usize = 400;

/// A run in which something was wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind of run.
    pub scene: Scene,
    /// Which run.
    pub seed: u64,
    /// What was wrong.
    pub what: String,
    /// What happened, in order, with virtual times in seconds.
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

/// Carries out the run of a seed, with a mistake built in if there is one.
///
/// # Errors
/// Something was wrong; then the run is made again, to tell what happened in it.
pub fn run(scene: Scene, seed: u64, flaw: Option<Flaw>) -> Result<Record, Failure> {
    World::new(scene, seed, flaw, false).run().map_err(|what| {
        let history = tell(scene, seed, flaw);
        Failure { scene, seed, what, history }
    })
}

/// What happens in the run of a seed, line by line.
pub fn tell(scene: Scene, seed: u64, flaw: Option<Flaw>) -> Vec<String> {
    let mut world = World::new(scene, seed, flaw, true);
    // What is wrong with it stands in the history.
    let _ = world.run();
    world.history()
}
