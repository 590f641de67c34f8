//! What is asked of an etcd server, by its JSON gateway (`/v3`, etcd 3.4 and later).

use super::http::{self, Telling};
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use wirefs_carrier::tls::base64::{decode, encode};
use wirefs_node::NodeKey;

/// Where the names of nodes are, below what the user chose.
const NODES: &str = "nodes/";

/// An etcd server, and what the names of our nodes begin with there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdPlace {
    /// Its host and port.
    pub(super) host: String,
    prefix: String,
}

impl EtcdPlace {
    /// Reads `etcd://HOST[:PORT][/PREFIX]`.
    ///
    /// # Errors
    /// What could have been written.
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

    /// Asks for a lease of so many seconds; its name.
    pub(super) fn grant(&self, seconds: u64) -> io::Result<String> {
        let answer = self.ask("/v3/lease/grant", &json!({ "TTL": seconds }))?;
        answer["ID"].as_str().map(str::to_owned).ok_or_else(|| unexpected(&answer))
    }

    /// Makes a lease last for its whole time again; whether it still was there.
    pub(super) fn keep(&self, lease: &str) -> io::Result<bool> {
        let answer = self.ask("/v3/lease/keepalive", &json!({ "ID": lease }))?;
        Ok(answer["result"]["TTL"].as_str().is_some_and(|seconds| seconds != "0"))
    }

    /// Ends a lease, and what was said under it.
    pub(super) fn revoke(&self, lease: &str) -> io::Result<()> {
        self.ask("/v3/lease/revoke", &json!({ "ID": lease })).map(drop)
    }

    /// Says where a node is, for as long as a lease lasts.
    pub(super) fn put(&self, key: &NodeKey, sockets: &[SocketAddr], lease: &str) -> io::Result<()> {
        let name = format!("{}{}", self.prefix, name_of(key));
        let told: Vec<String> = sockets.iter().map(ToString::to_string).collect();
        let (name, told) = (encode(name.as_bytes()), encode(told.join(",").as_bytes()));
        self.ask("/v3/kv/put", &json!({ "key": name, "value": told, "lease": lease })).map(drop)
    }

    /// Where all nodes are but this one.
    pub(super) fn others(&self, own: &NodeKey) -> io::Result<Vec<SocketAddr>> {
        let answer = self.ask("/v3/kv/range", &self.range())?;
        let own = format!("{}{}", self.prefix, name_of(own));
        let entries = answer["kvs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |value: &Value| String::from_utf8(decode(value.as_str()?)?).ok();
        let others = entries.iter().filter(|entry| text(&entry["key"]).is_some_and(|name| name != own));
        let told: Vec<String> = others.filter_map(|entry| text(&entry["value"])).collect();
        // What is no address is nobody's.
        Ok(told.iter().flat_map(|told| told.split(',')).filter_map(|socket| socket.parse().ok()).collect())
    }

    /// Waits for changes from now on.
    pub(super) fn watch(&self) -> io::Result<Telling> {
        Telling::begin(&self.host, "/v3/watch", &json!({ "create_request": self.range() }).to_string())
    }

    /// All names that begin with the prefix.
    fn range(&self) -> Value {
        let mut end = self.prefix.clone().into_bytes();
        // `/` is what it ends with.
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
    fn places_are_read_and_told_as_they_are_written() {
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
    fn the_range_is_all_names_below_the_prefix() {
        let range = EtcdPlace::parse("etcd://a").unwrap().range();
        assert_eq!(decode(range["key"].as_str().unwrap()).unwrap(), b"wirefs/nodes/");
        assert_eq!(decode(range["range_end"].as_str().unwrap()).unwrap(), b"wirefs/nodes0");
    }
}
