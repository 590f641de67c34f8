//! Typical file work, in steps that are measured one by one. One file per workload.
//!
//! A workload is data: a function that creates its tree on the server, and one function per step on the mounted tree,
//! with the real program if there is one. A fixed seed determines the contents, so every run sees the same tree.

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

/// A tree, and steps on it.
#[derive(Debug)]
pub struct Workload {
    /// The name on the command line and in reports.
    pub name: &'static str,
    /// Describes the work at this scale, for reports.
    pub about: fn(&Scale) -> String,
    /// The programs it needs, each with its Debian package.
    pub programs: &'static [(&'static str, &'static str)],
    /// Creates the tree in [`WorkPlace::tree`], an empty directory on the server, and further files in [`WorkPlace::local`].
    pub prepare: fn(&WorkPlace) -> Result<(), LabError>,
    /// The measured steps, in this order on one tree.
    pub steps: &'static [WorkloadStep],
}

/// One measured step.
#[derive(Debug)]
pub struct WorkloadStep {
    /// The name; empty if it is the only step.
    pub name: &'static str,
    /// The state of the cache before the step.
    pub cache: CacheState,
    /// Runs the step on the mounted tree.
    pub run: fn(&WorkPlace) -> Result<(), LabError>,
    /// The bare transfer that the step is compared with.
    pub bulk: Option<BareTransfer>,
}

/// The state of a mount's cache when a step begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// Empty: newly mounted.
    Cold,
    /// Filled by the previous steps, or by a listing of the root if there are none.
    Warm,
    /// The same, then idle for this time.
    WarmThenIdle(Duration),
}

/// A bare transfer for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareTransfer {
    /// [`Scale::bulk_bytes`] from the server to the client; the step itself is such a transfer.
    Down,
    /// The same from the client to the server.
    Up,
    /// All bytes of the files of the tree, from the server to the client: the minimum that the step has to transfer.
    Tree,
}

/// The directories and the scale of a workload.
#[derive(Clone, Debug)]
pub struct WorkPlace {
    /// The tree: the exported directory during preparation, its mount during measurement.
    pub tree: PathBuf,
    /// A directory outside the mount, on the client's local disk.
    pub local: PathBuf,
    /// The amount of work.
    pub scale: Scale,
}

/// The amount of work per workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Files of a source tree.
    pub files: usize,
    /// Directories of a source tree.
    pub directories: usize,
    /// Files of a listed directory.
    pub listed: usize,
    /// Created files.
    pub creates: usize,
    /// Compiled C files.
    pub units: usize,
    /// Saves of an editor.
    pub saves: usize,
    /// Files read by parallel processes.
    pub parallel_files: usize,
    /// Random reads.
    pub random_reads: usize,
    /// Bytes of the file for random reads.
    pub random_bytes: u64,
    /// Transactions of a database.
    pub transactions: usize,
    /// Bytes of a large file.
    pub bulk_bytes: u64,
}

impl Scale {
    /// The scale of the stated goals.
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
    /// ErrorContext a tenth, for a quick run.
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
    /// Returns the scale for the options of a command line.
    pub fn of(short: bool, bulk_bytes: Option<u64>) -> Scale {
        let scale = if short { Scale::SHORT } else { Scale::FULL };
        Scale { bulk_bytes: bulk_bytes.unwrap_or(scale.bulk_bytes), ..scale }
    }
}

impl Workload {
    /// Returns the workload of this name.
    pub fn named(name: &str) -> Option<&'static Workload> {
        ALL.into_iter().find(|workload| workload.name == name)
    }

    /// Returns the step of this name.
    pub fn step(&self, name: &str) -> Option<&'static WorkloadStep> {
        self.steps.iter().find(|step| step.name == name)
    }
}

impl WorkPlace {
    /// Returns a path in the tree.
    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.tree.join(path)
    }
}

#[cfg(test)]
mod tests;
