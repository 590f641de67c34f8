//! The kernel's statistics of a TCP connection: what limits its send rate.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::sys;

/// Reads the statistics of one TCP connection.
#[derive(Clone, Debug)]
pub struct Gauge {
    socket: Arc<OwnedFd>,
}

/// Send statistics of a TCP connection since its start (`tcp_info`, linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendTimes {
    /// Time with unsent or unacknowledged data (`tcpi_busy_time`).
    pub busy: Duration,
    /// The part of it that was limited by buffers: the peer's receive window or the local send buffer.
    pub limited: Duration,
    /// The minimum RTT.
    pub rtt_min: Duration,
}

impl Gauge {
    pub(crate) fn new(socket: Arc<OwnedFd>) -> Gauge {
        Gauge { socket }
    }

    /// Reads the statistics; `None` if the socket is not TCP, or the kernel does not provide them.
    ///
    /// # Cost
    /// One system call.
    pub fn sample(&self) -> Option<SendTimes> {
        sys::tcp_send_times(&self.socket).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_tcp_connections_are_gauged() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let times = Gauge::new(Arc::new(near.into())).sample().unwrap();
        assert!(times.limited <= times.busy);
        let (near, _far) = UnixStream::pair().unwrap();
        assert_eq!(Gauge::new(Arc::new(near.into())).sample(), None);
    }

    #[test]
    fn peer_that_reads_nothing_counts_as_limited() {
        use std::io::Write as _;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _far = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        // Until both buffers are full, and for as long as the kernel takes to count that.
        while near.write(&[0; 65536]).is_ok() {}
        let gauge = Gauge::new(Arc::new(near.into()));
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while gauge.sample().unwrap().limited.is_zero() {
            assert!(std::time::Instant::now() < until, "{:?}", gauge.sample());
            std::thread::yield_now();
        }
        let times = gauge.sample().unwrap();
        assert!(times.limited <= times.busy, "{times:?}");
    }
}
