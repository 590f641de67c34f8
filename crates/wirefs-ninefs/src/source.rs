//! Addresses of 9P servers, as users write them, and how to connect.

use crate::wire::Pipe;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// The port of 9P (`9pfs` in the registry of IANA).
const PORT_DEFAULT: u16 = 564;
/// The wait for a TCP connection, at most.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A tree of a 9P server: `9p://host[:port]/aname`, or `9p+unix:///socket`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NineSource {
    address: Address,
    /// The tree that the server is asked for.
    pub(crate) aname: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// A source that is not written as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this 9P source {0}; write 9p://host:port/tree or 9p+unix:///socket")]
pub struct NineSourceError(&'static str);

impl NineSource {
    /// Parses a source; `None` if it is of another kind.
    pub fn parse(text: &[u8]) -> Option<Result<NineSource, NineSourceError>> {
        if let Some(path) = text.strip_prefix(b"9p+unix://") {
            let path = PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()));
            let source = NineSource { address: Address::Unix(path), aname: b"/".to_vec() };
            return Some(if text.get(10) == Some(&b'/') {
                Ok(source)
            } else {
                Err(NineSourceError("names no absolute path"))
            });
        }
        text.strip_prefix(b"9p://").map(parse_tcp)
    }

    /// Connects: the receiving side, and the sending one.
    pub(crate) fn connect(&self) -> io::Result<Pipe> {
        match &self.address {
            Address::Unix(path) => Pipe::unix(UnixStream::connect(path)?),
            Address::Tcp(host, port) => {
                let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                        Ok(stream) => return Pipe::tcp(stream),
                        Err(error) => failed = error,
                    }
                }
                Err(failed)
            }
        }
    }
}

fn parse_tcp(rest: &[u8]) -> Result<NineSource, NineSourceError> {
    let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, b""));
    let authority =
        std::str::from_utf8(authority).map_err(|_| NineSourceError("has a host that is not text"))?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && !port.ends_with(']') => {
            (host, port.parse().map_err(|_| NineSourceError("has a port that is not a number"))?)
        }
        _ => (authority, PORT_DEFAULT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err(NineSourceError("names no host"));
    }
    let aname = if path.is_empty() { b"/".to_vec() } else { path.to_vec() };
    Ok(NineSource { address: Address::Tcp(host.to_owned(), port), aname })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_parsed_or_refused() {
        let tcp = |host: &str, port, aname: &[u8]| NineSource {
            address: Address::Tcp(host.to_owned(), port),
            aname: aname.to_vec(),
        };
        let parse = |text: &str| NineSource::parse(text.as_bytes());
        assert_eq!(parse("9p://h"), Some(Ok(tcp("h", 564, b"/"))));
        assert_eq!(parse("9p://h:5640/a/b"), Some(Ok(tcp("h", 5640, b"/a/b"))));
        assert_eq!(parse("9p://[::1]:7/"), Some(Ok(tcp("::1", 7, b"/"))));
        assert_eq!(parse("9p://[::1]/"), Some(Ok(tcp("::1", 564, b"/"))));
        let unix = NineSource { address: Address::Unix("/s".into()), aname: b"/".to_vec() };
        assert_eq!(parse("9p+unix:///s"), Some(Ok(unix)));
        for wrong in ["9p:///a", "9p://h:x/", "9p+unix://s"] {
            assert!(matches!(parse(wrong), Some(Err(_))), "{wrong}");
        }
        assert_eq!(parse("host:dir"), None);
    }
}
