//! The system call without a safe wrapper: cloning a descriptor of a mount.
#![expect(unsafe_code, reason = "an ioctl that the libraries do not know")]

use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::io;
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};

/// `FUSE_DEV_IOC_CLONE`.
const CLONE: Opcode = opcode::read::<u32>(229, 0);

/// Makes `fresh`, a newly opened `/dev/fuse`, another descriptor of the mount that `device` serves.
pub(crate) fn join_device(fresh: impl AsFd, device: BorrowedFd<'_>) -> io::Result<()> {
    let number = u32::try_from(device.as_raw_fd()).map_err(|_| io::Errno::BADF)?;
    // SAFETY: the opcode is FUSE_DEV_IOC_CLONE, for which the kernel reads one u32 from the pointer and writes
    // nothing.
    let request = unsafe { Setter::<CLONE, u32>::new(number) };
    // SAFETY: as above; `fresh` is open during the call, and a descriptor of another type fails with ENOTTY.
    unsafe { ioctl(fresh, request) }
}
