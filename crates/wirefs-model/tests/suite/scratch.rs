//! Temporary directories of tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory, removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates a directory in `place`.
    pub(crate) fn within(place: &Path) -> Scratch {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("wirefs-model-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
