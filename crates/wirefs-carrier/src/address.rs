//! Addresses of peers, as users write them.

use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::ether::EtherAddress;

/// The default port of `tls` addresses.
pub const TLS_PORT_DEFAULT: u16 = 6440;

/// An address to dial or to listen on, or an ssh login.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `unix:///path/of/socket`.
    Unix(PathBuf),
    /// `tls://host[:port]`, port 6440 by default.
    Tls(HostPort),
    /// `tcp+plain://host:port`: neither encrypted nor authenticated.
    TcpPlain(HostPort),
    /// `ether://MAC@eth0[,eth1]`, and `ether://eth0[,eth1]` to listen: circuits over Ethernet frames.
    Ether(EtherAddress),
    /// `[user@]host` or `ssh://[user@]host:port` over the system's ssh.
    Ssh(Login),
}

/// A host's name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A name, an IPv4 or an IPv6 address; without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// An ssh login.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Login {
    /// The remote user; `None`: ssh decides.
    pub user: Option<String>,
    /// The host, or a `Host` of the ssh configuration; without brackets.
    pub host: String,
    /// The port; `None`: ssh decides.
    pub port: Option<u16>,
}

/// The source of `wirefs mount SOURCE`: a directory of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The peer.
    pub address: Address,
    /// The directory. For ssh: as the login shell would resolve it, empty for the home directory. Otherwise: below the
    /// exported directory, without a leading slash, empty for the export itself.
    pub path: Vec<u8>,
}

/// An invalid address: the mistake, and the form to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` {what}; {instead}")]
pub struct AddressError {
    text: String,
    what: &'static str,
    instead: &'static str,
}

const FORMS: &str = "write one of [user@]host:path, ssh://[user@]host[:port]/path, tls://host:port/path, unix:///socket, ether://MAC@card/path, tcp+plain://host:port/path";
const LISTEN_FORMS: &str =
    "write one of tls://host:port, unix:///path/of/socket, ether://card, tcp+plain://host:port";

impl HostPort {
    /// Parses `host[:port]`; an IPv6 address stands in brackets.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str, port_default: u16) -> Result<Self, AddressError> {
        let fail = |(what, instead)| AddressError { text: text.to_owned(), what, instead };
        let source = parse_url(text.as_bytes(), Some(port_default), Address::Tls).map_err(fail)?;
        match source.address {
            Address::Tls(host) if source.path.is_empty() => Ok(host),
            _ => Err(fail(("is no host", "write host or host:port"))),
        }
    }
}

impl Source {
    /// Parses a source from the bytes of a command line; its path may be any bytes.
    ///
    /// # Errors
    /// Fails if the text has none of the forms; the error names the form to write instead.
    pub fn parse(text: &[u8]) -> Result<Self, AddressError> {
        let fail = |what, instead| {
            Err(AddressError { text: String::from_utf8_lossy(text).into_owned(), what, instead })
        };
        if text.contains(&0) {
            return fail("contains a NUL byte", FORMS);
        }
        let parsed = match split_scheme(text) {
            Some((b"unix", rest)) => parse_unix(rest),
            Some((b"tls", rest)) => parse_url(rest, Some(TLS_PORT_DEFAULT), Address::Tls),
            Some((b"tcp+plain", rest)) => parse_url(rest, None, Address::TcpPlain),
            Some((b"ether", rest)) => parse_ether(rest),
            Some((b"tcp", _)) => Err((
                "says tcp without saying how",
                "write tls://host:port, or tcp+plain://host:port for no encryption",
            )),
            Some((b"ssh" | b"sftp", rest)) => parse_ssh_url(rest),
            Some(_) => Err(("has an unknown scheme", FORMS)),
            None => parse_ssh(text),
        };
        parsed.or_else(|(what, instead)| fail(what, instead))
    }
}

type Parsed = Result<Source, (&'static str, &'static str)>;

fn split_scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|&byte| byte == b':')?;
    let (scheme, rest) = text.split_at_checked(end)?;
    Some((scheme, rest.strip_prefix(b"://")?))
}

