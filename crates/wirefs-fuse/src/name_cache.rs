//! Names in the kernel's dentry cache, and their invalidation.
//!
//! INVAL_ENTRY removes a name without a validity limit in one of two ways. It *drops* the name, with all unused
//! dentries below it, their inodes and pages. Or it *expires* the name: the next use looks it up, and nothing is
//! lost if it is unchanged. However, a lookup that renews a name holds no lock. If its answer is in transit, it
//! would cancel the expiry. It cannot bring back a dropped name.
//!
//! A process whose working directory has a dropped name gets ENOENT from `getcwd` until the name is looked up
//! again. Therefore directory names are never dropped; [`lookups`] has the alternative.
//!
//! Both ways wait for the calls in progress in the directory, such as the creation or removal of a name. These wait
//! for the server, and the server may wait for this very invalidation (deadlock). Two ways do not wait. Kernels
//! with INC_EPOCH can invalidate *all* names of the mount. Otherwise, the validity limit of the names must pass.
//! (After INC_EPOCH the kernel drops each name at its next use, also that of a directory, and looks it up at once.
//! Until the answer, `getcwd` fails there.) A directory where that was necessary is *contended*: for a while its
//! names are answered without validity, so that no invalidation is needed.
//!
//! | the directory | validity of its names | validity of their attributes |
//! |---|---|---|
//! | is contended | none | none |
//! | else, with INC_EPOCH | as answered | as answered |
//! | else | at most [`NAME_TIME_MAX`] | as answered |

mod lookups;

use lookups::Lookups;
pub(crate) use lookups::{Answering, Lookup, NameInvalidation};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_client::call::{Answer, TreeNodeId};

/// The longest validity of a name without INC_EPOCH.
const NAME_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a directory stays contended after the last invalidation of a name there.
const CONTENDED_FOR: Duration = Duration::from_secs(60);
/// Invalidations are needed again this long before the end of contention: later answers have arrived by its end.
const CONTENDED_MARGIN: Duration = Duration::from_secs(1);
/// Contended directories at most.
const CONTENDED_MAX: usize = 1024;
/// The tolerance for the kernel's clock and for answers in transit.
const CLOCK_SLACK: Duration = Duration::from_millis(50);
/// The longest transit of a written answer to the caller.
const TRANSIT_MS: u64 = 1000;

/// Limits of validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) name: Duration,
    /// The attributes in the answer to a lookup.
    pub(crate) attributes: Duration,
}

/// The steps that make names invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    /// Whether all names of the mount must be invalidated.
    pub(crate) invalidates_all: bool,
    /// The time that must pass.
    pub(crate) wait: Duration,
}

/// The state of one mount.
#[derive(Debug)]
pub(crate) struct KernelNameCache {
    started: Instant,
    invalidates_all_names: AtomicBool,
    /// Whether the kernel can map files without caching their pages.
    maps_uncached: AtomicBool,
    /// Whether the kernel can evict inodes by node id.
    prunes: AtomicBool,
    lookups: Lookups,
    /// Whether any directory is contended, so that other mounts take no lock.
    is_contended: AtomicBool,
    /// The contended directories, with the time of the last invalidation.
    contended: Mutex<BTreeMap<TreeNodeId, Instant>>,
}

impl Default for KernelNameCache {
    fn default() -> KernelNameCache {
        KernelNameCache {
            started: Instant::now(),
            invalidates_all_names: AtomicBool::new(false),
            maps_uncached: AtomicBool::new(false),
            prunes: AtomicBool::new(false),
            lookups: Lookups::default(),
            is_contended: AtomicBool::new(false),
            contended: Mutex::default(),
        }
    }
}

impl KernelNameCache {
    /// Whether the kernel can invalidate all names at once.
    pub(crate) fn invalidates_all_names(&self) -> bool {
        self.invalidates_all_names.load(Ordering::Relaxed)
    }

    /// Whether the kernel can evict an inode by node id.
    pub(crate) fn prunes(&self) -> bool {
        self.prunes.load(Ordering::Relaxed)
    }

