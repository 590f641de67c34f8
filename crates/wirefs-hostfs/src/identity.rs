//! Acting for callers: objects are created with the caller's identity, if the server has the rights.
//!
//! On Linux the identity for file access belongs to the thread, so threads may create for different users at the
//! same time. The client's kernel has already checked the caller's permissions with all of its groups. So the
//! thread keeps the rights that bypass permission checks. It drops only those that would change the created object
//! (for example `CAP_FSETID`, which keeps a set-group-id bit).

use crate::failure::{errno, uninterrupted};
use crate::sys;
use rustix::fs::Mode;
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::{Cred, Errno};

/// The rights that a thread needs to create for others. Without one of them the server acts as itself.
const NEEDED: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::DAC_OVERRIDE);

/// The rights over files that are dropped while acting for an ordinary user.
const DROPPED: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE);

/// The rights that are kept, since the client's kernel has made their checks.
const KEPT: CapabilitySet =
    CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::DAC_READ_SEARCH).union(CapabilitySet::MKNOD);

/// Whether this process may act for callers.
pub(crate) fn can_act_for_callers() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(NEEDED))
}

thread_local! {
    static UMASK: Cell<Umask> = const { Cell::new(Umask::Unknown) };
    static GROUPS_DROPPED: Cell<bool> = const { Cell::new(false) };
}

/// The owner of the thread's umask.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Umask {
    /// Not determined yet.
    Unknown,
    /// The thread itself, with this value.
    Own(u32),
    /// The process: a sandbox forbids `unshare`. Then one thread creates at a time.
    Shared,
}

/// Locked during a creation by threads that share the process's umask.
static PROCESS_UMASK: Mutex<()> = Mutex::new(());

/// While this exists, the thread creates objects as `Cred` says.
#[must_use]
pub(crate) struct Acting {
    restore: Option<Restore>,
    shared_umask: Option<ProcessUmask>,
    /// Bound to its thread.
    _not_send: std::marker::PhantomData<*const ()>,
}

/// Exclusive use of the process's umask.
struct ProcessUmask {
    previous: Mode,
    _guard: MutexGuard<'static, ()>,
}

struct Restore {
    uid: u32,
    gid: u32,
    rights: CapabilitySets,
}

impl Acting {
    /// Begins to act for `cred`; without `acts_for_callers` only its umask applies.
    ///
    /// # Errors
    /// `EPERM`: the kernel refuses this identity (an id that is not mapped into its namespace).
    ///
    /// # Cost
    /// No system call if the caller is the server's own user with the umask of the previous call; else up to eight.
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
        // From here on the guard restores the identity, also after a failure.
        acting.restore = Some(Restore { uid, gid, rights });
        sys::set_fsgid(cred.gid);
        sys::set_fsuid(cred.uid);
        if sys::set_fsgid(cred.gid) != cred.gid || sys::set_fsuid(cred.uid) != cred.uid {
            return Err(Errno::NotPermitted);
        }
        if cred.uid != 0 {
            let effective = rights.effective.difference(DROPPED) | (rights.permitted & KEPT);
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
            // Restores rights that are in the permitted set, which the kernel always allows.
            let restored = rustix::thread::set_capabilities(None, rights);
            debug_assert!(restored.is_ok(), "rights within the permitted set are granted");
        }
        if let Some(ProcessUmask { previous, _guard }) = self.shared_umask.take() {
            rustix::process::umask(previous);
        }
    }
}

/// Sets the umask of the thread, or of the process if it is shared.
fn set_umask(umask: u32) -> Option<ProcessUmask> {
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
            let guard = PROCESS_UMASK.lock().unwrap_or_else(PoisonError::into_inner);
            Some(ProcessUmask { previous: set(), _guard: guard })
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

/// Drops the server's own supplementary groups, so that they do not count as the caller's. They stay dropped: a
/// thread that may act for callers passes permission checks without them.
fn drop_groups() -> Result<(), Errno> {
    if !GROUPS_DROPPED.get() {
        rustix::thread::set_thread_groups(&[]).map_err(errno)?;
        GROUPS_DROPPED.set(true);
    }
    Ok(())
}
