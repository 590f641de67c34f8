//! `wirefs reconnect`, in the process of the mount.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::RecvFlags;
use wirefs_carrier::ssh::PromptRoute;
use wirefs_client::LinkState;

use super::{Host, send_reply};
use crate::control::ControlReply;

/// The interval of checks that the client is still there.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The answer for mounts whose connection asks nothing.
const WITHOUT_QUESTIONS: &str = "it is not a mount of a wirefs over ssh, so it connects again by itself, without \
    questions. A mount over SFTP then needs a key or an agent; if only a password works, unmount it and mount it again";

/// Dials, and lets ssh ask at a socket. The client's end ends the dial.
pub(super) fn run(writer: &mut UnixStream, host: &Host, socket: PathBuf) -> io::Result<()> {
    let failed = |message: &str| ControlReply::Failed { message: message.to_owned() };
    let Some(prompts) = host.mount.prompts() else {
        return send_reply(writer, &failed(WITHOUT_QUESTIONS));
    };
    let settled = || {
        if host.constants.line.as_ref().is_some_and(|line| line.limits.is_paused()) {
            return Some(failed("it is paused; `wirefs resume` connects it"));
        }
        matches!(host.mount.status().snapshot.link, LinkState::Up(_)).then_some(ControlReply::Done)
    };
    if let Some(reply) = settled() {
        return send_reply(writer, &reply);
    }
    // The running program, even if its file was replaced meanwhile.
    let program = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let dial = prompts.request(PromptRoute { program, socket });
    host.mount.connect_now();
    loop {
        match dial.wait(CHECK_INTERVAL) {
            Some(Ok(())) => return send_reply(writer, &ControlReply::Done),
            Some(Err(message)) => return send_reply(writer, &failed(&message)),
            None if is_closed(writer) => return Err(io::ErrorKind::BrokenPipe.into()),
            // A dial without questions can succeed meanwhile, and a pause can prevent this one.
            None => {
                if let Some(reply) = settled() {
                    return send_reply(writer, &reply);
                }
            }
        }
    }
}

/// Returns whether the other side has closed a socket.
fn is_closed(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let mut byte = [0_u8];
    match rustix::net::recv(stream, &mut byte, flags) {
        Ok((_, count)) => count == 0,
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => false,
        Err(_) => true,
    }
}
