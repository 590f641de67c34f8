//! The work that people do on files, in steps that are measured one by one. One file per workload.
//!
//! A workload is data: how its tree is made on the server, and for each step what is run on the mounted tree, by the
//! real program where there is one. Contents follow from a fixed seed, so every run sees the same tree.

mod bulk_read;
mod bulk_write;
mod copy_out;
mod create;
mod disk;
mod editor_save;
mod find;
mod git_status;
mod grep;
mod ls;
mod make;
mod mkdir_cd;
mod parallel_read;
mod random_read;
mod read_one;
mod rm_rf;
mod sqlite;
mod tree;
mod untar;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::LabError;

/// All workloads, in the order of reports.
pub static ALL: [&Workload; 17] = [
    &ls::WORKLOAD,
    &mkdir_cd::WORKLOAD,
    &find::WORKLOAD,
    &git_status::WORKLOAD,
    &grep::WORKLOAD,
    &untar::WORKLOAD,
    &rm_rf::WORKLOAD,
    &create::WORKLOAD,
    &make::WORKLOAD,
    &editor_save::WORKLOAD,
    &read_one::WORKLOAD,
    &bulk_read::WORKLOAD,
    &bulk_write::WORKLOAD,
    &parallel_read::WORKLOAD,
    &copy_out::WORKLOAD,
    &random_read::WORKLOAD,
    &sqlite::WORKLOAD,
];

/// A piece of work: a tree, and steps on it.
#[derive(Debug)]
pub struct Workload {
    /// The word for it on the command line and in reports.
    pub name: &'static str,
    /// What it does at this scale, for reports.
    pub about: fn(&Scale) -> String,
    /// Programs that it runs, each with the Debian package that has it.
    pub programs: &'static [(&'static str, &'static str)],
    /// Makes the tree in [`Place::tree`], which is an empty directory on the server, and what it needs in
    /// [`Place::local`].
    pub prepare: fn(&Place) -> Result<(), LabError>,
    /// What is measured, in this order on one tree.
    pub steps: &'static [Step],
}

/// One measured step.
#[derive(Debug)]
pub struct Step {
    /// The word for it; empty when it is the only one.
    pub name: &'static str,
    /// What the mount has seen before.
    pub start: Start,
    /// Does it, on the mounted tree.
    pub run: fn(&Place) -> Result<(), LabError>,
    /// The bare transfer that it can be compared with.
    pub bulk: Option<Bulk>,
}

/// What a mount has seen when a step begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing: it was mounted for this step.
    Cold,
    /// The steps before; when there are none, a listing of the root.
    Warm,
    /// The same, and then nothing for this long.
    After(Duration),
}

/// A bare transfer that a step is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bulk {
    /// [`Scale::bulk_bytes`] from the server to the client: the step is such a transfer itself.
    Down,
    /// The same from the client to the server.
    Up,
    /// As many bytes as the files of its tree have, from the server to the client: what the step has to bring over, whatever else it
    /// takes.
    Tree,
}

/// Where a workload does its work.
#[derive(Clone, Debug)]
pub struct Place {
    /// The tree: the server's directory while it is prepared, the mount of it while it is measured.
    pub tree: PathBuf,
    /// A directory outside the mount, on the client's own disk.
    pub local: PathBuf,
    /// How much of everything.
    pub scale: Scale,
}

/// How much of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Files of a source tree.
    pub files: usize,
    /// Directories that they lie in.
    pub directories: usize,
    /// Files of a listed directory.
    pub listed: usize,
    /// Files that are created.
    pub creates: usize,
    /// C files that are compiled.
    pub units: usize,
    /// Saves of an editor.
    pub saves: usize,
    /// Files that processes read at once.
    pub parallel_files: usize,
    /// Random reads.
    pub random_reads: usize,
    /// Bytes of the file that they read from.
    pub random_bytes: u64,
    /// Transactions of a database.
    pub transactions: usize,
    /// Bytes of a large file.
    pub bulk_bytes: u64,
}

impl Scale {
    /// The numbers that the goals are stated for.
    pub const FULL: Scale = Scale {
        files: 2_000,
        directories: 100,
        listed: 100,
        creates: 1_000,
        units: 60,
        saves: 20,
        parallel_files: 200,
        random_reads: 500,
        random_bytes: 64 << 20,
        transactions: 200,
        bulk_bytes: 256 << 20,
    };
    /// A tenth or so, for a first look.
    pub const SHORT: Scale = Scale {
        files: 200,
        directories: 10,
        listed: 50,
        creates: 100,
        units: 6,
        saves: 5,
        parallel_files: 40,
        random_reads: 50,
        random_bytes: 16 << 20,
        transactions: 20,
        bulk_bytes: 16 << 20,
    };
}

impl Scale {
    /// The scale that a command line asks for.
    pub fn of(short: bool, bulk_bytes: Option<u64>) -> Scale {
        let scale = if short { Scale::SHORT } else { Scale::FULL };
        Scale { bulk_bytes: bulk_bytes.unwrap_or(scale.bulk_bytes), ..scale }
    }
}

impl Workload {
    /// The workload of this name.
    pub fn named(name: &str) -> Option<&'static Workload> {
        ALL.into_iter().find(|workload| workload.name == name)
    }

    /// The step of this name.
    pub fn step(&self, name: &str) -> Option<&'static Step> {
        self.steps.iter().find(|step| step.name == name)
    }
}

impl Place {
    /// A path in the tree.
    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.tree.join(path)
    }
}

#[cfg(test)]
mod tests;