fn parse_unix(rest: &[u8]) -> Parsed {
    if !rest.starts_with(b"/") {
        return Err(("names no absolute path", "write unix:///path/of/socket, with three slashes"));
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(rest.to_vec()));
    Ok(Source { address: Address::Unix(path), path: Vec::new() })
}

fn parse_ether(rest: &[u8]) -> Parsed {
    let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (place, path) = rest.split_at_checked(end).unwrap_or((rest, &[]));
    let place = std::str::from_utf8(place).map_err(|_| ("names a card that is not text", FORMS))?;
    let slashes = path.iter().take_while(|&&byte| byte == b'/').count();
    let path = path.get(slashes..).unwrap_or_default().to_vec();
    Ok(Source { address: Address::Ether(EtherAddress::parse(place)?), path })
}

fn parse_url(rest: &[u8], port_default: Option<u16>, address: fn(HostPort) -> Address) -> Parsed {
    let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, &[]));
    let authority = std::str::from_utf8(authority).map_err(|_| ("has a host that is not text", FORMS))?;
    if authority.contains('@') {
        return Err(("names a user, which only ssh has", "leave out user@: the key says who you are"));
    }
    let (host, port) = split_port(authority)?;
    let port = match (port, port_default) {
        (Some(port), _) => {
            port.parse().ok().filter(|&port: &u16| port.to_string() == authority_port(authority)).ok_or((
                "has a port that is not a number from 0 to 65535",
                "write host:port, such as tls://example.org:6440",
            ))?
        }
        (None, Some(port)) => port,
        (None, None) => return Err(("names no port", "write host:port, such as tcp+plain://127.0.0.1:6440")),
    };
    let slashes = path.iter().take_while(|&&byte| byte == b'/').count();
    let path = path.get(slashes..).unwrap_or_default().to_vec();
    Ok(Source { address: address(HostPort { host: clean_host(host)?, port }), path })
}

fn authority_port(authority: &str) -> &str {
    authority.rsplit(':').next().unwrap_or_default()
}

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), (&'static str, &'static str)> {
    let brackets = ("has an IPv6 address without brackets", "write [::1]:port");
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) =
            rest.split_once(']').ok_or(("has a bracket that is not closed", "write [::1]:port"))?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(("has something between the bracket and the port", "write [::1]:port")),
        };
    }
    match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => Err(brackets),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

fn clean_host(host: &str) -> Result<String, (&'static str, &'static str)> {
    if host.is_empty() {
        return Err(("names no host", FORMS));
    }
    // ssh would take a leading dash for an option.
    if host.starts_with('-') || host.chars().any(|c| c.is_whitespace() || c.is_control() || c == '/') {
        return Err(("has a host that is no host name", FORMS));
    }
    Ok(host.to_owned())
}

fn parse_ssh(text: &[u8]) -> Parsed {
    let local = ("is a path of this machine", "write HOST:PATH; a local directory needs no mount");
    let colon = login_end(text).ok_or(if text.contains(&b'/') || text.is_empty() {
        local
    } else {
        ("has no colon after the host", "write host:path, or host: for the home directory there")
    })?;
    let (login, path) = text.split_at_checked(colon).unwrap_or((text, &[]));
    if login.contains(&b'/') {
        return Err(local);
    }
    let login = std::str::from_utf8(login).map_err(|_| ("has a host that is not text", FORMS))?;
    let (user, host) = split_user(login)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let login = Login { user, host: clean_host(host)?, port: None };
    let path = path.strip_prefix(b":").unwrap_or(path);
    Ok(Source { address: Address::Ssh(login), path: below_home(path).unwrap_or(path).to_vec() })
}

