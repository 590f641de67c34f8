//! Reaching a node of the table, wherever it is by then.

use super::NodeHost;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wirefs_carrier::tls::{Identity, PublicKey, TlsDial};
use wirefs_carrier::{Carrier, Dial, DialError, HostPort};
use wirefs_node::NodeKey;

/// How long each address may take.
const EACH_MAX: Duration = Duration::from_secs(3);

/// Dials one node: the addresses are those that the table has at that moment, the key is the node's.
pub struct NodeDial {
    host: Arc<NodeHost>,
    key: NodeKey,
    identity: Arc<Identity>,
}

impl NodeDial {
    /// Will dial this node as `identity`.
    pub fn new(host: Arc<NodeHost>, key: NodeKey, identity: Arc<Identity>) -> NodeDial {
        NodeDial { host, key, identity }
    }

    fn each(&self, dial: impl Fn(&TlsDial) -> Result<Carrier, DialError>) -> Result<Carrier, DialError> {
        let nowhere = io::Error::from(io::ErrorKind::HostUnreachable);
        let mut failure = DialError::Connect { address: "the node".to_owned(), error: nowhere };
        for socket in self.host.sockets_of(&self.key) {
            let host = HostPort { host: socket.ip().to_string(), port: socket.port() };
            let key = PublicKey::from_raw(self.key.0);
            match dial(&TlsDial::expecting(host, Arc::clone(&self.identity), key, EACH_MAX)) {
                Ok(carrier) => return Ok(carrier),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

impl Dial for NodeDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        self.each(Dial::dial)
    }

    fn dial_again(&self) -> Result<Carrier, DialError> {
        self.each(Dial::dial_again)
    }
}
