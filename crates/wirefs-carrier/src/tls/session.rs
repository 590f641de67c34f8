//! The state of one TLS connection, either side, without I/O.

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::CertificateDer;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus, WriteTraffic};

use super::cipher::{Incoming, Outgoing};
use super::key::PublicKey;
use super::seal::{self, Plaintext};

pub(super) struct Session {
    side: Side,
    /// The error that ended the session. rustls must not be called again then: it would process the same bytes again,
    /// and it asserts that it sends one fatal alert only.
    failed: Option<rustls::Error>,
}

enum Side {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
}

/// The result of one step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Progress; step again.
    Progress,
    /// Needs bytes of the peer; the handshake is not finished.
    Handshaking,
    /// Needs bytes of the peer; may send.
    Ready,
    /// The peer sent close_notify.
    PeerClosed,
}

impl Session {
    pub(super) fn client(connection: UnbufferedClientConnection) -> Self {
        Self { side: Side::Client(Box::new(connection)), failed: None }
    }

    pub(super) fn server(connection: UnbufferedServerConnection) -> Self {
        Self { side: Side::Server(Box::new(connection)), failed: None }
    }

    /// Processes `incoming` as far as possible: decrypted bytes go to `plain`, messages to send (after an error: the
    /// alert) to `outgoing`.
    pub(super) fn step(
        &mut self,
        incoming: &mut Incoming,
        outgoing: &mut Outgoing,
        plain: &mut dyn FnMut(&[u8]),
    ) -> Result<Step, rustls::Error> {
        self.check()?;
        let (discard, step) = self.side.step(incoming.filled(), outgoing, plain);
        incoming.discard(discard);
        if let Err(error) = &step {
            self.failed = Some(error.clone());
            // Only the alert is queued: earlier messages were taken in earlier steps.
            let _alert = self.side.step(incoming.filled(), outgoing, &mut |_| {});
        }
        step
    }

    /// Encrypts one batch of `plaintext`. `leftover` is a copy of the bytes that the last [`step`](Self::step) did not
    /// process: rustls may hold the beginning of a handshake message as offsets into them, and panics without them.
    pub(super) fn seal(
        &mut self,
        plaintext: &mut dyn Plaintext,
        leftover: &mut [u8],
        outgoing: &mut Outgoing,
    ) -> Result<Step, rustls::Error> {
        self.check()?;
        loop {
            match self.side.seal(plaintext, leftover, outgoing) {
                Ok(Step::Progress) => {}
                Ok(step) => return Ok(step),
                Err(error) => {
                    self.failed = Some(error.clone());
                    return Err(error);
                }
            }
        }
    }

    fn check(&self) -> Result<(), rustls::Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Returns the key that the peer has proved to own.
    pub(super) fn peer_key(&self) -> Option<PublicKey> {
        let certificates: &[CertificateDer<'_>] = match &self.side {
            Side::Client(client) => client.peer_certificates(),
            Side::Server(server) => server.peer_certificates(),
        }?;
        PublicKey::from_certificate(certificates.first()?)
    }
}

impl Side {
    fn step(
        &mut self,
        incoming: &mut [u8],
        outgoing: &mut Outgoing,
        plain: &mut dyn FnMut(&[u8]),
    ) -> (usize, Result<Step, rustls::Error>) {
        match self {
            Self::Client(client) => handle_status(client.process_tls_records(incoming), outgoing, plain),
            Self::Server(server) => handle_status(server.process_tls_records(incoming), outgoing, plain),
        }
    }

    fn seal(
        &mut self,
        plaintext: &mut dyn Plaintext,
        leftover: &mut [u8],
        outgoing: &mut Outgoing,
    ) -> Result<Step, rustls::Error> {
        match self {
            Self::Client(client) => seal_with(client.process_tls_records(leftover), plaintext, outgoing),
            Self::Server(server) => seal_with(server.process_tls_records(leftover), plaintext, outgoing),
        }
    }
}

/// Handles one status of rustls, of either side.
fn handle_status<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    outgoing: &mut Outgoing,
    plain: &mut dyn FnMut(&[u8]),
) -> (usize, Result<Step, rustls::Error>) {
    let mut discard = status.discard;
    let step = match status.state {
        Err(error) => Err(error),
        Ok(ConnectionState::ReadTraffic(mut traffic)) => {
            let mut result = Ok(Step::Progress);
            while let Some(record) = traffic.next_record() {
                match record {
                    Ok(record) => {
                        discard += record.discard;
                        plain(record.payload);
                    }
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            result
        }
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let mut room = 0;
            loop {
                match data.encode(outgoing.room(room)) {
                    Ok(count) => {
                        outgoing.took(count);
                        break Ok(Step::Progress);
                    }
                    Err(EncodeError::InsufficientSize(size)) if size.required_size > room => {
                        room = size.required_size
                    }
                    Err(error) => break Err(rustls::Error::General(error.to_string())),
                }
            }
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            // The data is in `outgoing`, which is sent in order before any data encrypted later.
            data.done();
            Ok(Step::Progress)
        }
        Ok(ConnectionState::BlockedHandshake) => Ok(Step::Handshaking),
        Ok(ConnectionState::WriteTraffic(_)) => Ok(Step::Ready),
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Ok(Step::PeerClosed),
        Ok(_) => Err(rustls::Error::General("early data was not offered".into())),
    };
    (discard, step)
}

fn seal_with<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    plaintext: &mut dyn Plaintext,
    outgoing: &mut Outgoing,
) -> Result<Step, rustls::Error> {
    match status {
        UnbufferedStatus { state: Ok(ConnectionState::WriteTraffic(mut traffic)), .. } => {
            let seal: &mut seal::SealRecord<'_> =
                &mut |record, outgoing| seal_record(&mut traffic, record, outgoing);
            plaintext.seal(seal, outgoing)?;
            Ok(Step::Ready)
        }
        other => handle_status(other, outgoing, &mut |_| {}).1,
    }
}

fn seal_record<Data>(
    traffic: &mut WriteTraffic<'_, Data>,
    record: Option<&[u8]>,
    outgoing: &mut Outgoing,
) -> Result<(), rustls::Error> {
    use rustls::unbuffered::EncryptError;
    let mut room = record.map_or(0, <[u8]>::len) + super::cipher::RECORD_EXTRA_BYTES;
    loop {
        let sealed = match record {
            Some(record) => traffic.encrypt(record, outgoing.room(room)),
            None => traffic.queue_close_notify(outgoing.room(room)),
        };
        match sealed {
            Ok(count) => {
                outgoing.took(count);
                return Ok(());
            }
            // A key update may precede the record.
            Err(EncryptError::InsufficientSize(size)) if size.required_size > room => {
                room = size.required_size
            }
            Err(error) => return Err(rustls::Error::General(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
