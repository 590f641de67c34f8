//! What the kernel says of a TCP connection: what keeps it from sending more.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::sys;

/// Looks at one TCP connection.
#[derive(Clone, Debug)]
pub struct Gauge {
    socket: Arc<OwnedFd>,
}

/// What a TCP connection has come to since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendTimes {
    /// How long there was something to send, or something sent that was not acknowledged.
    pub busy: Duration,
    /// How much of that the socket buffers held it up: the peer's, which take no more, or its own, from which all is under way.
    pub limited: Duration,
    /// The least round trip.
    pub rtt_min: Duration,
}

impl Gauge {
    pub(crate) fn new(socket: Arc<OwnedFd>) -> Gauge {
        Gauge { socket }
    }

    /// Looks; `None` where it is no TCP connection, or the kernel does not say.
    ///
    /// # Cost
    /// One system call.
    pub fn look(&self) -> Option<SendTimes> {
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
        let times = Gauge::new(Arc::new(near.into())).look().unwrap();
        assert!(times.limited <= times.busy);
        let (near, _far) = UnixStream::pair().unwrap();
        assert_eq!(Gauge::new(Arc::new(near.into())).look(), None);
    }

    #[test]
    fn peer_that_takes_nothing_is_told_as_a_limit() {
        use std::io::Write as _;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _far = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        // Until both buffers are full, and for as long as it takes the kernel to count that.
        while near.write(&[0; 65536]).is_ok() {}
        let gauge = Gauge::new(Arc::new(near.into()));
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while gauge.look().unwrap().limited.is_zero() {
            assert!(std::time::Instant::now() < until, "{:?}", gauge.look());
            std::thread::yield_now();
        }
        let times = gauge.look().unwrap();
        assert!(times.limited <= times.busy, "{times:?}");
    }
}
