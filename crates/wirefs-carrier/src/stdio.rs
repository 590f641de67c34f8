//! The remote end of ssh: frames over standard input and output.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};

use crate::carrier::{Carrier, PeerInfo};
use crate::closer::Closer;
use crate::stream::{Stream, StreamSink, StreamSource, Wake, shut};

/// The first bytes on standard output. The client skips output of login scripts before them. The NUL distinguishes them
/// from any text.
pub(crate) const GREETING: &[u8] = b"\0wirefs-stdio-1\n";

/// The requested size of pipes, in bytes.
const PIPE_BYTES: usize = 1024 * 1024;

/// Makes carriers of inherited file descriptors.
#[derive(Clone, Copy, Debug)]
pub struct Stdio;

impl Stdio {
    /// Takes over this process's standard input and output, for `wirefs serve --stdio`. From then on no other code can
    /// disturb the stream: standard input is empty, and output goes to standard error.
    ///
    /// # Errors
    /// Fails if they are closed, or the peer has ended.
    pub fn from_std() -> io::Result<Carrier> {
        let input = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
        let output = rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?;
        let nothing = OpenOptions::new().read(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
        Self::from_fds(input, output)
    }

    /// Takes over two descriptors, pipes or sockets, and sends the greeting.
    ///
    /// # Errors
    /// Fails if the peer has ended.
    pub fn from_fds(input: OwnedFd, output: OwnedFd) -> io::Result<Carrier> {
        send_greeting(&output)?;
        let wake = Arc::new(Wake::new()?);
        let (input, output) = (Arc::new(input), Arc::new(output));
        let closer = Closer::new({
            let (input, output, wake) = (Arc::clone(&input), Arc::clone(&output), Arc::clone(&wake));
            move || {
                wake.set();
                // No effect on a pipe; its peer sees the end when the last owner drops it.
                shut(&input);
                shut(&output);
            }
        });
        let source = StreamSource::new(stream(input, &wake)?, closer.clone());
        let sink = stream(output, &wake)?;
        if let Stream::Pipe(output, _) = &sink {
            fcntl_setfl(output, fcntl_getfl(output)? | OFlags::NONBLOCK)?;
        }
        Ok(Carrier {
            source: Box::new(source),
            sink: Box::new(StreamSink::new(sink, closer.clone())),
            closer,
            peer: PeerInfo::plain("stdio", "standard input and output"),
        })
    }
}

fn stream(fd: Arc<OwnedFd>, wake: &Arc<Wake>) -> io::Result<Stream> {
    // sshd uses sockets on some systems and pipes on others.
    if FileType::from_raw_mode(fstat(&fd)?.st_mode) == FileType::Socket {
        return Ok(Stream::Socket(fd));
    }
    // A smaller pipe only needs more system calls; other descriptors have no size.
    let _size = rustix::pipe::fcntl_setpipe_size(&fd, PIPE_BYTES);
    Ok(Stream::Pipe(fd, Arc::clone(wake)))
}

fn send_greeting(output: &OwnedFd) -> io::Result<()> {
    let mut rest = GREETING;
    while !rest.is_empty() {
        let count = rustix::io::retry_on_intr(|| rustix::io::write(output, rest))?;
        rest = rest.get(count..).unwrap_or_default();
    }
    Ok(())
}
