//! System calls without a safe wrapper: attaching a TAP device, real-time priority, range locks, code
//! between fork and exec, signals.

#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper in rustix; each block states why it is sound"
)]

use std::ffi::{c_int, c_short, c_void};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The bytes of a device name, including the terminating zero.
const NAME_BYTES: usize = libc::IFNAMSIZ;

/// The argument of TUNSETIFF: `struct ifreq` with its flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_BYTES],
    flags: c_short,
    rest: [u8; 22],
}

/// The TUNSETIFF request.
struct AttachTap(InterfaceRequest);

// SAFETY: TUNSETIFF reads and writes one `struct ifreq` (40 bytes on 64-bit Linux), which `InterfaceRequest` is laid
// out as; the output is ignored.
unsafe impl Ioctl for AttachTap {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        libc::TUNSETIFF as Opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

const _: () =
    assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>(), "the kernel copies a whole ifreq");

/// Turns an open `/dev/net/tun` into a TAP device `name` in the network namespace in which it was opened.
///
/// # Errors
/// The error of the kernel; `InvalidInput` if the name is longer than 15 bytes.
pub(crate) fn attach_tap(tun: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut padded = [0; NAME_BYTES];
    let room = padded.get_mut(..name.len()).filter(|room| room.len() < NAME_BYTES);
    room.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name.as_bytes());
    // Both flags are small positive constants.
    let flags = (libc::IFF_TAP | libc::IFF_NO_PI) as c_short;
    let request = InterfaceRequest { name: padded, flags, rest: [0; 22] };
    // SAFETY: `tun` is open for the whole call and `AttachTap` describes TUNSETIFF correctly (see there).
    unsafe { ioctl(tun, AttachTap(request)) }?;
    Ok(())
}

/// Requests of SIOCETHTOOL that switch a feature of a card (`linux/ethtool.h`); this one: TCP segmentation offload.
pub(crate) const SET_TSO: u32 = 0x1f;
/// Generic segmentation offload.
pub(crate) const SET_GSO: u32 = 0x24;
/// Generic receive offload.
pub(crate) const SET_GRO: u32 = 0x2c;
/// Scatter-gather.
pub(crate) const SET_SG: u32 = 0x19;
/// Transmit checksum offload.
pub(crate) const SET_TXCSUM: u32 = 0x17;
/// Receive checksum offload.
pub(crate) const SET_RXCSUM: u32 = 0x15;

/// `struct ethtool_value`.
#[repr(C)]
struct CardFeature {
    request: u32,
    value: u32,
}

/// Switches a feature of a network card on or off.
///
/// # Errors
/// The error of the kernel; `InvalidInput` if the name is longer than 15 bytes.
pub(crate) fn set_card_feature(socket: impl AsFd, name: &str, request: u32, is_on: bool) -> io::Result<()> {
    let mut feature = CardFeature { request, value: u32::from(is_on) };
    // SAFETY: `ifreq` is plain data for which all zeros is a value.
    let mut asked: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    // The last byte stays zero.
    if name.len() >= asked.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    asked.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
    asked.ifr_ifru.ifru_data = (&raw mut feature).cast();
    // SAFETY: the request and its target live through the call; for these requests the kernel reads the name and both
    // words of the feature, and writes nothing beyond them.
    let answer = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut asked) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives the calling thread a real-time priority, so that it wakes up on time.
///
/// # Errors
/// `PermissionDenied` without the privilege.
pub(crate) fn set_realtime_priority(priority: c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads `parameters`, which lives through the call; 0 names the calling thread.
    let answer = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Passes a lock of the calling process to `fcntl`, and returns it as the kernel left it.
///
/// # Errors
/// What the kernel says.
pub(crate) fn fcntl_range(file: impl AsFd, command: c_int, mut lock: libc::flock) -> io::Result<libc::flock> {
    // SAFETY: `F_SETLK`, `F_SETLKW` and `F_GETLK` read and write one `flock`, which lives through the call.
    let answer = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut lock) };
    if answer == 0 { Ok(lock) } else { Err(io::Error::last_os_error()) }
}

/// Makes `command` run in a network namespace; it shares mounts and files with the caller.
///
/// The command blocks no signals: with the inherited mask of [`EndSignals`] it could not be terminated.
pub(crate) fn run_in_namespace(command: &mut Command, namespace: Arc<File>) {
    let enter = move || {
        unblock_signals();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(io::Error::from)
    };
    // SAFETY: between fork and exec the closure makes two system calls on values that it owns; it neither allocates
    // nor locks.
    unsafe { command.pre_exec(enter) };
}

/// Unblocks all signals in `command`: with the inherited mask of [`EndSignals`] it could not be terminated.
pub fn run_without_blocked_signals(command: &mut Command) {
    let unblock = || {
        unblock_signals();
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes one system call; it neither allocates nor locks.
    unsafe { command.pre_exec(unblock) };
}

fn unblock_signals() {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` fills the set before it is used, and both functions may be called after a fork.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

/// The termination signals, blocked in this thread and in the threads that it starts.
pub struct EndSignals {
    set: libc::sigset_t,
}

impl EndSignals {
    /// Blocks SIGINT, SIGTERM and SIGHUP. Must be called before other threads start, which inherit the mask.
    ///
    /// # Errors
    /// The error of the system.
    pub fn block() -> io::Result<EndSignals> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` fills the set before it is used; the other calls only read or change that set and
        // this thread's mask.
        let (set, error) = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            (set.assume_init(), error)
        };
        if error == 0 { Ok(EndSignals { set }) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// Waits for one of the signals and returns its number.
    ///
    /// # Errors
    /// The error of the system.
    pub fn wait(&self) -> io::Result<i32> {
        let mut signal = 0;
        // SAFETY: both pointers are to values that live through the call.
        let error = unsafe { libc::sigwait(&raw const self.set, &raw mut signal) };
        if error == 0 { Ok(signal) } else { Err(io::Error::from_raw_os_error(error)) }
    }
}

/// Opens a new terminal. Returns its keys and screen, and the device for programs.
pub(crate) fn open_terminal() -> io::Result<(File, File)> {
    let mut options = std::fs::OpenOptions::new();
    // It must not become the terminal of this process.
    options.read(true).write(true).custom_flags(libc::O_NOCTTY);
    let master = options.open("/dev/ptmx")?;
    let (locked, mut number): (c_int, libc::c_uint) = (0, 0);
    // SAFETY: the request reads one integer, which lives through the call.
    let unlocked = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const locked) };
    // SAFETY: the request writes one integer, which lives through the call.
    let named = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    if unlocked < 0 || named < 0 {
        return Err(io::Error::last_os_error());
    }
    let device = options.open(format!("/dev/pts/{number}"))?;
    Ok((master, device))
}
