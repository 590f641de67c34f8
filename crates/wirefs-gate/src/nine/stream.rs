//! A connected socket, of either kind.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

/// A connection. Clones are the same socket.
#[derive(Debug)]
pub(super) enum NineStream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl NineStream {
    pub(super) fn try_clone(&self) -> io::Result<NineStream> {
        match self {
            NineStream::Unix(stream) => stream.try_clone().map(NineStream::Unix),
            NineStream::Tcp(stream) => stream.try_clone().map(NineStream::Tcp),
        }
    }

    /// Ends it for both sides, also for threads that read or write it.
    pub(super) fn close(&self) {
        // Closed already, perhaps.
        let _gone = match self {
            NineStream::Unix(stream) => stream.shutdown(Shutdown::Both),
            NineStream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for NineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            NineStream::Unix(stream) => stream.read(buffer),
            NineStream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for NineStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            NineStream::Unix(stream) => stream.write(buffer),
            NineStream::Tcp(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
