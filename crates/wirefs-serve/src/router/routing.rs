//! The choice of the export by the first messages of a connection.

use super::super::options::PeerRights;
use super::super::server::Server;
use super::{RouterState, UNNAMED};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use wirefs_carrier::{Carrier, CarrierLost, FrameSource, SendProgress};
use wirefs_op::message::attach::Tattach;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::version::{FEATURE_JOIN, Rversion, Tversion, VERSION};
use wirefs_op::wire::Text;
use wirefs_op::{Errno, Frame, NOTAG, Reply, Request, TreePath};

/// How long a refused peer may take to receive the reason.
const REFUSAL_MAX: Duration = Duration::from_secs(2);
/// Names of exports in an error text, which has 255 bytes at most.
const NAMES_MAX: usize = 12;
/// Attempts of a peer to agree on a version.
const VERSIONS_MAX: usize = 4;

/// The destination of a connection.
pub(super) struct Routed {
    pub(super) server: Arc<Server>,
    pub(super) rights: PeerRights,
    /// The messages that were received before.
    first: VecDeque<Bytes>,
}

/// The reason why a connection is not served.
pub(super) enum Refusal {
    /// The peer gets this text.
    Explained(String),
    /// The connection is lost, or the peer does not keep to the protocol.
    Gone,
}

impl Routed {
    /// Returns the carrier with the messages that were received before.
    pub(super) fn replayed(&self, carrier: Carrier) -> Carrier {
        let source = Replayed { first: self.first.clone(), source: carrier.source };
        Carrier { source: Box::new(source), ..carrier }
    }
}

/// A source that begins with messages that were received before.
struct Replayed {
    first: VecDeque<Bytes>,
    source: Box<dyn FrameSource>,
}

impl FrameSource for Replayed {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        match self.first.pop_front() {
            Some(body) => Ok(Some(body)),
            None => self.source.receive(),
        }
    }
}

impl RouterState {
    /// Checks whether the peer may use this export.
    pub(super) fn enter(
        &self,
        carrier: &Carrier,
        name: &str,
        server: Arc<Server>,
    ) -> Result<Routed, Refusal> {
        match (self.access)(&carrier.peer, name) {
            Some(rights) => Ok(Routed { server, rights, first: VecDeque::new() }),
            None => Err(Refusal::Explained(self.no_export(carrier, name))),
        }
    }

    /// Receives the first messages and returns the export for them.
    pub(super) fn route(&self, carrier: &mut Carrier) -> Result<Routed, Refusal> {
        let (version, body) = agree_on_version(carrier)?;
        if version.features & FEATURE_JOIN != 0 {
            let holder = self.exports().iter().find(|(_, it)| it.has_session(&version.session)).map(clone);
            // Without its session, each export refuses the connection alike.
            let any = || self.exports().iter().next().map(clone);
            let (name, server) = holder.or_else(any).ok_or(Refusal::Gone)?;
            let mut routed = self.enter(carrier, &name, server)?;
            routed.first.push_back(body);
            return Ok(routed);
        }
        let attach = receive(carrier)?;
        let Ok((tag, Request::Attach(Tattach { uname, path }))) = Request::decode(attach) else {
            return Err(Refusal::Gone);
        };
        let mut names = path.names();
        let name = names.next().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
        let below = TreePath::from_names(names).ok_or(Refusal::Gone)?;
        let server = self.exports().get(&name).cloned();
        let server = server.ok_or_else(|| Refusal::Explained(self.no_export(carrier, &name)))?;
        let mut routed = self.enter(carrier, &name, server)?;
        let attach = Request::Attach(Tattach { uname, path: below }).encode(tag);
        routed.first.extend([body, attach.to_body()]);
        Ok(routed)
    }

    /// Returns the text for a peer that names no export, or one that it may not use: both look the same.
    fn no_export(&self, carrier: &Carrier, name: &str) -> String {
        let peer = &carrier.peer;
        let names: Vec<String> = self.exports().keys().cloned().collect();
        let usable = names.iter().filter(|name| (self.access)(peer, name).is_some());
        let usable: Vec<&str> = usable.map(String::as_str).take(NAMES_MAX).collect();
        let key = peer.identity.map(|key| key.to_string()).unwrap_or_default();
        match (name, usable.as_slice()) {
            (UNNAMED, []) => {
                format!("this key may use no export here; run on the server: wirefs allow {key}")
            }
            (name, []) => {
                format!(
                    "this key may use no export `{name}`; run on the server: wirefs allow --export {name} {key}"
                )
            }
            (UNNAMED, usable) => format!("name one of its exports after the host: /{}", usable.join(", /")),
            (name, usable) => {
                format!("it has no export `{name}` for this key; name one of these: /{}", usable.join(", /"))
            }
        }
    }
}

fn clone((name, server): (&String, &Arc<Server>)) -> (String, Arc<Server>) {
    (name.clone(), Arc::clone(server))
}

/// Receives Tversion with a version of ours; answers others with `unknown`.
fn agree_on_version(carrier: &mut Carrier) -> Result<(Tversion, Bytes), Refusal> {
    for _ in 0..VERSIONS_MAX {
        let body = receive(carrier)?;
        let Ok((NOTAG, Request::Version(version))) = Request::decode(body.clone()) else {
            return Err(Refusal::Gone);
        };
        if version.version.as_bytes() == VERSION {
            return Ok((version, body));
        }
        let (msize, version) = (version.msize, Text::new(b"unknown"));
        let unknown =
            Rversion { msize, version, features: 0, boot: Default::default(), resumed: false, number: 0 };
        send(carrier, Reply::Version(unknown).encode(NOTAG)).map_err(|_| Refusal::Gone)?;
    }
    Err(Refusal::Gone)
}

fn receive(carrier: &mut Carrier) -> Result<Bytes, Refusal> {
    carrier.source.receive().ok().flatten().ok_or(Refusal::Gone)
}

/// Sends the reason to the peer, and closes the connection.
pub(super) fn refuse(mut carrier: Carrier, text: &str) {
    super::super::log::peer(format_args!("refused {}: {text}", carrier.peer.address));
    let error = Rerror { errno: Errno::AccessDenied, ename: Text::new(text.as_bytes()) };
    // A peer that is gone needs no reason.
    let _gone = send(&mut carrier, Reply::Error(error).encode(NOTAG));
    carrier.closer.close_lingering();
}

fn send(carrier: &mut Carrier, frame: Frame) -> Result<(), CarrierLost> {
    let mut queue = VecDeque::from([frame]);
    while carrier.sink.send(&mut queue)? == SendProgress::Blocked {
        if !carrier.sink.wait_writable(REFUSAL_MAX)? {
            return Err(CarrierLost::Closed);
        }
    }
    Ok(())
}
