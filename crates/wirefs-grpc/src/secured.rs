//! TLS of the service: certificates of the gate and of its clients.

use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};
use wirefs_carrier::tls::{FileError, read_secret};

/// The certificates of a gate.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsOptions {
    /// Encrypt, and show this certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Admit only clients with a certificate of this authority: a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    client_ca: Option<PathBuf>,
}

impl TlsOptions {
    /// Whether clients are authenticated, and all is encrypted.
    pub(crate) fn protects(&self) -> bool {
        self.client_ca.is_some()
    }

    /// The configuration of the server; `None` without certificates.
    ///
    /// # Errors
    /// A file cannot be read, or other users could read or replace the key.
    pub(crate) fn server(&self) -> Result<Option<ServerTlsConfig>> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let identity = Identity::from_pem(read(cert)?, read_key(key)?);
        let config = ServerTlsConfig::new().identity(identity);
        Ok(Some(match &self.client_ca {
            Some(authority) => config.client_ca_root(Certificate::from_pem(read(authority)?)),
            None => config,
        }))
    }
}

/// The configuration of a client: `ca.pem`, and `cert.pem` with `key.pem` if there are such, of one directory.
///
/// # Errors
/// There is no authority, a certificate without a key, or a file that cannot be read.
pub(crate) fn client(dir: &Path) -> Result<ClientTlsConfig> {
    let authority = Certificate::from_pem(read(&dir.join("ca.pem"))?);
    let config = ClientTlsConfig::new().ca_certificate(authority);
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    match (cert.exists(), key.exists()) {
        (false, false) => Ok(config),
        (true, true) => Ok(config.identity(Identity::from_pem(read(&cert)?, read_key(&key)?))),
        (true, false) | (false, true) => {
            bail!("{} has only one of cert.pem and key.pem\n  next step: add the other", dir.display())
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| missing(path))
}

/// Reads a secret key, which no other user may read or replace.
fn read_key(path: &Path) -> Result<Vec<u8>> {
    read_secret(path).map_err(|error| match error {
        FileError::Missing(_) => anyhow::Error::new(error).context(missing(path)),
        other => other.into(),
    })
}

fn missing(path: &Path) -> String {
    format!("cannot read {}\n  next step: put the PEM file there, or correct the path", path.display())
}
