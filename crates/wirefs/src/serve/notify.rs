//! Messages to the service manager (`sd_notify(3)`): a unit of `Type=notify` is started once the server accepts clients.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The environment variable with the manager's socket.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Says that clients can connect. Without a service manager nothing is sent.
pub(super) fn ready() {
    send("READY=1");
}

/// Says that the configuration is read again; [`ready`] follows.
pub(super) fn reloading() {
    send("RELOADING=1");
}

/// Says that the server ends.
pub(super) fn stopping() {
    send("STOPPING=1");
}

fn send(state: &str) {
    if let Some(name) = std::env::var_os(SOCKET_VARIABLE) {
        // A manager that is gone needs no message.
        let _gone = send_to(name, state);
    }
}

fn send_to(name: OsString, state: &str) -> std::io::Result<()> {
    // Systemd writes an abstract name with `@`.
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}
