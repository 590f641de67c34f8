//! The program that ssh starts in these tests: hands its standard input and output to the test, and stays until told.
//!
//! It is this very test binary, started again as `suite --exact far_end::…`, so that no other program must be built.

use std::io::{IoSlice, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Names the socket of the test that waits for us.
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

    // From here on the test alone holds them.
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
    rustix::stdio::dup2_stdin(&nothing).unwrap();
    rustix::stdio::dup2_stdout(&nothing).unwrap();
    let _end = test.read(&mut [0]);
}
