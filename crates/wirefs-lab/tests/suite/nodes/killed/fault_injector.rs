//! Kills and restarts of nodes, and the convergence time of the tables.

use std::time::{Duration, Instant};

use serde_json::Value;
use wirefs_lab::random::Random;

use super::super::segment::{NodeSegment, wait_for};
use super::{NODES, SharedState, is_strict};

/// The minimum number of live nodes.
const LIVE_MIN: usize = 2;

/// A kill or a restart, and its convergence time.
pub(super) struct NodeChange {
    pub(super) name: String,
    /// The time from the change until all tables and all /net directories were correct. For several restarts, one after
    /// the other: from the last one.
    pub(super) elapsed: Duration,
    /// The maximum number of protocol periods that any node needed.
    pub(super) periods: u64,
}

/// Kills and restarts nodes, and waits for the convergence of the others.
pub(super) struct FaultInjector<'a> {
    pub(super) segment: &'a NodeSegment,
    pub(super) shared: &'a SharedState,
    is_alive: [bool; NODES],
    random: Random,
}

impl<'a> FaultInjector<'a> {
    pub(super) fn new(segment: &'a NodeSegment, shared: &'a SharedState, seed: u64) -> FaultInjector<'a> {
        FaultInjector { segment, shared, is_alive: [false; NODES], random: Random::new(seed) }
    }

    /// Kills or restarts random nodes.
    pub(super) fn inject(&mut self) -> NodeChange {
        let living = self.numbers(true);
        let dead = self.numbers(false);
        let may_kill = living.len() > LIVE_MIN;
        if may_kill && (dead.is_empty() || self.random.below(2) == 0) {
            // Sometimes two at once.
            let count = if living.len() > LIVE_MIN + 1 && self.random.below(4) == 0 { 2 } else { 1 };
            let nodes = self.choose(living, count);
            self.kill(&nodes)
        } else {
            let count = 1 + self.random.below(dead.len() as u64) as usize;
            let nodes = self.choose(dead, count);
            self.restart(&nodes)
        }
    }

    /// Restarts all dead nodes.
    pub(super) fn restart_all(&mut self) -> NodeChange {
        let dead = self.numbers(false);
        self.restart(&dead)
    }

    /// Returns a random pause.
    pub(super) fn pause(&mut self, max: Duration) -> Duration {
        Duration::from_millis(self.random.below(max.as_millis() as u64))
    }

    fn numbers(&self, is_alive: bool) -> Vec<usize> {
        (0..NODES).filter(|&node| self.is_alive[node] == is_alive).collect()
    }

    fn choose(&mut self, mut of: Vec<usize>, count: usize) -> Vec<usize> {
        while of.len() > count {
            of.swap_remove(self.random.below(of.len() as u64) as usize);
        }
        of
    }

    fn kill(&mut self, nodes: &[usize]) -> NodeChange {
        nodes.iter().for_each(|&node| self.is_alive[node] = false);
        let before = self.periods_before();
        nodes.iter().for_each(|&node| self.shared.unsettle(node));
        let begun = Instant::now();
        nodes.iter().for_each(|&node| self.segment.kill(node + 1));
        self.wait_for_tables(format!("killed {}", listed(nodes)), begun, before, &[])
    }

    fn restart(&mut self, nodes: &[usize]) -> NodeChange {
        nodes.iter().for_each(|&node| self.shared.unsettle(node));
        let mut begun = Instant::now();
        for &node in nodes {
            begun = Instant::now();
            let mode = if is_strict(node) { "strict" } else { "window=1s" };
            self.segment.up_as(node + 1, &name(node), &["--mode", mode]).succeeds();
            self.is_alive[node] = true;
        }
        let before = self.periods_before();
        self.wait_for_tables(format!("returned {}", listed(nodes)), begun, before, nodes)
    }

    /// Returns the elapsed protocol periods of each live node.
    fn periods_before(&self) -> [u64; NODES] {
        std::array::from_fn(|node| if self.is_alive[node] { self.table(node).periods } else { 0 })
    }

    fn wait_for_tables(
        &mut self,
        name: String,
        begun: Instant,
        before: [u64; NODES],
        settled: &[usize],
    ) -> NodeChange {
        let (mut elapsed, mut periods) = (Duration::ZERO, 0);
        for here in self.numbers(true) {
            let mut now = 0;
            wait_for("all tables to be right", || {
                let table = self.table(here);
                now = table.periods;
                self.is_right(&table) && self.is_listed(here)
            });
            elapsed = elapsed.max(begun.elapsed());
            periods = periods.max(now.saturating_sub(before[here]));
        }
        settled.iter().for_each(|&node| self.shared.settle(node));
        NodeChange { name, elapsed, periods }
    }

    fn is_right(&self, table: &NodeTable) -> bool {
        (0..NODES).all(|node| match table.state(&name(node)) {
            Some("alive") => self.is_alive[node],
            // A node that started later may not know the dead one.
            Some("dead") | None => !self.is_alive[node],
            Some(_) => false,
        })
    }

    /// Returns whether a node's /net has exactly the live nodes.
    fn is_listed(&self, here: usize) -> bool {
        let names = self.segment.names(here + 1);
        (0..NODES).all(|node| names.contains(&name(node)) == self.is_alive[node])
    }

    /// Returns the table of a node.
    fn table(&self, node: usize) -> NodeTable {
        let json = self.segment.node(node + 1, &["list", "--json"]).succeeds();
        let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
        let periods = rows.iter().find_map(|row| row["turns"].as_u64()).unwrap();
        let state = |row: &Value| Some((row["name"].as_str()?.to_owned(), row["state"].as_str()?.to_owned()));
        NodeTable { states: rows.iter().filter_map(state).collect(), periods }
    }
}

/// The table of one node.
struct NodeTable {
    states: Vec<(String, String)>,
    periods: u64,
}

impl NodeTable {
    fn state(&self, name: &str) -> Option<&str> {
        self.states.iter().find(|(known, _)| known == name).map(|(_, state)| state.as_str())
    }
}

/// Returns the name of a node.
pub(super) fn name(node: usize) -> String {
    format!("linus{}", node + 1)
}

fn listed(nodes: &[usize]) -> String {
    nodes.iter().map(|&node| name(node)).collect::<Vec<_>>().join(" and ")
}