/// `[user@]host[:port][/path]`. The path is absolute, but for `/~/path` below the home directory.
fn parse_ssh_url(rest: &[u8]) -> Parsed {
    let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, &[]));
    let authority = std::str::from_utf8(authority).map_err(|_| ("has a host that is not text", FORMS))?;
    let (user, host) = split_user(authority)?;
    let (host, port) = split_port(host)?;
    let port = port.map(|text| text.parse().ok().filter(|&port: &u16| port > 0).ok_or(text));
    let port = port.transpose().map_err(|_| {
        (
            "has a port that is not a number from 1 to 65535",
            "write ssh://host:port/path, such as ssh://h:22/srv",
        )
    })?;
    let path = path.strip_prefix(b"/").and_then(below_home).unwrap_or(path);
    Ok(Source { address: Address::Ssh(Login { user, host: clean_host(host)?, port }), path: path.to_vec() })
}

/// Splits `[user@]host`.
fn split_user(login: &str) -> Result<(Option<String>, &str), (&'static str, &'static str)> {
    let Some((user, host)) = login.rsplit_once('@') else { return Ok((None, login)) };
    if user.is_empty() || user.starts_with('-') || user.chars().any(char::is_control) {
        return Err(("has a user that is no user name", FORMS));
    }
    Ok((Some(user.to_owned()), host))
}

/// Returns the path after `~` or `~/`: no shell expands the tilde there, and relative paths start at home anyway.
fn below_home(path: &[u8]) -> Option<&[u8]> {
    let rest = path.strip_prefix(b"~").filter(|rest| rest.is_empty() || rest.starts_with(b"/"))?;
    let slashes = rest.iter().take_while(|&&byte| byte == b'/').count();
    rest.get(slashes..)
}

/// Returns the index of the colon that ends `[user@]host`, after the brackets of an IPv6 address.
fn login_end(text: &[u8]) -> Option<usize> {
    let open = text.iter().position(|&byte| byte == b'[');
    let colon = text.iter().position(|&byte| byte == b':')?;
    match open {
        Some(open) if open < colon => {
            let close = text.iter().position(|&byte| byte == b']')?;
            (text.get(close + 1) == Some(&b':')).then_some(close + 1)
        }
        Some(_) | None => Some(colon),
    }
}

impl FromStr for Source {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text.as_bytes())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Parses an address without a path: the argument of `--listen`, or `[user@]host:`.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let source = Source::parse(text.as_bytes()).map_err(|error| AddressError {
            instead: if error.instead == FORMS { LISTEN_FORMS } else { error.instead },
            ..error
        })?;
        if !source.path.is_empty() {
            return Err(AddressError {
                text: text.to_owned(),
                what: "has a path, where only an address is meant",
                instead: LISTEN_FORMS,
            });
        }
        Ok(source.address)
    }
}

impl Address {
    /// Returns the path of a `unix` address.
    pub fn unix_path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Tls(_) | Self::TcpPlain(_) | Self::Ether(_) | Self::Ssh(_) => None,
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        if self.host.contains(':') { write!(f, "[{}]", self.host) } else { f.write_str(&self.host) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tls(host) => write!(f, "tls://{host}"),
            Self::TcpPlain(host) => write!(f, "tcp+plain://{host}"),
            Self::Ether(place) => write!(f, "{place}"),
            Self::Ssh(login) => match login.port {
                Some(port) => write!(f, "ssh://{login}:{port}"),
                None => write!(f, "{login}:"),
            },
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(&self.path);
        match &self.address {
            // In a URL the path is absolute.
            Address::Ssh(Login { port: Some(_), .. }) if path.is_empty() || path.starts_with('/') => {
                write!(f, "{}{path}", self.address)
            }
            Address::Ssh(Login { port: Some(_), .. }) => write!(f, "{}/~/{path}", self.address),
            Address::Ssh(_) | Address::Unix(_) => write!(f, "{}{path}", self.address),
            Address::Tls(_) | Address::TcpPlain(_) | Address::Ether(_) if path.is_empty() => {
                write!(f, "{}", self.address)
            }
            Address::Tls(_) | Address::TcpPlain(_) | Address::Ether(_) => {
                write!(f, "{}/{path}", self.address)
            }
        }
    }
}

/// Returns the bytes of a path.
pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests;