    /// Sets the negotiated features.
    pub(crate) fn negotiate(&self, invalidates_all_names: bool, maps_uncached: bool, prunes: bool) {
        self.prunes.store(prunes, Ordering::Relaxed);
        self.invalidates_all_names.store(invalidates_all_names, Ordering::Relaxed);
        self.maps_uncached.store(maps_uncached, Ordering::Relaxed);
    }

    /// Whether a file without cached pages can be mapped shared.
    pub(crate) fn maps_uncached(&self) -> bool {
        self.maps_uncached.load(Ordering::Relaxed)
    }

    /// The limits of validity for names in a directory.
    pub(crate) fn bounds(&self, directory: TreeNodeId) -> Bounds {
        if self.is_contended_within(directory, CONTENDED_FOR, |_| {}) {
            return Bounds { name: Duration::ZERO, attributes: Duration::ZERO };
        }
        let name = if self.invalidates_all_names() { Duration::MAX } else { NAME_TIME_MAX };
        Bounds { name, attributes: Duration::MAX }
    }

    /// Whether the names of the directory have no validity, so that no invalidation is needed. Extends that state.
    pub(crate) fn are_names_untrusted(&self, directory: TreeNodeId) -> bool {
        self.is_contended_within(directory, CONTENDED_FOR - CONTENDED_MARGIN, |at| *at = Instant::now())
    }

    fn is_contended_within(
        &self,
        directory: TreeNodeId,
        span: Duration,
        renew: impl FnOnce(&mut Instant),
    ) -> bool {
        if !self.is_contended.load(Ordering::SeqCst) {
            return false;
        }
        let mut contended = self.contended();
        let at = contended.get_mut(&directory).filter(|at| at.elapsed() < span);
        at.map(renew).is_some()
    }

    /// Begins the lookup of a name; [`KernelNameCache::answering`] ends it.
    pub(crate) fn begin_lookup(&self, directory: TreeNodeId, name: &[u8]) -> Lookup {
        self.lookups.begin(directory, name)
    }

    /// Prepares the answer to a lookup, which may lose its validity here. [`KernelNameCache::answered`] follows it.
    pub(crate) fn answering(&self, lookup: Lookup, answer: &mut Answer) -> Answering {
        self.lookups.answering(lookup, answer, self.ms())
    }

    /// The answer was written.
    pub(crate) fn answered(&self, answering: Answering) {
        self.lookups.answered(answering, self.ms());
    }

    /// Begins the invalidation of a name and returns its form.
    pub(crate) fn begin_invalidation(
        &self,
        directory: TreeNodeId,
        name: &[u8],
        is_directory: bool,
    ) -> NameInvalidation {
        self.lookups.begin_invalidation(directory, name, is_directory, self.ms())
    }

    /// Names of these directories should have been invalidated at `since`, but calls are in progress there. Returns
    /// the steps that make all earlier answers invalid. The directories become contended.
    pub(crate) fn expire_directories(&self, directories: &[TreeNodeId], since: Instant) -> Expiry {
        let mut contended = self.contended();
        let now = Instant::now();
        contended.retain(|_, at| now.duration_since(*at) < CONTENDED_FOR);
        let mut expire_directories = Expiry { invalidates_all: false, wait: Duration::ZERO };
        for directory in directories {
            let is_contended = contended.contains_key(directory);
            if !is_contended && self.invalidates_all_names() {
                expire_directories.invalidates_all = true;
            } else if !is_contended {
                expire_directories.wait =
                    (since + NAME_TIME_MAX + CLOCK_SLACK).saturating_duration_since(now);
            }
            if is_contended || contended.len() < CONTENDED_MAX {
                contended.insert(*directory, now);
            }
        }
        self.is_contended.store(!contended.is_empty(), Ordering::SeqCst);
        expire_directories
    }

    fn contended(&self) -> MutexGuard<'_, BTreeMap<TreeNodeId, Instant>> {
        self.contended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
