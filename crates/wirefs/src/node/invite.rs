//! `wirefs node invite`, and `wirefs node up --join`.

use std::io::{BufRead, IsTerminal, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, Result};
use wirefs_carrier::tls::{Identity, PublicKey};
use wirefs_node::invitation::{Introduction, InvitationCode};
use wirefs_node::limits::INVITATION_TIME;
use wirefs_node::{NodeKey, NodeName};
use wirefs_nodehost::{
    INVITATION_PORT_DEFAULT, InviteEnd, Inviter, InviterPlace, JoinFailure, join, random_code,
};

use super::up::machine_name;
use crate::arguments::{JoinCode, JoinPlace, NodeInvite, NodeUp};
use crate::failure::{failure, print_error};
use crate::keys;
use crate::terminal::{note, say};
use crate::user_dirs;

/// The longest line that is read as a code, in bytes.
const LINE_BYTES_MAX: u64 = 512;

/// Invites one machine.
pub(super) fn run(arguments: &NodeInvite) -> Result<()> {
    let default_address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, INVITATION_PORT_DEFAULT));
    let listen = arguments.listen.unwrap_or(default_address);
    let name = arguments.name.clone().map_or_else(machine_name, Ok)?;
    let own = introduction(name)?;
    let inviter = Inviter::open(listen).map_err(|error| failure(error, "see `wirefs node invite --help`"))?;
    let code = random_code().context("cannot make a code")?;
    note!(
        "{}\nwhoever has the code may join; it is good once. Ctrl-C takes it back. The code is:",
        instructions(&code, SocketAddr::new(listen.ip(), inviter.port()))
    );
    say!("{code}");
    let store = |guest: &Introduction| {
        authorize(guest, arguments.authorized.as_deref()).inspect_err(print_error).is_ok()
    };
    let guest = inviter.run(code, own, store).map_err(explain_end)?;
    say!("{}", admitted(&guest));
    if !super::is_local() {
        note!("this user runs no node here yet: start it with `wirefs node up`");
    }
    Ok(())
}

/// Returns the commands for the other machine. One without a host finds the invitation only by a query of the segment,
/// which is sent over IPv4 to the default port.
fn instructions(code: &InvitationCode, listen: SocketAddr) -> String {
    let minutes = INVITATION_TIME.as_secs() / 60;
    let port = match listen.port() {
        INVITATION_PORT_DEFAULT => String::new(),
        port => format!(":{port}"),
    };
    let with_host = format!("wirefs node up --join {code}@HOST{port}, with this machine's address as HOST");
    let is_on_segment = port.is_empty() && listen.is_ipv4() && !listen.ip().is_loopback();
    match is_on_segment {
        true => format!(
            "on the other machine, run within {minutes} minutes: wirefs node up --join {code}\n\
             from another network: {with_host}"
        ),
        false => format!("on the other machine, run within {minutes} minutes: {with_host}"),
    }
}

fn explain_end(end: InviteEnd) -> anyhow::Error {
    failure(end, "run `wirefs node invite` again for a new code")
}

/// Exchanges keys with the inviting machine, and authorizes its key.
///
/// # Errors
/// This machine is not admitted, or this user runs a node already.
pub(super) fn accept(arguments: &NodeUp, place: &JoinPlace) -> Result<()> {
    if super::is_local() {
        return Err(failure(
            "this user already runs a node on this machine",
            "stop it with `wirefs node down`, then join again",
        ));
    }
    let JoinCode { code, host } = match place {
        JoinPlace::Typed(code) => code.clone(),
        JoinPlace::FromInput => read_code()?,
    };
    let place = match host {
        Some((host, port)) => InviterPlace::Host(host, port),
        None => InviterPlace::Segment(arguments.nic.clone()),
    };
    let name = arguments.name.clone().map_or_else(machine_name, Ok)?;
    let inviter = join(&code, &introduction(name)?, &place).map_err(explain_refusal)?;
    authorize(&inviter, arguments.authorized.as_deref())?;
    note!("wirefs: {}", admitted(&inviter));
    Ok(())
}

fn explain_refusal(failed: JoinFailure) -> anyhow::Error {
    let next = match &failed {
        JoinFailure::NoOffer => {
            "check the code; in another network write CODE@HOST, with the address of the inviting machine"
        }
        JoinFailure::Unreachable { .. } => {
            "check the address and the firewall: an invitation listens on TCP port 6443 unless it names another"
        }
        JoinFailure::WrongCode => "check the code; after three wrong ones the invitation is over",
        JoinFailure::Segment(_) => "see `wirefs node up --help`",
        JoinFailure::Broken(_)
        | JoinFailure::Over
        | JoinFailure::NotStored
        | JoinFailure::NotInviter
        | JoinFailure::Malformed => "run `wirefs node invite` there again for a new code",
    };
    failure(failed, next)
}

/// Reads a code from standard input, so that it is in no list of processes.
fn read_code() -> Result<JoinCode> {
    if std::io::stdin().is_terminal() {
        note!("the code that `wirefs node invite` printed:");
    }
    let mut line = String::new();
    let input = std::io::stdin().lock();
    input.take(LINE_BYTES_MAX).read_line(&mut line).context("cannot read the code")?;
    JoinCode::parse(line.trim()).map_err(|error| failure(error, "run `wirefs node up --join -` again"))
}

/// Returns how this machine introduces itself.
fn introduction(name: NodeName) -> Result<Introduction> {
    let identity = Identity::open(&user_dirs::config_dir()?)?;
    Ok(Introduction { key: NodeKey(*identity.public_key().raw()), name })
}

fn authorize(other: &Introduction, file: Option<&Path>) -> Result<()> {
    keys::add(file, PublicKey::from_raw(other.key.0), other.name.as_str())
}

fn admitted(other: &Introduction) -> String {
    let key = PublicKey::from_raw(other.key.0).fingerprint();
    format!("{} may join from now on; its key is {key}", other.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_without_host_is_printed_only_where_a_query_finds_the_invitation() {
        let code = InvitationCode::parse("k7-4fm-q2x").unwrap();
        let printed = |listen: &str| instructions(&code, listen.parse().unwrap());
        for listen in ["0.0.0.0:6443", "192.0.2.1:6443"] {
            let text = printed(listen);
            assert!(
                text.contains("--join k7-4fm-q2x\n") && text.contains("--join k7-4fm-q2x@HOST,"),
                "{text}"
            );
        }
        for (listen, place) in
            [("0.0.0.0:7000", "@HOST:7000,"), ("127.0.0.1:6443", "@HOST,"), ("[::]:6443", "@HOST,")]
        {
            let text = printed(listen);
            assert!(!text.contains("--join k7-4fm-q2x\n") && text.contains(place), "{text}");
            assert_eq!(text.lines().count(), 1, "{text}");
        }
    }
}
