//! Dialing a node of the table over Ethernet or TLS, at the addresses that it has at that moment.

use super::ether::Via;
use super::host::NodeHost;
use super::paths::{TlsPath, TlsPaths};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::ether::EtherDial;
use wirefs_carrier::tls::{Identity, PublicKey, TlsDial};
use wirefs_carrier::{Carrier, Dial, DialError, HostPort, PathStatus};
use wirefs_node::NodeKey;

/// The time limit for each address.
const ADDRESS_MAX: Duration = Duration::from_secs(3);
/// The time limit for Ethernet, before TLS is tried.
const ETHER_MAX: Duration = Duration::from_secs(1);

/// The interval at which paths are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Dials one node. Its addresses come from the table, and it must prove its key.
pub struct NodeDial {
    host: Arc<NodeHost>,
    key: NodeKey,
    identity: Arc<Identity>,
    via: Via,
    last: Mutex<LastDial>,
    tls_paths: TlsPaths,
}

/// The result of the last dial.
#[derive(Default)]
struct LastDial {
    carrier: Option<&'static str>,
    /// Kept for its paths.
    ether: Option<Arc<EtherDial>>,
    ether_failure: Option<String>,
}

/// The route over which a node was reached.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// The carrier of the last connection: `ether` or `tcp+tls`; `None` before the first one.
    pub carrier: Option<&'static str>,
    /// The paths of an Ethernet connection.
    pub paths: Vec<PathStatus>,
    /// The cards and addresses of TLS connections: those in use, and those that broke lately.
    pub tls_paths: Vec<TlsPath>,
    /// The reason why Ethernet was tried and not used.
    pub ether_failure: Option<String>,
}

impl NodeDial {
    /// Creates a dialer for a node. `identity` is our own.
    pub fn new(host: Arc<NodeHost>, key: NodeKey, identity: Arc<Identity>, via: Via) -> NodeDial {
        NodeDial { host, key, identity, via, last: Mutex::default(), tls_paths: TlsPaths::default() }
    }

    /// Returns the route of the last dial.
    pub fn route(&self) -> Route {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        Route {
            carrier: last.carrier,
            paths: last.ether.as_ref().map(|dial| dial.paths()).unwrap_or_default(),
            tls_paths: if last.ether.is_none() { self.tls_paths.report() } else { Vec::new() },
            ether_failure: last.ether_failure.clone(),
        }
    }

    /// Returns whether the last connection is over Ethernet.
    fn is_over_ether(&self) -> bool {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).ether.is_some()
    }

    fn note(&self, last: LastDial) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    fn reach(&self, dial: impl Fn(&TlsDial) -> Result<Carrier, DialError>) -> Result<Carrier, DialError> {
        let key = PublicKey::from_raw(self.key.0);
        let mut ether_failure = None;
        if let Some((cards, paths)) = self.host.ether_to(&self.key)
            && self.via.prefers_ether(paths.len())
        {
            let ether = Arc::new(cards.dial_to(&paths, key, ETHER_MAX));
            match self.dial_ether(&ether) {
                Ok(carrier) => {
                    let carrier_name = Some(carrier.peer.carrier);
                    self.note(LastDial { carrier: carrier_name, ether: Some(ether), ether_failure: None });
                    return Ok(carrier);
                }
                Err(why) => ether_failure = Some(why),
            }
        }
        let carrier = self.dial_tls(key, false, dial)?;
        self.note(LastDial { carrier: Some(carrier.peer.carrier), ether: None, ether_failure });
        Ok(carrier)
    }

    /// Dials over Ethernet. An error is the reason to use TLS.
    fn dial_ether(&self, ether: &EtherDial) -> Result<Carrier, String> {
        let carrier = ether.dial().map_err(|error| error.to_string())?;
        // Networks with the same prefix may be separate, as those of virtual machines are.
        let until = Instant::now() + ETHER_MAX;
        loop {
            let paths = ether.paths();
            let up = paths.iter().filter(|path| path.is_up).count();
            if self.via.prefers_ether(up) {
                return Ok(carrier);
            }
            if Instant::now() >= until {
                carrier.closer.close();
                return Err(format!("{up} of {} paths carry data", paths.len()));
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    fn dial_tls(
        &self,
        key: PublicKey,
        is_additional: bool,
        dial: impl Fn(&TlsDial) -> Result<Carrier, DialError>,
    ) -> Result<Carrier, DialError> {
        let nowhere = io::Error::from(io::ErrorKind::HostUnreachable);
        let mut failure = DialError::Connect { address: "the node".to_owned(), error: nowhere };
        let (networks, mut is_cut) = (self.host.networks(), false);
        let mut untried = self.host.sockets_of(&self.key);
        while let Some(choice) = self.tls_paths.next(&mut untried, &networks, is_additional) {
            // Wait for a disconnected card: a second connection over another card increases nothing.
            if is_cut && choice.has_other_connections {
                break;
            }
            let socket = choice.remote;
            let host = HostPort { host: socket.ip().to_string(), port: socket.port() };
            match dial(&TlsDial::expecting(host, Arc::clone(&self.identity), key, ADDRESS_MAX)) {
                Ok(carrier) => return Ok(choice.established(carrier)),
                Err(error) => {
                    // The node is up, because it has another connection: so this path has failed.
                    is_cut |= is_additional && choice.failed();
                    failure = error;
                }
            }
        }
        Err(failure)
    }
}

impl Dial for NodeDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        self.reach(Dial::dial)
    }

    fn dial_again(&self) -> Result<Carrier, DialError> {
        self.reach(Dial::dial_again)
    }

    fn dial_additional(&self) -> Result<Carrier, DialError> {
        match self.is_over_ether() {
            true => self.reach(Dial::dial_again),
            false => self.dial_tls(PublicKey::from_raw(self.key.0), true, Dial::dial_again),
        }
    }

    fn path_count(&self) -> usize {
        match self.is_over_ether() {
            // One connection goes over all cards.
            true => 1,
            false => self.tls_paths.count(&self.host.sockets_of(&self.key), &self.host.networks()),
        }
    }

    fn paths(&self) -> Vec<PathStatus> {
        self.route().paths
    }
}
