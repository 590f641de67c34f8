//! The TLS configuration: version 1.3, ed25519 raw public keys, no resumption, our application protocol.

use std::sync::Arc;

use rustls::client::{AlwaysResolvesClientRawPublicKeys, ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, ServerConfig};
use rustls::version::TLS13;

use super::identity::Identity;
use super::verify::{AuthorizedVerifier, PinVerifier};

/// The application protocol (ALPN): a wirefs port is not mistaken for another service, or the reverse.
const PROTOCOL: &[u8] = b"wirefs";

pub(super) fn client(identity: &Identity, verifier: Arc<PinVerifier>) -> Result<ClientConfig, rustls::Error> {
    let resolver = AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&identity.certified));
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

pub(super) fn server(
    identity: &Identity,
    verifier: Arc<AuthorizedVerifier>,
) -> Result<ServerConfig, rustls::Error> {
    let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&identity.certified));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    use ring::cipher_suite::{
        TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
    };
    let cipher_suites = if has_fast_aes() {
        vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256]
    } else {
        vec![TLS13_CHACHA20_POLY1305_SHA256, TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384]
    };
    Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() })
}

/// Returns whether the processor has AES instructions; without them ChaCha20 is several times faster.
fn has_fast_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}
