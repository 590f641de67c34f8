//! Nodes that are killed and come back, and how long the tables of the others took.

use std::time::{Duration, Instant};

use serde_json::Value;
use wirefs_lab::random::Random;

use super::super::segment::{Segment, wait_for};
use super::{NODES, Shared, is_strict};

/// At least so many live.
const LIVE_MIN: usize = 2;

/// A change, and what it took until each table was right.
pub(super) struct Change {
    pub(super) what: String,
    /// Since it began, until each net was as it should be, and the last table was right. Where several come back they do one after the other: since the last.
    pub(super) took: Duration,
    /// The most periods of the protocol that a node needed.
    pub(super) turns: u64,
}

/// Kills nodes, and lets them come back; all others are to know it.
pub(super) struct Fate<'a> {
    pub(super) segment: &'a Segment,
    pub(super) shared: &'a Shared,
    lives: [bool; NODES],
    random: Random,
}

impl<'a> Fate<'a> {
    pub(super) fn new(segment: &'a Segment, shared: &'a Shared, seed: u64) -> Fate<'a> {
        Fate { segment, shared, lives: [false; NODES], random: Random::new(seed) }
    }

    /// Some change, and the tables that became right after it.
    pub(super) fn strike(&mut self) -> Change {
        let living = self.numbers(true);
        let dead = self.numbers(false);
        let may_kill = living.len() > LIVE_MIN;
        if may_kill && (dead.is_empty() || self.random.below(2) == 0) {
            // Two at once now and then.
            let count = if living.len() > LIVE_MIN + 1 && self.random.below(4) == 0 { 2 } else { 1 };
            let victims = self.some(living, count);
            self.kill(&victims)
        } else {
            let count = 1 + self.random.below(dead.len() as u64) as usize;
            let returning = self.some(dead, count);
            self.bring_back(&returning)
        }
    }

    /// All that are dead come back.
    pub(super) fn bring_all_back(&mut self) -> Change {
        let dead = self.numbers(false);
        self.bring_back(&dead)
    }

    /// How long nothing happens.
    pub(super) fn pause(&mut self, most: Duration) -> Duration {
        Duration::from_millis(self.random.below(most.as_millis() as u64))
    }

    fn numbers(&self, lives: bool) -> Vec<usize> {
        (0..NODES).filter(|&node| self.lives[node] == lives).collect()
    }

    fn some(&mut self, mut of: Vec<usize>, count: usize) -> Vec<usize> {
        while of.len() > count {
            of.swap_remove(self.random.below(of.len() as u64) as usize);
        }
        of
    }

    fn kill(&mut self, victims: &[usize]) -> Change {
        victims.iter().for_each(|&node| self.lives[node] = false);
        let before = self.turns_before();
        victims.iter().for_each(|&node| self.shared.unsettle(node));
        let begun = Instant::now();
        victims.iter().for_each(|&node| self.segment.kill(node + 1));
        self.await_tables(format!("killed {}", listed(victims)), begun, before, &[])
    }

    fn bring_back(&mut self, returning: &[usize]) -> Change {
        returning.iter().for_each(|&node| self.shared.unsettle(node));
        let mut begun = Instant::now();
        for &node in returning {
            begun = Instant::now();
            let mode = if is_strict(node) { "strict" } else { "window=1s" };
            self.segment.up_as(node + 1, &name(node), &["--mode", mode]).succeeds();
            self.lives[node] = true;
        }
        let before = self.turns_before();
        self.await_tables(format!("returned {}", listed(returning)), begun, before, returning)
    }

    /// The periods that passed so far for each node that lives.
    fn turns_before(&self) -> [u64; NODES] {
        std::array::from_fn(|node| if self.lives[node] { self.table(node).turns } else { 0 })
    }

    fn await_tables(
        &mut self,
        what: String,
        begun: Instant,
        before: [u64; NODES],
        settled: &[usize],
    ) -> Change {
        let (mut took, mut turns) = (Duration::ZERO, 0);
        for here in self.numbers(true) {
            let mut now = 0;
            wait_for("all tables to be right", || {
                let table = self.table(here);
                now = table.turns;
                self.is_right(&table) && self.is_listed(here)
            });
            took = took.max(begun.elapsed());
            turns = turns.max(now.saturating_sub(before[here]));
        }
        settled.iter().for_each(|&node| self.shared.settle(node));
        Change { what, took, turns }
    }

    fn is_right(&self, table: &Table) -> bool {
        (0..NODES).all(|node| match table.state(&name(node)) {
            Some("alive") => self.lives[node],
            // Who came later never heard of it.
            Some("dead") | None => !self.lives[node],
            Some(_) => false,
        })
    }

    /// Whether a node's net has those who live, and none else.
    fn is_listed(&self, here: usize) -> bool {
        let names = self.segment.names(here + 1);
        (0..NODES).all(|node| names.contains(&name(node)) == self.lives[node])
    }

    /// What a node knows.
    fn table(&self, node: usize) -> Table {
        let json = self.segment.node(node + 1, &["list", "--json"]).succeeds();
        let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
        let turns = rows.iter().find_map(|row| row["turns"].as_u64()).unwrap();
        let state = |row: &Value| Some((row["name"].as_str()?.to_owned(), row["state"].as_str()?.to_owned()));
        Table { states: rows.iter().filter_map(state).collect(), turns }
    }
}

/// The table of one node.
struct Table {
    states: Vec<(String, String)>,
    turns: u64,
}

impl Table {
    fn state(&self, name: &str) -> Option<&str> {
        self.states.iter().find(|(known, _)| known == name).map(|(_, state)| state.as_str())
    }
}

/// What a node is called.
pub(super) fn name(node: usize) -> String {
    format!("linus{}", node + 1)
}

fn listed(nodes: &[usize]) -> String {
    nodes.iter().map(|&node| name(node)).collect::<Vec<_>>().join(" and ")
}
