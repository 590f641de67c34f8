//! The client side of a TLS carrier.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;

use super::cipher::{Incoming, Outgoing};
use super::config;
use super::handshake::{self, HandshakeError};
use super::identity::Identity;
use super::key::PublicKey;
use super::known_hosts::{KnownHost, KnownHosts};
use super::session::Session;
use super::shared::Established;
use super::verify::PinVerifier;
use crate::address::HostPort;
use crate::carrier::{Carrier, PeerInfo};
use crate::dial::{Dial, DialError, connect};
use crate::lost::CarrierLost;

/// Dials TLS: proves our identity, and verifies the server's key. A new server is pinned (trust on first use); then
/// [`PeerInfo::pinned_in`] names the file, for a message to the user.
#[derive(Clone, Debug)]
pub struct TlsDial {
    host: HostPort,
    identity: Arc<Identity>,
    known: KeySource,
    timeout: Duration,
}

/// The source of the server's expected key.
#[derive(Clone, Debug)]
enum KeySource {
    /// A file, which records the key at the first connection.
    File(KnownHosts),
    /// The caller.
    Key(PublicKey),
}

impl TlsDial {
    /// Returns a dialer of `host` as `identity`, with one timeout for connection and handshake.
    pub fn new(host: HostPort, identity: Arc<Identity>, known_hosts: KnownHosts, timeout: Duration) -> Self {
        Self { host, identity, known: KeySource::File(known_hosts), timeout }
    }

    /// Returns a dialer of `host`, which must have this key; pins nothing.
    pub fn expecting(host: HostPort, identity: Arc<Identity>, key: PublicKey, timeout: Duration) -> Self {
        Self { host, identity, known: KeySource::Key(key), timeout }
    }

    fn connect(&self, awaits_greeting: bool) -> Result<Carrier, DialError> {
        let deadline = Instant::now() + self.timeout;
        let host = self.host.to_string();
        let known = match &self.known {
            KeySource::File(known_hosts) => known_hosts.find(&host)?,
            KeySource::Key(key) => Some(KnownHost { key: *key, line: 0, is_trusted: false }),
        };
        let verifier = Arc::new(PinVerifier::new(known.as_ref().map(|known| known.key)));

        let socket = connect(&self.host, deadline)?.into();
        let mut session = self.session(&verifier)?;
        let (mut incoming, mut outgoing) = (Incoming::default(), Outgoing::default());
        let trailing = handshake::run(&socket, &mut session, &mut incoming, &mut outgoing, deadline)
            .map_err(|error| self.explain(error, known.as_ref(), &verifier))?;

        let identity = session.peer_key();
        let mut peer = PeerInfo { identity, ..PeerInfo::plain("tcp+tls", format!("tls://{host}")) };
        if let (None, Some(key), KeySource::File(known_hosts)) = (&known, identity, &self.known) {
            match known_hosts.pin(&host, key)? {
                Some(known) if known.key != key => return Err(self.key_changed(&known, &verifier)),
                Some(_) => {}
                None => peer.pinned_in = Some(known_hosts.path().to_owned()),
            }
        }
        let established =
            Established { socket, session, incoming, outgoing, trailing, own_line: self.identity.line() };
        let mut parts = established.split(true);
        if awaits_greeting {
            match parts.source.await_greeting(deadline) {
                Ok(true) => {}
                Ok(false) => return Err(DialError::Silent { address: host }),
                Err(CarrierLost::Refused { line }) => return Err(DialError::Refused { line }),
                Err(lost) => return Err(DialError::Handshake { address: host, error: lost.to_string() }),
            }
        }
        Ok(parts.into_carrier(peer))
    }

    fn session(&self, verifier: &Arc<PinVerifier>) -> Result<Session, DialError> {
        let fail = |error: rustls::Error| DialError::Handshake {
            address: self.host.to_string(),
            error: error.to_string(),
        };
        let config = config::client(&self.identity, Arc::clone(verifier)).map_err(fail)?;
        // Neither sent nor compared: the key identifies the server.
        let name = ServerName::try_from("wirefs")
            .map_err(|error| fail(rustls::Error::General(error.to_string())))?;
        let connection = UnbufferedClientConnection::new(Arc::new(config), name).map_err(fail)?;
        Ok(Session::client(connection))
    }

    fn explain(&self, error: HandshakeError, known: Option<&KnownHost>, verifier: &PinVerifier) -> DialError {
        if let Some(known) = known.filter(|known| verifier.shown().is_some_and(|shown| shown != known.key)) {
            return self.key_changed(known, verifier);
        }
        let address = self.host.to_string();
        match error {
            HandshakeError::Silent => DialError::Silent { address },
            HandshakeError::Closed => {
                DialError::Handshake { address, error: "it closed the connection".into() }
            }
            HandshakeError::Io(error) => DialError::Connect { address, error },
            HandshakeError::Tls(error) => DialError::Handshake { address, error: error.to_string() },
        }
    }

    fn key_changed(&self, known: &KnownHost, verifier: &PinVerifier) -> DialError {
        let KeySource::File(known_hosts) = &self.known else {
            let error = "its key is not that of the node that is expected there".to_owned();
            return DialError::Handshake { address: self.host.to_string(), error };
        };
        DialError::HostKeyChanged {
            host: self.host.to_string(),
            known: known.key.fingerprint(),
            shown: verifier.shown().unwrap_or(known.key).fingerprint(),
            file: known_hosts.path().to_owned(),
            line: known.line,
        }
    }
}

impl Dial for TlsDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        self.connect(true)
    }

    fn dial_again(&self) -> Result<Carrier, DialError> {
        self.connect(false)
    }
}
