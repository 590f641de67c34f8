//! One line of an authorized-keys file: options, key, comment.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::super::key::{KEY_WORD, PublicKey};
use super::super::network::Network;

/// The longest name of an export, in bytes.
const EXPORT_NAME_BYTES_MAX: usize = 64;

/// A line that authorizes a key: `read-only,export=NAME,from=CIDR wirefs-ed25519 BASE64 comment`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLine {
    /// The key.
    pub key: PublicKey,
    /// The limits of its use.
    pub options: KeyOptions,
    /// The rest of the line, which names the key for people.
    pub comment: String,
}

/// The options of a line. Without options a key may use everything, from everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyOptions {
    /// The key may change nothing.
    pub read_only: bool,
    /// The exports that the key may use; empty: all.
    pub exports: Vec<String>,
    /// The networks from which the key may connect; empty: all.
    pub from: Vec<Network>,
}

/// The reason why a line authorizes no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line has no key.
    #[error("this line is no key and lets nobody in; keys look like `wirefs-ed25519 BASE64 comment`")]
    NoKey,
    /// An option is unknown or has no valid value.
    #[error(
        "the option `{0}` is not known, so this line lets nobody in; options are read-only, export=NAME and \
         from=NETWORK (as 192.168.0.0/16), with commas between"
    )]
    Option(String),
}

impl KeyLine {
    /// Parses a line.
    ///
    /// # Errors
    /// The line has no key, or an option that is not known. Such a line authorizes nothing: a misspelled limit must not
    /// give more rights.
    pub fn parse(line: &str) -> Result<Self, LineError> {
        let line = line.trim();
        let first = line.split_ascii_whitespace().next().ok_or(LineError::NoKey)?;
        let (options, rest) = if first == KEY_WORD {
            ("", line)
        } else {
            (first, line.strip_prefix(first).unwrap_or_default().trim_start())
        };
        let key = PublicKey::parse(rest).ok_or(LineError::NoKey)?;
        let comment = rest.split_ascii_whitespace().skip(2).collect::<Vec<_>>().join(" ");
        Ok(Self { key, options: KeyOptions::parse(options)?, comment })
    }
}

impl fmt::Display for KeyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options.to_string();
        let space = if options.is_empty() { "" } else { " " };
        write!(f, "{options}{space}{}", self.key.line(&self.comment))
    }
}

impl KeyOptions {
    /// Parses options with commas between them; an empty text has none.
    ///
    /// # Errors
    /// An option is not known, or its value is not valid.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let mut options = Self::default();
        for option in text.split(',').filter(|_| !text.is_empty()) {
            let unknown = || LineError::Option(option.to_owned());
            match option.split_once('=') {
                None if option == "read-only" => options.read_only = true,
                Some(("export", name)) if is_export_name(name) => options.exports.push(name.to_owned()),
                Some(("from", network)) => {
                    options.from.push(Network::parse(network).ok_or_else(unknown)?);
                }
                None | Some(_) => return Err(unknown()),
            }
        }
        Ok(options)
    }

    /// Returns whether a peer at this address may connect. A peer without an IP address may only without `from`.
    pub fn allows_peer(&self, peer: &str) -> bool {
        self.from.is_empty()
            || ip_of(peer).is_some_and(|address| self.from.iter().any(|network| network.contains(address)))
    }

    /// Returns whether the export may be used.
    pub fn allows_export(&self, name: &str) -> bool {
        self.exports.is_empty() || self.exports.iter().any(|allowed| allowed == name)
    }
}

impl fmt::Display for KeyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read_only = self.read_only.then(|| "read-only".to_owned());
        let exports = self.exports.iter().map(|name| format!("export={name}"));
        let from = self.from.iter().map(|network| format!("from={network}"));
        let options: Vec<String> = read_only.into_iter().chain(exports).chain(from).collect();
        f.write_str(&options.join(","))
    }
}

/// Returns whether an export may have this name: letters, digits, `.`, `_` and `-`, and no leading `.`. So it is one
/// component of a URL's path.
pub fn is_export_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=EXPORT_NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(is_allowed)
}

/// Returns the IP address of a peer, as `192.0.2.1:6440`.
fn ip_of(peer: &str) -> Option<IpAddr> {
    peer.parse::<SocketAddr>().ok().map(|peer| peer.ip())
}
