//! Requests to an etcd server over its JSON gateway (`/v3`, etcd 3.4 and later).

use super::http::{self, EventStream};
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use wirefs_carrier::tls::base64::{decode, encode};
use wirefs_node::NodeKey;

/// The keys of nodes, below the user's prefix.
const NODES: &str = "nodes/";

/// An etcd server, with the prefix of our keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdPlace {
    /// Its host and port.
    pub(super) host: String,
    prefix: String,
}

impl EtcdPlace {
    /// Parses `etcd://HOST[:PORT][/PREFIX]`.
    ///
    /// # Errors
    /// The error shows valid forms.
    pub fn parse(text: &str) -> Result<EtcdPlace, String> {
        let example =
            || format!("`{text}` is no registry; write etcd://10.0.0.7:2379, or etcd://HOST/PREFIX");
        let rest = text.strip_prefix("etcd://").ok_or_else(example)?;
        let (host, prefix) = rest.split_once('/').unwrap_or((rest, "wirefs"));
        let is_sane = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_sane(host) || !is_sane(prefix) {
            return Err(example());
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let host = if has_port { host.to_owned() } else { format!("{host}:2379") };
        Ok(EtcdPlace { host, prefix: format!("{}/{NODES}", prefix.trim_end_matches('/')) })
    }

    /// Requests a lease of a number of seconds, and returns its id.
    pub(super) fn grant(&self, seconds: u64) -> io::Result<String> {
        let answer = self.ask("/v3/lease/grant", &json!({ "TTL": seconds }))?;
        answer["ID"].as_str().map(str::to_owned).ok_or_else(|| unexpected(&answer))
    }

    /// Renews a lease. Returns whether it still existed.
    pub(super) fn renew(&self, lease: &str) -> io::Result<bool> {
        let answer = self.ask("/v3/lease/keepalive", &json!({ "ID": lease }))?;
        Ok(answer["result"]["TTL"].as_str().is_some_and(|seconds| seconds != "0"))
    }

    /// Ends a lease, and removes its keys.
    pub(super) fn revoke(&self, lease: &str) -> io::Result<()> {
        self.ask("/v3/lease/revoke", &json!({ "ID": lease })).map(drop)
    }

    /// Stores the addresses of a node under a lease.
    pub(super) fn put(&self, key: &NodeKey, sockets: &[SocketAddr], lease: &str) -> io::Result<()> {
        let name = format!("{}{}", self.prefix, name_of(key));
        let addresses: Vec<String> = sockets.iter().map(ToString::to_string).collect();
        let (name, addresses) = (encode(name.as_bytes()), encode(addresses.join(",").as_bytes()));
        self.ask("/v3/kv/put", &json!({ "key": name, "value": addresses, "lease": lease })).map(drop)
    }

    /// Returns the addresses of all nodes but this one.
    pub(super) fn others(&self, own: &NodeKey) -> io::Result<Vec<SocketAddr>> {
        let answer = self.ask("/v3/kv/range", &self.range())?;
        let own = format!("{}{}", self.prefix, name_of(own));
        let entries = answer["kvs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |value: &Value| String::from_utf8(decode(value.as_str()?)?).ok();
        let others = entries.iter().filter(|entry| text(&entry["key"]).is_some_and(|name| name != own));
        let addresses: Vec<String> = others.filter_map(|entry| text(&entry["value"])).collect();
        // Malformed addresses are ignored.
        Ok(addresses
            .iter()
            .flat_map(|addresses| addresses.split(','))
            .filter_map(|socket| socket.parse().ok())
            .collect())
    }

    /// Starts to watch for changes.
    pub(super) fn watch(&self) -> io::Result<EventStream> {
        EventStream::begin(&self.host, "/v3/watch", &json!({ "create_request": self.range() }).to_string())
    }

    /// The range of all keys with the prefix.
    fn range(&self) -> Value {
        let mut end = self.prefix.clone().into_bytes();
        // The prefix ends with `/`.
        end.pop();
        end.push(b'/' + 1);
        json!({ "key": encode(self.prefix.as_bytes()), "range_end": encode(&end) })
    }

    fn ask(&self, path: &str, body: &Value) -> io::Result<Value> {
        Ok(serde_json::from_str(&http::ask(&self.host, path, &body.to_string())?)?)
    }
}

impl std::fmt::Display for EtcdPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "etcd://{}/{}", self.host, self.prefix.trim_end_matches(NODES).trim_end_matches('/'))
    }
}

fn name_of(key: &NodeKey) -> String {
    key.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unexpected(answer: &Value) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the registry answered {answer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_place_parses_again() {
        let place = EtcdPlace::parse("etcd://10.0.0.7").unwrap();
        assert_eq!((place.host.as_str(), place.prefix.as_str()), ("10.0.0.7:2379", "wirefs/nodes/"));
        assert_eq!(place.to_string(), "etcd://10.0.0.7:2379/wirefs");
        let place = EtcdPlace::parse("etcd://registry:2380/lab/a/").unwrap();
        assert_eq!((place.host.as_str(), place.prefix.as_str()), ("registry:2380", "lab/a/nodes/"));
        for wrong in ["10.0.0.7", "etcd://", "etcd:///x", "etcd://a b/", "http://a"] {
            assert!(EtcdPlace::parse(wrong).unwrap_err().contains("no registry"), "{wrong}");
        }
    }

    #[test]
    fn range_has_all_keys_with_the_prefix() {
        let range = EtcdPlace::parse("etcd://a").unwrap().range();
        assert_eq!(decode(range["key"].as_str().unwrap()).unwrap(), b"wirefs/nodes/");
        assert_eq!(decode(range["range_end"].as_str().unwrap()).unwrap(), b"wirefs/nodes0");
    }
}
