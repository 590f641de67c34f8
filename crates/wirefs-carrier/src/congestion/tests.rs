use super::*;
use crate::carrier::SendProgress;
use crate::socket::connect_tcp;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use wirefs_op::message::ping::Tping;
use wirefs_op::{NOTAG, Request};

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    prepare(&listener);
    let near = connect_tcp(&listener.local_addr().unwrap(), Duration::from_secs(60)).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Returns the congestion control before and after the send buffer first fills.
fn expected() -> (String, String) {
    let fresh = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    let choice = tcp_congestion(&fresh).unwrap();
    (if choice.starts_with("bbr") { UNPACED.into() } else { choice.clone() }, choice)
}

#[test]
fn both_ends_start_without_pacing_if_the_default_paces() {
    let (near, far) = pair();
    let (begins, _) = expected();
    assert_eq!(tcp_congestion(&near).unwrap(), begins);
    assert_eq!(tcp_congestion(&far).unwrap(), begins);
}

#[test]
fn full_send_buffer_restores_the_default() {
    let (near, _far) = pair();
    let watched = near.try_clone().unwrap();
    let (begins, choice) = expected();
    let mut carrier = crate::stream::over_socket(near.into(), crate::PeerInfo::plain("tcp+plain", "here"));
    assert_eq!(tcp_congestion(&watched).unwrap(), begins);
    let mut queue = std::collections::VecDeque::new();
    while {
        queue.extend((0..1000).map(|_| Request::Ping(Tping {}).encode(NOTAG)));
        carrier.sink.send(&mut queue).unwrap() != SendProgress::Blocked
    } {}
    assert_eq!(tcp_congestion(&watched).unwrap(), choice);
}

#[test]
fn closed_port_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let refused = connect_tcp(&address, Duration::from_secs(60)).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}
