//! Reaching a node of the table, wherever it is by then: over Ethernet or TLS.

use super::ether::Via;
use super::host::NodeHost;
use super::ways::{Way, Ways};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::ether::EtherDial;
use wirefs_carrier::tls::{Identity, PublicKey, TlsDial};
use wirefs_carrier::{Carrier, Dial, DialError, HostPort, PathStatus};
use wirefs_node::NodeKey;

/// How long each address may take.
const EACH_MAX: Duration = Duration::from_secs(3);
/// How long Ethernet may take, where TLS is there to fall back on.
const ETHER_MAX: Duration = Duration::from_secs(1);

/// How often it is looked which ways have come up.
const LOOK_EACH: Duration = Duration::from_millis(5);

/// Dials one node: the addresses are those that the table has at that moment, the key is the node's.
pub struct NodeDial {
    host: Arc<NodeHost>,
    key: NodeKey,
    identity: Arc<Identity>,
    via: Via,
    last: Mutex<Last>,
    ways: Ways,
}

/// What came of the last dial.
#[derive(Default)]
struct Last {
    carrier: Option<&'static str>,
    /// Kept for its paths.
    ether: Option<Arc<EtherDial>>,
    no_ether: Option<String>,
}

/// How a node was reached.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// The carrier of the last connection: `ether` or `tcp+tls`; `None`: there was none.
    pub carrier: Option<&'static str>,
    /// Its ways, where it has several.
    pub paths: Vec<PathStatus>,
    /// The cards and addresses that its connections go over, and went over until they broke, where it is TLS.
    pub ways: Vec<Way>,
    /// Why it was not Ethernet, where that was tried.
    pub no_ether: Option<String>,
}

impl NodeDial {
    /// Will dial this node as `identity`.
    pub fn new(host: Arc<NodeHost>, key: NodeKey, identity: Arc<Identity>, via: Via) -> NodeDial {
        NodeDial { host, key, identity, via, last: Mutex::default(), ways: Ways::default() }
    }

    /// How the node was reached last.
    pub fn taken(&self) -> Taken {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        Taken {
            carrier: last.carrier,
            paths: last.ether.as_ref().map(|dial| dial.paths()).unwrap_or_default(),
            ways: if last.ether.is_none() { self.ways.told() } else { Vec::new() },
            no_ether: last.no_ether.clone(),
        }
    }

    /// Whether the last connection is over Ethernet.
    fn is_over_ether(&self) -> bool {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).ether.is_some()
    }

    fn note(&self, last: Last) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    fn reach(&self, dial: impl Fn(&TlsDial) -> Result<Carrier, DialError>) -> Result<Carrier, DialError> {
        let key = PublicKey::from_raw(self.key.0);
        let mut no_ether = None;
        if let Some((cards, ways)) = self.host.ether_to(&self.key)
            && self.via.prefers_ether(ways.len())
        {
            let ether = Arc::new(cards.dial_to(&ways, key, ETHER_MAX));
            match self.over_ether(&ether) {
                Ok(carrier) => {
                    let carrier_name = Some(carrier.peer.carrier);
                    self.note(Last { carrier: carrier_name, ether: Some(ether), no_ether: None });
                    return Ok(carrier);
                }
                Err(why) => no_ether = Some(why),
            }
        }
        let carrier = self.each(key, false, dial)?;
        self.note(Last { carrier: Some(carrier.peer.carrier), ether: None, no_ether });
        Ok(carrier)
    }

    /// Dials over Ethernet; an error says why TLS is to be taken instead.
    fn over_ether(&self, ether: &EtherDial) -> Result<Carrier, String> {
        let carrier = ether.dial().map_err(|error| error.to_string())?;
        // Networks of the same name may be on cables that never meet, as those of virtual machines are.
        let until = Instant::now() + ETHER_MAX;
        loop {
            let paths = ether.paths();
            let up = paths.iter().filter(|path| path.is_up).count();
            if self.via.prefers_ether(up) {
                return Ok(carrier);
            }
            if Instant::now() >= until {
                carrier.closer.close();
                return Err(format!("{up} of {} ways carries data", paths.len()));
            }
            std::thread::sleep(LOOK_EACH);
        }
    }

    fn each(
        &self,
        key: PublicKey,
        is_beside: bool,
        dial: impl Fn(&TlsDial) -> Result<Carrier, DialError>,
    ) -> Result<Carrier, DialError> {
        let nowhere = io::Error::from(io::ErrorKind::HostUnreachable);
        let mut failure = DialError::Connect { address: "the node".to_owned(), error: nowhere };
        let (networks, mut is_cut) = (self.host.networks(), false);
        let mut untried = self.host.sockets_of(&self.key);
        while let Some(choice) = self.ways.next(&mut untried, &networks, is_beside) {
            // A card that is cut is waited for: a second connection over another one brings nothing.
            if is_cut && choice.is_beside_another {
                break;
            }
            let socket = choice.remote;
            let host = HostPort { host: socket.ip().to_string(), port: socket.port() };
            match dial(&TlsDial::expecting(host, Arc::clone(&self.identity), key, EACH_MAX)) {
                Ok(carrier) => return Ok(choice.taken(carrier)),
                Err(error) => {
                    // The node is there, for it has another connection: so it is this way that fails.
                    is_cut |= is_beside && choice.failed();
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
            false => self.each(PublicKey::from_raw(self.key.0), true, Dial::dial_again),
        }
    }

    fn path_count(&self) -> usize {
        match self.is_over_ether() {
            // One connection goes over all cards.
            true => 1,
            false => self.ways.count(&self.host.sockets_of(&self.key), &self.host.networks()),
        }
    }

    fn paths(&self) -> Vec<PathStatus> {
        self.taken().paths
    }
}
