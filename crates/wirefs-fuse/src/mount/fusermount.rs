//! `fusermount3`, the setuid helper through which an ordinary user mounts.

use super::{MountError, MountOptions};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg,
    socketpair,
};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = "fusermount3";

/// The variable that names the helper's socket for returning the descriptor. The socket is its standard input.
const SOCKET_VARIABLE: &str = "_FUSE_COMMFD";
const SOCKET_NUMBER: &str = "0";

/// Mounts through the helper and receives the descriptor.
pub(super) fn mount(mountpoint: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let failed = |error: io::Error| MountError::Helper { message: error.to_string() };
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| failed(errno.into()))?;
    let child = Command::new(PROGRAM)
        .arg("-o")
        .arg(options.for_helper())
        .arg("--")
        .arg(mountpoint)
        .env(SOCKET_VARIABLE, SOCKET_NUMBER)
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => MountError::NoHelper,
            _ => failed(error),
        })?;
    // Ends with the helper at the latest, which holds the other end of the socket.
    let received = receive_descriptor(&ours);
    let output = child.wait_with_output();
    match received {
        Ok(Some(device)) => Ok(device),
        Ok(None) => {
            let output = output.map(|output| output.stderr).unwrap_or_default();
            Err(MountError::from_helper(&String::from_utf8_lossy(&output), mountpoint))
        }
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Receives one message with one descriptor, or the end of the stream.
fn receive_descriptor(socket: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
            Ok(_) => break,
        }
    }
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(descriptor)
}

/// Unmounts through the helper.
///
/// # Errors
/// `NotFound` if it is not installed; else its message.
pub(crate) fn unmount(mountpoint: &Path, lazy: bool) -> io::Result<()> {
    let mut arguments: Vec<OsString> = vec!["-u".into()];
    if lazy {
        arguments.push("-z".into());
    }
    arguments.push("--".into());
    let output = Command::new(PROGRAM)
        .args(arguments.iter().map(OsString::as_os_str).chain([OsStr::new(mountpoint)]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(output.trim().trim_start_matches("fusermount3:").trim().to_owned()))
}
