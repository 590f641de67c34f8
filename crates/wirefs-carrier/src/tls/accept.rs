//! The server side of a TLS carrier.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustls::server::UnbufferedServerConnection;

use super::authorized::{ALLOW_HINT, AuthorizedError, AuthorizedKeys};
use super::cipher::{Incoming, Outgoing};
use super::config;
use super::handshake::{self, HandshakeError};
use super::identity::Identity;
use super::seal::Raw;
use super::session::Session;
use super::shared::Established;
use super::verify::AuthorizedVerifier;
use crate::carrier::{Carrier, PeerInfo};
use crate::listen::AcceptError;

/// The server's first byte: the client is accepted.
const GREETING: &[u8] = b"W";

/// Accepts clients whose keys are authorized.
#[derive(Debug)]
pub(crate) struct TlsAcceptor {
    identity: Arc<Identity>,
    authorized: PathBuf,
}

impl TlsAcceptor {
    /// A missing authorized-keys file is no error yet: it may be created before the first client.
    pub(crate) fn new(identity: &Arc<Identity>, authorized: &Path) -> Result<Self, AuthorizedError> {
        match AuthorizedKeys::read(authorized) {
            Err(error) if !error.is_missing => Err(error),
            Ok(_) | Err(_) => Ok(Self { identity: Arc::clone(identity), authorized: authorized.to_owned() }),
        }
    }

    /// Returns warnings about the authorized keys, for the administrator.
    pub(crate) fn warnings(&self) -> Vec<String> {
        match AuthorizedKeys::read(&self.authorized) {
            Ok(keys) if keys.is_empty() => vec![format!(
                "{} lists no key, so no client may connect; {ALLOW_HINT}",
                self.authorized.display()
            )],
            Ok(keys) => keys.broken().iter().map(ToString::to_string).collect(),
            Err(error) => vec![error.to_string()],
        }
    }

    /// Does the handshake with one client. An unauthorized client gets a TLS alert.
    pub(crate) fn accept(
        &self,
        tcp: TcpStream,
        peer: String,
        deadline: Instant,
    ) -> Result<Carrier, AcceptError> {
        let fail_tls =
            |error: rustls::Error| AcceptError::Handshake { peer: peer.clone(), error: error.to_string() };
        // Read for each connection, so that a new key takes effect at once.
        let verifier =
            Arc::new(AuthorizedVerifier::new(AuthorizedKeys::read(&self.authorized), peer.clone()));
        let config = config::server(&self.identity, Arc::clone(&verifier)).map_err(fail_tls)?;
        let connection = UnbufferedServerConnection::new(Arc::new(config)).map_err(fail_tls)?;

        let socket = tcp.into();
        let mut session = Session::server(connection);
        let (mut incoming, mut outgoing) = (Incoming::default(), Outgoing::default());
        let done = handshake::run(&socket, &mut session, &mut incoming, &mut outgoing, deadline).and_then(
            |trailing| {
                session
                    .seal(&mut Raw(GREETING), incoming.filled(), &mut outgoing)
                    .map_err(HandshakeError::Tls)?;
                handshake::send(&socket, &mut outgoing, deadline)?;
                Ok(trailing)
            },
        );
        let trailing = match done {
            Ok(trailing) => trailing,
            Err(error) => return Err(self.explain(error, peer, verifier)),
        };
        let info = PeerInfo { identity: session.peer_key(), ..PeerInfo::plain("tcp+tls", peer) };
        let established =
            Established { socket, session, incoming, outgoing, trailing, own_line: String::new() };
        Ok(established.split(false).into_carrier(info))
    }

    fn explain(&self, error: HandshakeError, peer: String, verifier: Arc<AuthorizedVerifier>) -> AcceptError {
        use rustls::AlertDescription as Alert;
        if let Some(key) = verifier.refused() {
            return match verifier.authorized() {
                Ok(keys) => AcceptError::UnknownKey {
                    is_listed: keys.contains(&key),
                    line: key.line(&peer),
                    peer,
                    file: self.authorized.clone(),
                    broken: keys.broken().iter().map(ToString::to_string).collect(),
                },
                Err(error) => AcceptError::Unusable { peer, line: key.line(""), error: error.to_string() },
            };
        }
        match error {
            HandshakeError::Silent => AcceptError::Silent { peer },
            HandshakeError::Closed => {
                AcceptError::Handshake { peer, error: "it closed the connection".into() }
            }
            HandshakeError::Io(error) => AcceptError::Handshake { peer, error: error.to_string() },
            HandshakeError::Tls(rustls::Error::AlertReceived(Alert::AccessDenied)) => {
                AcceptError::NotTrusted { peer }
            }
            HandshakeError::Tls(error) => AcceptError::Handshake { peer, error: error.to_string() },
        }
    }
}
