//! Acting for callers: objects are created as the caller's, by a server that has the rights to.
//!
//! The identity that counts for file access is the thread's own on Linux, so one thread may create as one user while
//! another creates as another. What a caller may do has been decided by the caller's own kernel, which knows its
//! groups; so the rights to pass permission checks stay with the thread, and only those fall that would change what is
//! created (`CAP_FSETID` keeps a set-group-id bit, for one).

use crate::failure::{errno, uninterrupted};
use crate::sys;
use rustix::fs::Mode;
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::{Cred, Errno};

/// The rights that let a thread create for others: without one of them the server acts as itself.
const NEEDED: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::DAC_OVERRIDE);

/// The rights over files that fall while acting for an ordinary user.
const FALLING: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE);

/// The rights that stay: the caller's kernel has already decided what they would decide again.
const STAYING: CapabilitySet =
    CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::DAC_READ_SEARCH).union(CapabilitySet::MKNOD);

/// Whether this process may act for callers.
pub(crate) fn can_act_for_callers() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(NEEDED))
}

thread_local! {
    static UMASK: Cell<Umask> = const { Cell::new(Umask::Unknown) };
    static GROUPS_DROPPED: Cell<bool> = const { Cell::new(false) };
}

/// Whose umask the thread has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Umask {
    /// Nothing was done yet.
    Unknown,
    /// Its own, with this value.
    Own(u32),
    /// The process's: a sandbox forbids to part. Then one thread at a time creates.
    Shared,
}

/// Taken for a creation by threads that share the process's umask.
static SHARED_UMASK: Mutex<()> = Mutex::new(());

/// While it lives, the thread creates objects as `Cred` says; then it is itself again.
#[must_use]
pub(crate) struct Acting {
    restore: Option<Restore>,
    shared_umask: Option<SharedUmask>,
    /// Bound to its thread.
    _not_send: std::marker::PhantomData<*const ()>,
}

/// A turn with the process's umask.
struct SharedUmask {
    previous: Mode,
    _turn: MutexGuard<'static, ()>,
}

struct Restore {
    uid: u32,
    gid: u32,
    rights: CapabilitySets,
}

impl Acting {
    /// Begins to act for `cred`; with `acts_for_callers` false, only its umask counts.
    ///
    /// # Errors
    /// `EPERM`: the kernel does not let the thread take this identity (an id that is not mapped into its namespace).
    ///
    /// # Cost
    /// No system call when the caller is the server's own user with the umask of the call before; else up to eight.
    pub(crate) fn begin(cred: &Cred, acts_for_callers: bool) -> Result<Acting, Errno> {
        let shared_umask = set_umask(cred.umask);
        let mut acting = Acting { restore: None, shared_umask, _not_send: std::marker::PhantomData };
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        if !acts_for_callers || (cred.uid == uid && cred.gid == gid) {
            return Ok(acting);
        }
        drop_groups()?;
        let rights = rustix::thread::capabilities(None).map_err(errno)?;
        // From here on the guard restores, whatever fails.
        acting.restore = Some(Restore { uid, gid, rights });
        sys::set_fsgid(cred.gid);
        sys::set_fsuid(cred.uid);
        if sys::set_fsgid(cred.gid) != cred.gid || sys::set_fsuid(cred.uid) != cred.uid {
            return Err(Errno::NotPermitted);
        }
        if cred.uid != 0 {
            let effective = rights.effective.difference(FALLING) | (rights.permitted & STAYING);
            let lowered = CapabilitySets { effective, ..rights };
            rustix::thread::set_capabilities(None, lowered).map_err(errno)?;
        }
        Ok(acting)
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        if let Some(Restore { uid, gid, rights }) = self.restore.take() {
            sys::set_fsuid(uid);
            sys::set_fsgid(gid);
            // Only gives back what the permitted set still has, which the kernel always grants.
            let restored = rustix::thread::set_capabilities(None, rights);
            debug_assert!(restored.is_ok(), "rights within the permitted set are granted");
        }
        if let Some(SharedUmask { previous, _turn }) = self.shared_umask.take() {
            rustix::process::umask(previous);
        }
    }
}

/// Gives the thread this umask, or the process for one turn where the umask is shared.
fn set_umask(umask: u32) -> Option<SharedUmask> {
    let umask = umask & 0o777;
    let set = || rustix::process::umask(Mode::from_raw_mode(umask));
    match UMASK.get() {
        Umask::Own(present) if present == umask => None,
        Umask::Own(_) => {
            set();
            UMASK.set(Umask::Own(umask));
            None
        }
        Umask::Shared => {
            let turn = SHARED_UMASK.lock().unwrap_or_else(PoisonError::into_inner);
            Some(SharedUmask { previous: set(), _turn: turn })
        }
        Umask::Unknown => {
            let own = uninterrupted(sys::unshare_umask).is_ok();
            UMASK.set(if own { Umask::Own(umask) } else { Umask::Shared });
            if own {
                set();
                return None;
            }
            set_umask(umask)
        }
    }
}

/// The server's own supplementary groups must not count as the caller's. Dropped for good: a thread that may act for
/// callers passes permission checks without them.
fn drop_groups() -> Result<(), Errno> {
    if !GROUPS_DROPPED.get() {
        rustix::thread::set_thread_groups(&[]).map_err(errno)?;
        GROUPS_DROPPED.set(true);
    }
    Ok(())
}
