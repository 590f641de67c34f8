//! Addresses of gates, as users write them.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The port of gates unless one is named.
const PORT_DEFAULT: u16 = 6441;

/// `grpc://host[:port]/path`, or `grpcs://…` with TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GateAddress {
    /// The address of the gate, for HTTP/2.
    pub(crate) uri: String,
    pub(crate) is_secured: bool,
    /// The directory below the gate's source, without slashes at its ends.
    pub(crate) path: Vec<u8>,
}

impl GateAddress {
    /// Parses a source.
    ///
    /// # Errors
    /// It is none of a gate.
    pub(crate) fn parse(source: &OsStr) -> Result<GateAddress> {
        let bytes = source.as_bytes();
        let secured = bytes.strip_prefix(b"grpcs://");
        let Some(rest) = secured.or_else(|| bytes.strip_prefix(b"grpc://")) else {
            bail!(
                "this is no source of a gate\n  next step: write grpc://host:port/path, or grpcs:// with TLS"
            );
        };
        let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).unwrap_or_default();
        let authority = std::str::from_utf8(authority).context("the host of this source is not text")?;
        let has_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
            !port.ends_with(']') && !host.is_empty() && port.parse::<u16>().is_ok()
        });
        if authority.is_empty() || authority.starts_with(':') {
            bail!("this source names no host\n  next step: write grpc://host:port/path");
        }
        let scheme = if secured.is_some() { "https" } else { "http" };
        let uri = match has_port {
            true => format!("{scheme}://{authority}"),
            false => format!("{scheme}://{authority}:{PORT_DEFAULT}"),
        };
        let names: Vec<_> = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        Ok(GateAddress { uri, is_secured: secured.is_some(), path: names.join(&b'/') })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_parsed_or_refused() {
        let parse = |text: &str| GateAddress::parse(OsStr::new(text)).ok();
        let of = |uri: &str, is_secured, path: &[u8]| {
            Some(GateAddress { uri: uri.to_owned(), is_secured, path: path.to_vec() })
        };
        assert_eq!(parse("grpc://h"), of("http://h:6441", false, b""));
        assert_eq!(parse("grpc://h:7/a//b/"), of("http://h:7", false, b"a/b"));
        assert_eq!(parse("grpcs://[::1]/a"), of("https://[::1]:6441", true, b"a"));
        assert_eq!(parse("grpcs://[::1]:9"), of("https://[::1]:9", true, b""));
        for wrong in ["host:dir", "grpc:///a", "grpc://:5/a", "http://h/"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
