//! `wirefs find-servers`: the servers of this network segment that announce themselves.

use anyhow::Result;
use serde::Serialize;
use wirefs_carrier::TLS_PORT_DEFAULT;
use wirefs_carrier::tls::{PublicKey, is_export_name};
use wirefs_nodehost::{FoundServer, find_servers};

use crate::arguments;
use crate::failure::failure;
use crate::terminal::{say, shown_json};
use wirefs_carrier::printable;

/// A server in JSON. Its texts are those of the answer: anyone can send one.
#[derive(Serialize)]
struct Found<'a> {
    address: String,
    host: &'a str,
    key: String,
    exports: &'a [String],
    has_more: bool,
}

/// Asks, and lists the answers.
pub(crate) fn run(arguments: &arguments::FindServers) -> Result<()> {
    let found = find_servers(&arguments.nic, arguments.wait)
        .map_err(|error| failure(error, "see `wirefs find-servers --help`"))?;
    if arguments.json {
        say!("{}", list_json(&found)?);
        return Ok(());
    }
    if found.is_empty() {
        return Err(failure(
            "no server on this network segment answers",
            "start one there with `wirefs serve DIR --announce`",
        ));
    }
    found.iter().flat_map(lines).for_each(|line| say!("{line}"));
    Ok(())
}

/// Returns the list in JSON, with characters that control a terminal escaped.
fn list_json(found: &[FoundServer]) -> serde_json::Result<String> {
    let list: Vec<Found<'_>> = found.iter().map(json).collect();
    Ok(shown_json(&serde_json::to_string_pretty(&list)?))
}

fn json(found: &FoundServer) -> Found<'_> {
    let FoundServer { address, offer } = found;
    let key = PublicKey::from_raw(offer.key.0).fingerprint().to_string();
    let (host, exports) = (&offer.host, &offer.exports);
    Found { address: address.to_string(), host, key, exports, has_more: offer.has_more }
}

/// Returns the lines of a server. Commands have only names that a shell takes as they are.
fn lines(found: &FoundServer) -> Vec<String> {
    let FoundServer { address, offer } = found;
    let key = PublicKey::from_raw(offer.key.0).fingerprint();
    let place = match address.port() {
        TLS_PORT_DEFAULT => address.ip().to_string(),
        _ => address.to_string(),
    };
    let mut lines =
        vec![format!("{} at {address}, says that its key is {key}", printable(offer.host.as_bytes()))];
    let command = |name: &str, directory: &str| format!("  wirefs mount tls://{place}/{name} {directory}");
    if offer.exports.is_empty() {
        lines.push(command("", if is_plain(&offer.host) { &offer.host } else { "MOUNTPOINT" }));
    }
    for name in &offer.exports {
        lines.push(match is_plain(name) {
            true => command(name, name),
            false => format!("  an export with the unusual name \"{}\"", printable(name.as_bytes())),
        });
    }
    if offer.has_more {
        lines.push("  more exports, whose names did not fit".to_owned());
    }
    lines
}

/// Returns whether a shell and a command take this name as it is.
fn is_plain(name: &str) -> bool {
    is_export_name(name) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirefs_node::NodeKey;
    use wirefs_node::discovery::ServerOffer;

    fn server(host: &str, exports: &[&str], port: u16) -> FoundServer {
        let exports = exports.iter().map(|name| (*name).to_owned()).collect();
        let offer = ServerOffer { port, key: NodeKey([7; 32]), host: host.into(), exports, has_more: false };
        FoundServer { address: ([10, 0, 0, 2], port).into(), offer }
    }

    fn found(host: &str, exports: &[&str], port: u16) -> Vec<String> {
        lines(&server(host, exports, port))
    }

    #[test]
    fn servers_are_listed_with_the_commands_to_mount_them() {
        let lines = found("nas", &["photos", "music"], 7000);
        assert!(lines[0].starts_with("nas at 10.0.0.2:7000, says that its key is SHA256:"), "{lines:?}");
        assert_eq!(lines[1], "  wirefs mount tls://10.0.0.2:7000/photos photos");
        assert_eq!(lines[2], "  wirefs mount tls://10.0.0.2:7000/music music");
        assert_eq!(found("nas", &[], 6440)[1], "  wirefs mount tls://10.0.0.2/ nas");
    }

    /// S-178: names of strangers cannot control the terminal, and are no commands if a shell would interpret them.
    #[test]
    fn names_of_strangers_are_escaped_and_never_commands() {
        for evil in
            ["$(reboot)", "a;b", "-rf", "a b", "\u{1b}[2J", "a\nwirefs", "`x`", "..", "/", "", "a\u{202e}b"]
        {
            let lines = found(evil, &[evil, "good"], 6440);
            assert_eq!(lines.len(), 3, "{lines:?}");
            assert!(lines[1].starts_with("  an export with the unusual name"), "{lines:?}");
            assert!(lines.iter().all(|line| !line.contains(['\u{1b}', '\n', '\u{202e}'])), "{lines:?}");
            assert_eq!(found(evil, &[], 6440)[1], "  wirefs mount tls://10.0.0.2/ MOUNTPOINT");
        }
    }

    /// S-178: nor can they in JSON, where they have the same meaning as before.
    #[test]
    fn names_of_strangers_are_escaped_in_json() {
        let evil = "a\u{7f}\u{9b}2J\u{1b}\u{202e}\u{2069}\n\"\\é";
        let text = list_json(&[server(evil, &[evil], 6440)]).unwrap();
        assert!(text.contains("\\u009b2J\\u001b\\u202e\\u2069"), "{text}");
        assert!(!text.contains(['\u{7f}', '\u{9b}', '\u{1b}', '\u{202e}', '\u{2069}']), "{text}");
        let list: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        assert_eq!((&list[0]["host"], &list[0]["exports"][0]), (&evil.into(), &evil.into()));
    }
}
