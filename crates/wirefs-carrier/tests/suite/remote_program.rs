//! The program that ssh starts in these tests: passes its standard input and output to the test, and runs until the
//! test ends it.
//!
//! The test binary itself, started as `suite --exact remote_program::…`, so that no other program must be built.

use std::io::{IoSlice, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// The environment variable with the test's socket.
pub const SOCKET: &str = "WIREFS_CARRIER_FAR_END";

#[test]
fn hands_over_its_standard_streams_when_asked() {
    let Some(path) = std::env::var_os(SOCKET) else { return };
    let mut test = UnixStream::connect(path).unwrap();
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let streams = [input.as_fd(), output.as_fd()];
    let mut space = vec![std::mem::MaybeUninit::uninit(); 64];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&streams)));
    sendmsg(&test, &[IoSlice::new(b"!")], &mut control, SendFlags::empty()).unwrap();

    // From here on only the test holds them.
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
    rustix::stdio::dup2_stdin(&nothing).unwrap();
    rustix::stdio::dup2_stdout(&nothing).unwrap();
    let _end = test.read(&mut [0]);
}
