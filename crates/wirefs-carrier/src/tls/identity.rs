//! Our own key pair.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use rustls::sign::CertifiedKey;

use super::base64;
use super::key::PublicKey;
use super::private_file::{self, FileError, Forbidden};

const KEY_FILE: &str = "identity.pem";
const LINE_FILE: &str = "identity.pub";
const PEM_LINE_CHARS: usize = 64;

/// The ed25519 key pair of this machine or user.
pub struct Identity {
    pub(super) certified: Arc<CertifiedKey>,
    /// The private key, for carriers that do not use TLS.
    pkcs8: PrivatePkcs8KeyDer<'static>,
    public: PublicKey,
    comment: String,
}

/// The identity cannot be made or used. The text names the next step.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct IdentityError {
    /// The file or directory concerned.
    pub path: PathBuf,
    message: String,
}

impl IdentityError {
    fn new(path: &Path, message: impl ToString) -> Self {
        Self { path: path.to_owned(), message: message.to_string() }
    }
}

impl Identity {
    /// Reads `identity.pem` in `directory`, or makes it (mode 0600) with its `identity.pub` at the first start. Safe
    /// against a concurrent first start.
    ///
    /// # Errors
    /// Fails if the directory is not writable, the key is readable by others, or is no ed25519 key.
    pub fn open(directory: &Path) -> Result<Self, IdentityError> {
        let path = directory.join(KEY_FILE);
        let fail = |error: FileError| IdentityError::new(&path, error);
        let pem = match private_file::read(&path, Forbidden::Access) {
            Err(FileError::Missing(_)) => {
                private_file::make_directory(directory).map_err(fail)?;
                private_file::create(&path, &generate(&path)?, 0o600).map_err(fail)?;
                private_file::read(&path, Forbidden::Access).map_err(fail)?
            }
            other => other.map_err(fail)?,
        };
        let identity = Self::from_pem(&path, &pem)?;
        // For users to copy; the next start writes it again if it is missing.
        private_file::create(&directory.join(LINE_FILE), &format!("{}\n", identity.line()), 0o644)
            .map_err(fail)?;
        Ok(identity)
    }

    fn from_pem(path: &Path, pem: &str) -> Result<Self, IdentityError> {
        let broken = "is not an ed25519 private key; move it away, and the next start makes a new one";
        let fail = || IdentityError::new(path, format!("{} {broken}", path.display()));
        let pkcs8 = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| fail())?;
        let pair =
            Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8.secret_pkcs8_der()).map_err(|_| fail())?;
        let public = PublicKey::from_raw(pair.public_key().as_ref().try_into().map_err(|_| fail())?);
        let signer = rustls::crypto::ring::sign::any_eddsa_type(&pkcs8).map_err(|_| fail())?;
        let certified = CertifiedKey::new(vec![public.to_spki().into()], signer);
        let comment = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self { certified: Arc::new(certified), pkcs8, public, comment })
    }

    /// Our private key with another public key, as an impostor would use it.
    #[cfg(test)]
    pub(super) fn claiming(&self, name: PublicKey) -> Self {
        let certified = CertifiedKey::new(vec![name.to_spki().into()], Arc::clone(&self.certified.key));
        let pkcs8 = self.pkcs8.clone_key();
        Self { certified: Arc::new(certified), pkcs8, public: name, comment: String::new() }
    }

    /// Returns the key pair; `None` if it is no ed25519 key, which the read excludes.
    pub(crate) fn pair(&self) -> Option<Ed25519KeyPair> {
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(self.pkcs8.secret_pkcs8_der()).ok()
    }

    /// Returns the public key.
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    /// Signs a message of another protocol. The message must begin with its purpose, and not with 64 spaces as messages
    /// signed by TLS do. Returns `None` if the key cannot sign, which does not occur.
    pub fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        let signer = self.certified.key.choose_scheme(&[rustls::SignatureScheme::ED25519])?;
        signer.sign(message).ok()?.try_into().ok()
    }

    /// Returns the line that authorizes this identity in a server's authorized-keys file.
    pub fn line(&self) -> String {
        self.public.line(&self.comment)
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("public", &self.public).finish_non_exhaustive()
    }
}

/// Returns a new private key as PEM.
fn generate(path: &Path) -> Result<String, IdentityError> {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new())
        .map_err(|_| IdentityError::new(path, "the system gives no random numbers, so no key can be made"))?;
    let encoded = base64::encode(pkcs8.as_ref());
    let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_LINE_CHARS));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    Ok(pem)
}

#[cfg(test)]
mod tests;
