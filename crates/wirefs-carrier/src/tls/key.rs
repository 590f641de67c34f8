//! Public keys and their text form.

use std::fmt;

use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};

use super::base64;

/// The word before a key in known-hosts and authorized-keys files.
pub(super) const KEY_WORD: &str = "wirefs-ed25519";
const KEY_BYTES: usize = 32;

/// `SubjectPublicKeyInfo` of an ed25519 key up to the key itself (RFC 8410); the encoding is unique.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// An ed25519 public key: the identity of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// Wraps the raw 32 bytes.
    pub fn from_raw(raw: [u8; KEY_BYTES]) -> Self {
        Self(raw)
    }

    /// Returns the raw 32 bytes.
    pub fn raw(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Returns the fingerprint for users to compare: `SHA256:` and the base64 of the raw key's hash.
    pub fn fingerprint(&self) -> Fingerprint {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.0);
        Fingerprint(base64::encode(digest.as_ref()).trim_end_matches('=').to_owned())
    }

    /// Returns a line for an authorized-keys file: `wirefs-ed25519 BASE64 comment`.
    pub fn line(&self, comment: &str) -> String {
        format!("{self} {comment}").trim_end().to_owned()
    }

    /// Parses `wirefs-ed25519 BASE64`; ignores the rest of the line.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some(KEY_WORD) {
            return None;
        }
        let raw = base64::decode(words.next()?)?;
        raw.try_into().ok().map(Self)
    }

    pub(super) fn to_spki(self) -> Vec<u8> {
        [SPKI_PREFIX.as_slice(), &self.0].concat()
    }

    /// Reads the raw public key in place of a certificate (RFC 7250).
    pub(super) fn from_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let raw = certificate.as_ref().strip_prefix(&SPKI_PREFIX)?;
        raw.try_into().ok().map(Self)
    }

    pub(super) fn spki_der(self) -> SubjectPublicKeyInfoDer<'static> {
        SubjectPublicKeyInfoDer::from(self.to_spki())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KEY_WORD} {}", base64::encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The hash of a public key, for users to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHA256:{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_line_round_trips_and_damaged_line_is_rejected() {
        let key = PublicKey::from_raw([7; 32]);
        assert_eq!(
            key.line("me@there"),
            "wirefs-ed25519 BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc= me@there"
        );
        assert_eq!(PublicKey::parse(&key.line("me@there")), Some(key));
        assert_eq!(PublicKey::parse(&key.line("")), Some(key));
        for text in ["", "wirefs-ed25519", "ssh-ed25519 BwcH", "wirefs-ed25519 BwcHBw==", "wirefs-ed25519 !"]
        {
            assert_eq!(PublicKey::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_fingerprint_is_the_hash_of_the_raw_key() {
        let printed = PublicKey::from_raw([0; 32]).fingerprint().to_string();
        assert_eq!(printed, "SHA256:Zmh6rfhivXdsj8GLjp+OIAiXFIVu4jOzkCpZHQ1fKSU");
    }

    #[test]
    fn a_key_survives_its_certificate_form() {
        let key = PublicKey::from_raw([9; 32]);
        assert_eq!(PublicKey::from_certificate(&CertificateDer::from(key.to_spki())), Some(key));
        assert_eq!(PublicKey::from_certificate(&CertificateDer::from(vec![0x30; 44])), None);
    }
}
