//! What the kernel may believe of names, and what it takes that it does so no longer.
//!
//! A name that was told without a time limit is taken back by INVAL_ENTRY, which can do it in two ways. It can *drop*
//! the name, and with it all names below that nobody uses, their inodes and pages. Or it can *expire* it: the name is asked
//! for when it is next used, and if it still means the same nothing is lost. But a lookup that renews a name holds no
//! lock: where its answer is on its way, it would undo that an expired name expired. A dropped one it cannot bring back.
//!
//! Who stands in a directory whose name was dropped has no place any more (`getcwd` fails) until somebody looks that name up again: the name of
//! a directory is never dropped. [`lookups`] says what is done instead.
//!
//! Dropping and expiring wait for the calls under way in the directory, a making or removing of names among them, and these wait for the
//! server, and the server perhaps for us. Without waiting there is only to have *all* names of the mount dropped, on
//! kernels that can, or to let a time pass for which names were told at most. (The kernel drops each name that it comes upon then, a
//! directory's too, and asks for it at once; until that is answered it has no place.) A directory where that was needed is
//! *contended*: nothing in it is believed for a while, so that nothing has to be taken back.
//!
//! | the directory | its names are told for | and the attributes with them |
//! |---|---|---|
//! | is contended | no time | no time |
//! | else, if the kernel can forget all names | as long as was answered | as long as was answered |
//! | else | at most [`NAME_TIME_MAX`] | as long as was answered |

mod lookups;

use lookups::Lookups;
pub(crate) use lookups::{Answering, Lookup, TakenBack};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_client::call::{Answer, TreeNodeId};

/// The longest that a name is told for where the kernel cannot be told to forget all of them.
const NAME_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a directory counts as contended after a name was last taken back there.
const CONTENDED_FOR: Duration = Duration::from_secs(60);
/// So long before that is over names have to be taken back again: answers that were made after are with the kernel by then.
const CONTENDED_MARGIN: Duration = Duration::from_secs(1);
/// Contended directories remembered, at most.
const CONTENDED_MAX: usize = 1024;
/// What the kernel's clock may add to a time that it was told, and answers to their way, at most.
const CLOCK_SLACK: Duration = Duration::from_millis(50);
/// An answer that was written is with the one who asked after this time.
const ON_ITS_WAY_MS: u64 = 1000;

/// For how long something may be told at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) name: Duration,
    /// The attributes that come with a name.
    pub(crate) attributes: Duration,
}

/// What is to be done so that names are not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distrust {
    /// All names are to be forgotten.
    pub(crate) forgets_all: bool,
    /// This long must pass.
    pub(crate) wait: Duration,
}

/// What holds for one mount.
#[derive(Debug)]
pub(crate) struct Beliefs {
    started: Instant,
    forgets_names: AtomicBool,
    /// The kernel maps files too that it keeps no pages of.
    maps_unkept: AtomicBool,
    /// The kernel lets go of nodes by their numbers.
    prunes: AtomicBool,
    lookups: Lookups,
    /// Any at all: a mount without pays for no lock.
    is_contended: AtomicBool,
    /// Directories, with when they last were contended.
    contended: Mutex<BTreeMap<TreeNodeId, Instant>>,
}

impl Default for Beliefs {
    fn default() -> Beliefs {
        Beliefs {
            started: Instant::now(),
            forgets_names: AtomicBool::new(false),
            maps_unkept: AtomicBool::new(false),
            prunes: AtomicBool::new(false),
            lookups: Lookups::default(),
            is_contended: AtomicBool::new(false),
            contended: Mutex::default(),
        }
    }
}

impl Beliefs {
    /// Whether the kernel can be told to forget all names.
    pub(crate) fn forgets_names(&self) -> bool {
        self.forgets_names.load(Ordering::Relaxed)
    }

    /// Whether it can be told to let go of a node by its number.
    pub(crate) fn prunes(&self) -> bool {
        self.prunes.load(Ordering::Relaxed)
    }

    /// Says so, once that was agreed on.
    pub(crate) fn agree(&self, forgets_names: bool, maps_unkept: bool, prunes: bool) {
        self.prunes.store(prunes, Ordering::Relaxed);
        self.forgets_names.store(forgets_names, Ordering::Relaxed);
        self.maps_unkept.store(maps_unkept, Ordering::Relaxed);
    }

    /// Whether a file of which the kernel keeps no pages can be mapped to be shared.
    pub(crate) fn maps_unkept(&self) -> bool {
        self.maps_unkept.load(Ordering::Relaxed)
    }

    /// How long names of a directory may be told for at the moment.
    pub(crate) fn bounds(&self, directory: TreeNodeId) -> Bounds {
        if self.is_contended_within(directory, CONTENDED_FOR, |_| {}) {
            return Bounds { name: Duration::ZERO, attributes: Duration::ZERO };
        }
        let name = if self.forgets_names() { Duration::MAX } else { NAME_TIME_MAX };
        Bounds { name, attributes: Duration::MAX }
    }

    /// Whether no name of the directory is believed, so that none need be taken back. It stays so for another while.
    pub(crate) fn is_distrusted(&self, directory: TreeNodeId) -> bool {
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

    /// A name is about to be looked up; [`Beliefs::answering`] takes what is given back.
    pub(crate) fn looked_up(&self, directory: TreeNodeId, name: &[u8]) -> Lookup {
        self.lookups.begin(directory, name)
    }

    /// A lookup's answer is about to be written, and [`Beliefs::answered`] behind it: the name may be told for no time now.
    pub(crate) fn answering(&self, lookup: Lookup, answer: &mut Answer) -> Answering {
        self.lookups.answering(lookup, answer, self.ms())
    }

    /// The lookup's answer was written.
    pub(crate) fn answered(&self, answering: Answering) {
        self.lookups.answered(answering, self.ms());
    }

    /// A name is about to be taken back, and how.
    pub(crate) fn take_back(&self, directory: TreeNodeId, name: &[u8], is_directory: bool) -> TakenBack {
        self.lookups.take_back(directory, name, is_directory, self.ms())
    }

    /// Names of these directories were to be taken back at `since`, but calls are under way there: what it takes that none
    /// that was told before is believed. From now on the directories are contended.
    pub(crate) fn distrust(&self, directories: &[TreeNodeId], since: Instant) -> Distrust {
        let mut contended = self.contended();
        let now = Instant::now();
        contended.retain(|_, at| now.duration_since(*at) < CONTENDED_FOR);
        let mut distrust = Distrust { forgets_all: false, wait: Duration::ZERO };
        for directory in directories {
            let is_contended = contended.contains_key(directory);
            if !is_contended && self.forgets_names() {
                distrust.forgets_all = true;
            } else if !is_contended {
                distrust.wait = (since + NAME_TIME_MAX + CLOCK_SLACK).saturating_duration_since(now);
            }
            if is_contended || contended.len() < CONTENDED_MAX {
                contended.insert(*directory, now);
            }
        }
        self.is_contended.store(!contended.is_empty(), Ordering::SeqCst);
        distrust
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
