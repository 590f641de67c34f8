//! Verification of the peer: its key is compared with our lists; rustls verifies its signature.

use std::sync::{Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme,
};

use super::authorized::{AuthorizedError, AuthorizedKeys};
use super::key::PublicKey;

/// The client's verifier: accepts the pinned key, or any key at the first connection.
#[derive(Debug)]
pub(super) struct PinVerifier {
    pinned: Option<PublicKey>,
    shown: Mutex<Option<PublicKey>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PinVerifier {
    pub(super) fn new(pinned: Option<PublicKey>) -> Self {
        Self { pinned, shown: Mutex::new(None), algorithms: algorithms() }
    }

    /// Returns the key that the server presented, proved or not.
    pub(super) fn shown(&self) -> Option<PublicKey> {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server's verifier of one client.
#[derive(Debug)]
pub(super) struct AuthorizedVerifier {
    /// The authorized keys at the time of the connection.
    authorized: Result<AuthorizedKeys, AuthorizedError>,
    /// The client's address.
    peer: String,
    refused: Mutex<Option<PublicKey>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl AuthorizedVerifier {
    pub(super) fn new(authorized: Result<AuthorizedKeys, AuthorizedError>, peer: String) -> Self {
        Self { authorized, peer, refused: Mutex::new(None), algorithms: algorithms() }
    }

    /// Returns the refused key, if any.
    pub(super) fn refused(&self) -> Option<PublicKey> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn authorized(&self) -> &Result<AuthorizedKeys, AuthorizedError> {
        &self.authorized
    }
}

fn algorithms() -> WebPkiSupportedAlgorithms {
    ring::default_provider().signature_verification_algorithms
}

fn key_of(certificate: &CertificateDer<'_>) -> Result<PublicKey, Error> {
    PublicKey::from_certificate(certificate).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))
}

/// The peer gets the alert "access_denied".
fn refusal() -> Error {
    Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
}

/// Verifies the peer's signature over the handshake.
fn verify_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = key_of(certificate)?;
    verify_tls13_signature_with_raw_key(message, &key.spki_der(), signed, algorithms)
}

fn no_tls12() -> Error {
    Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered)
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = key_of(end_entity)?;
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        match self.pinned {
            Some(pinned) if pinned != key => Err(refusal()),
            Some(_) | None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for AuthorizedVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let key = key_of(end_entity)?;
        if self.authorized.as_ref().is_ok_and(|keys| keys.admits(&key, &self.peer)) {
            return Ok(ClientCertVerified::assertion());
        }
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        Err(refusal())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
