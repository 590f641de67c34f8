//! Listening: private, stale and busy sockets, and closing.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use wirefs_carrier::{AcceptError, Address, Dial, DialError, ListenError, ListenOptions, Listener, UnixDial};

use crate::scratch::Scratch;
use crate::testbeds::{TcpPlain, Testbed, exists};

fn bind(address: &Address) -> Result<Listener, ListenError> {
    Listener::bind(address, &ListenOptions::default())
}

#[test]
fn unix_socket_is_private_and_removed_with_its_listener() {
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let listener = bind(&Address::Unix(path.clone())).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(listener);
    assert!(!exists(&path));
}

#[test]
fn stale_socket_is_replaced_and_busy_one_is_not() {
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let address = Address::Unix(path.clone());
    // Dropping a plain listener leaves its file, as a killed server does.
    drop(UnixListener::bind(&path).unwrap());
    let first = bind(&address).unwrap();
    let error = bind(&address).unwrap_err();
    assert!(matches!(error, ListenError::Busy { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(exists(&path), "the first server keeps its socket");
    drop(first);
}

#[test]
fn listener_with_a_full_backlog_is_busy_not_stale() {
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let hung = bind(&Address::Unix(path.clone())).unwrap();
    // Fills its backlog: the next connection would wait.
    let mut waiting = Vec::new();
    while let Ok(socket) = nonblocking_connect(&path) {
        waiting.push(socket);
    }
    let error = bind(&Address::Unix(path.clone())).unwrap_err();
    assert!(matches!(error, ListenError::Busy { .. }), "{error}");
    drop(hung);
}

fn nonblocking_connect(path: &std::path::Path) -> rustix::io::Result<std::os::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?).map(|()| socket)
}

#[test]
fn socket_of_a_later_server_is_not_removed() {
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let first = bind(&Address::Unix(path.clone())).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _second = bind(&Address::Unix(path.clone())).unwrap();
    drop(first);
    assert!(exists(&path));
}

#[test]
fn file_that_is_no_socket_is_never_removed() {
    let scratch = Scratch::new();
    let path = scratch.join("notes.txt");
    std::fs::write(&path, "keep").unwrap();
    let error = bind(&Address::Unix(path.clone())).unwrap_err();
    assert!(matches!(error, ListenError::NotASocket { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "keep");
    let long = scratch.join(&"x".repeat(120));
    assert!(matches!(bind(&Address::Unix(long)), Err(ListenError::PathTooLong { .. })));
}

#[test]
fn busy_port_is_reported_with_the_next_step() {
    let testbed = TcpPlain::new();
    let host = testbed.address();
    let error = bind(&Address::TcpPlain(host.clone())).unwrap_err().to_string();
    assert!(error.contains(&host.to_string()) && error.contains("--listen"), "{error}");
    drop(testbed.connect());
}

#[test]
fn addresses_that_cannot_be_listened_on_are_explained() {
    let options = ListenOptions::default();
    for (address, expected) in [
        ("me@there:", "wirefs serve --stdio"),
        ("tls://127.0.0.1:0", "--authorized"),
        ("tcp+plain://192.0.2.1:6440", "is not an address of this machine"),
    ] {
        let error = Listener::bind(&address.parse().unwrap(), &options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn close_ends_accept_in_another_thread_permanently() {
    for address in ["tcp+plain://127.0.0.1:0", "unix:///"] {
        let scratch = Scratch::new();
        let address = match address.parse().unwrap() {
            Address::Unix(_) => Address::Unix(scratch.join("socket")),
            other => other,
        };
        let listener = bind(&address).unwrap();
        let closer = listener.closer();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| listener.accept());
            closer.close();
            assert!(matches!(waiting.join().unwrap(), Err(AcceptError::Closed)));
        });
        assert!(matches!(listener.accept(), Err(AcceptError::Closed)));
    }
}

#[test]
fn dialing_a_closed_address_reports_the_next_step() {
    let scratch = Scratch::new();
    let error = UnixDial::new(scratch.join("none")).dial().unwrap_err();
    assert!(matches!(error, DialError::Connect { .. }));
    assert!(error.to_string().contains("wirefs serve"), "{error}");

    let free = TcpPlain::new().address();
    let error = wirefs_carrier::TcpDial::new(free, crate::traffic::PATIENCE).dial().unwrap_err().to_string();
    assert!(error.contains("wirefs serve"), "{error}");
}

#[test]
fn unspecified_ipv6_address_accepts_ipv4_connections_too() {
    let listener = bind(&"tcp+plain://[::]:0".parse().unwrap()).unwrap();
    let Address::TcpPlain(host) = listener.address().clone() else { panic!("another kind of address") };
    let _by_ipv4 = std::net::TcpStream::connect(("127.0.0.1", host.port)).unwrap();
    listener.accept().unwrap();
}
