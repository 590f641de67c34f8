//! One TLS connection's state, either side, without I/O.

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::CertificateDer;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus, WriteTraffic};

use super::cipher::{Incoming, Outgoing};
use super::key::PublicKey;
use super::seal::{self, Plaintext};

pub(super) enum Session {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
}

/// What one step of a session brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Something moved; step again.
    Progress,
    /// Needs bytes of the peer, the handshake is not over.
    Handshaking,
    /// Needs bytes of the peer; may send.
    Ready,
    /// The peer said farewell.
    PeerClosed,
}

impl Session {
    /// Takes what it can of `incoming`: decrypted bytes go to `plain`, answers to `outgoing`.
    pub(super) fn step(
        &mut self,
        incoming: &mut Incoming,
        outgoing: &mut Outgoing,
        plain: &mut dyn FnMut(&[u8]),
    ) -> Result<Step, rustls::Error> {
        let (discard, step) = match self {
            Self::Client(client) => settle(client.process_tls_records(incoming.filled()), outgoing, plain),
            Self::Server(server) => settle(server.process_tls_records(incoming.filled()), outgoing, plain),
        };
        incoming.discard(discard);
        step
    }

    /// Puts the alert that explains a failure, if there is one, into `outgoing`.
    pub(super) fn last_words(&mut self, outgoing: &mut Outgoing) {
        // Each step encodes one record; an alert and what was queued before it are few.
        for _ in 0..4 {
            match self.step(&mut Incoming::default(), outgoing, &mut |_| {}) {
                Ok(Step::Progress) => {}
                Ok(Step::Handshaking | Step::Ready | Step::PeerClosed) | Err(_) => return,
            }
        }
    }

    /// Encrypts as much of `plaintext` as one batch takes. False: the handshake is not over.
    pub(super) fn seal(
        &mut self,
        plaintext: &mut dyn Plaintext,
        outgoing: &mut Outgoing,
    ) -> Result<Step, rustls::Error> {
        loop {
            let step = match self {
                Self::Client(client) => seal_with(client.process_tls_records(&mut []), plaintext, outgoing),
                Self::Server(server) => seal_with(server.process_tls_records(&mut []), plaintext, outgoing),
            }?;
            if step != Step::Progress {
                return Ok(step);
            }
        }
    }

    /// The key that the peer has proved to own.
    pub(super) fn peer_key(&self) -> Option<PublicKey> {
        let certificates: &[CertificateDer<'_>] = match self {
            Self::Client(client) => client.peer_certificates(),
            Self::Server(server) => server.peer_certificates(),
        }?;
        PublicKey::from_certificate(certificates.first()?)
    }
}

/// Settles one status of rustls, whichever side it is.
fn settle<Data>(
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
                    Err(EncodeError::InsufficientSize(size)) if size.required_size > room => room = size.required_size,
                    Err(error) => break Err(rustls::Error::General(error.to_string())),
                }
            }
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            // It is in `outgoing`, which is sent in order before anything encrypted later.
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
        other => settle(other, outgoing, &mut |_| {}).1,
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
            // A key update rides along now and then.
            Err(EncryptError::InsufficientSize(size)) if size.required_size > room => room = size.required_size,
            Err(error) => return Err(rustls::Error::General(error.to_string())),
        }
    }
}
