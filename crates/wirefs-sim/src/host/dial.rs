//! Tversion and Tattach, and the messages before their answers.

use super::{ConnectionState, Host};
use crate::wire::Wire;
use crate::world::{Event, World};
use bytes::Bytes;
use std::time::Duration;
use wirefs_client::{Attachment, Client, Lane};
use wirefs_op::limits::MESSAGE_BYTES_MAX;
use wirefs_op::message::attach::{Rattach, Tattach};
use wirefs_op::message::version::{
    BootId, FEATURE_ALONE, FEATURE_DATA, FEATURE_LEASES, FEATURE_LEDGER, Tversion, VERSION,
};
use wirefs_op::wire::Text;
use wirefs_op::{NOTAG, Reply, Request, Tag, TreePath};
use wirefs_server::{ConnectionKey, ServerInput};

/// The maximum time for both answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first delay before another dial, in milliseconds; each further one is twice as long.
const RETRY_FIRST: u64 = 100;
/// The maximum number of data connections of a client.
const DATA_CONNECTIONS_MAX: usize = 3;
/// The number of doublings of the delay.
const RETRY_DOUBLES: u32 = 5;

/// The answer to Tversion.
#[derive(Clone, Copy, Debug)]
struct Welcome {
    boot: BootId,
    resumed: bool,
    leases: bool,
    data: bool,
    /// The next change number, if the session has one.
    ledger: Option<u64>,
}

/// The messages before the tree was attached.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    version: Option<Welcome>,
    /// Recalls.
    early: Vec<Bytes>,
}

impl World {
    pub(crate) fn dials_again(&mut self, index: usize) {
        let wait = self.dice.below(RETRY_FIRST / 2);
        let Some(host) = self.hosts.get_mut(index) else { return };
        let wait = (RETRY_FIRST << host.dials.min(RETRY_DOUBLES)) + wait;
        host.dials += 1;
        let life = host.life;
        self.after(Duration::from_millis(wait), Event::Dial(index, life));
    }

    pub(crate) fn dial(&mut self, index: usize, life: u64) {
        let Some(host) = self.hosts.get(index) else { return };
        if host.life != life || host.is_down || !matches!(host.connection_state, ConnectionState::Waiting) {
            return;
        }
        let (own, takes_leases) = (host.session, host.takes_leases());
        let session = self.ahead.as_ref().map_or(own, |ahead| ahead.session(own));
        if !self.server.is_up || self.is_line_stalled(index) {
            self.counts.refused += 1;
            return self.dials_again(index);
        }
        let connection = self.server.new_connection();
        self.wires.insert(connection, Wire::new(index, life));
        if let Some(host) = self.hosts.get_mut(index) {
            host.connection_state = ConnectionState::Dialling(connection, Greeting::default());
        }
        self.note(|| format!("client {index} dials: connection {}", connection.0));
        self.tell_server(ServerInput::Connected(connection));
        let features = FEATURE_LEDGER | if takes_leases { FEATURE_LEASES } else { 0 };
        let features = if self.plan.is_ahead() { features | FEATURE_ALONE } else { features };
        let features = if self.plan.is_narrow { features | FEATURE_DATA } else { features };
        let msize = MESSAGE_BYTES_MAX as u32;
        let version = Tversion { msize, version: Text::new(VERSION), features, session };
        let attach = Tattach { uname: Text::new(b"sim"), path: TreePath::root() };
        for frame in [Request::Version(version).encode(NOTAG), Request::Attach(attach).encode(Tag(0))] {
            self.send_up(connection, frame.to_body(), Lane::Changes);
        }
        self.after(PATIENCE, Event::DialTimeout(index, connection));
    }

    /// Closes a connection whose server takes too long.
    pub(crate) fn dial_timeout(&mut self, index: usize, connection: ConnectionKey) {
        let waits = |host: &Host| matches!(host.connection_state, ConnectionState::Dialling(dialled, _) if dialled == connection);
        if self.hosts.get(index).is_some_and(waits) {
            self.host_loses(connection);
        }
    }

    /// Takes a message before the tree is attached.
    pub(super) fn receive_greeting(&mut self, index: usize, connection: ConnectionKey, body: Bytes) {
        let Some(host) = self.hosts.get_mut(index) else { return };
        let ConnectionState::Dialling(dialled, greeting) = &mut host.connection_state else { return };
        if *dialled != connection {
            return;
        }
        match Reply::decode(body.clone()) {
            Ok((_, Reply::Version(version))) => {
                let has = |feature: u64| version.features & feature != 0;
                greeting.version = Some(Welcome {
                    boot: version.boot,
                    resumed: version.resumed,
                    leases: has(FEATURE_LEASES),
                    data: has(FEATURE_DATA),
                    ledger: has(FEATURE_LEDGER).then_some(version.number),
                });
            }
            Ok((_, Reply::Recall(_) | Reply::Alone(_))) => greeting.early.push(body),
            Ok((_, Reply::Attach(attach))) => {
                let greeting = std::mem::take(greeting);
                self.attached(index, connection, greeting, attach);
            }
            Ok((_, Reply::Error(_))) => self.host_loses(connection),
            other => self.fail(format!("client {index} gets {other:?} before it is attached")),
        }
    }

    /// Completes the attach.
    fn attached(&mut self, index: usize, connection: ConnectionKey, greeting: Greeting, attach: Rattach) {
        let Some(Welcome { boot, resumed, leases, data, ledger }) = greeting.version else {
            return self.fail(format!("client {index} was attached without a version"));
        };
        let attachment = Attachment {
            root: attach.root,
            uid: attach.uid,
            gid: attach.gid,
            acts_for_callers: attach.acts_for_callers,
            read_only: attach.read_only,
            boot,
            ledger,
            has_barriers: false,
            data_connections: if data { DATA_CONNECTIONS_MAX } else { 0 },
            leases: attach.leases.filter(|_| leases),
        };
        // A delivery uses the connection first.
        if let Some(host) = self.hosts.get_mut(index) {
            host.connection_state = ConnectionState::Delivering(connection);
        }
        if self.begin_delivery(connection, &attachment) {
            return;
        }
        if let Some(host) = self.hosts.get_mut(index) {
            host.connection_state = ConnectionState::Up(connection);
        }
        let kept = attachment.leases.as_ref().map(|leases| leases.kept);
        self.note(|| format!("client {index} is attached, resumed {resumed}, leases kept {kept:?}"));
        let (now, known_at) = (self.now, self.now + self.plan.outcome_delay_max());
        let Some(host) = self.hosts.get_mut(index) else { return };
        (host.up_since, host.dials) = (Some(now), 0);
        // After a restart of the machine, only a ledger with changes is left.
        let first = if host.boot.replace(boot) == Some(boot) { 0 } else { 1 };
        let knows_changes = first == 0 && resumed || attachment.ledger.is_some_and(|number| number > first);
        if host.client.is_some() && !knows_changes {
            host.last_unknown = Some(now);
        }
        let local = host.clock(now);
        let life = host.life;
        match &mut host.client {
            None => {
                let session = host.session;
                host.client = Some(Client::new(host.config, attachment, local));
                self.begin_journal(session, boot);
                self.drive(index, Client::greet);
                self.begin_programs(index);
            }
            Some(_) => {
                self.counts.resumed += u64::from(resumed);
                self.counts.unknown += u64::from(!resumed);
                self.counts.kept += u64::from(kept == Some(true));
                self.counts.unkept += u64::from(kept == Some(false));
                self.truth.outcomes_known_at(index, life, known_at);
                self.drive(index, |client, now| client.connected(now, attachment, resumed));
            }
        }
        for body in greeting.early {
            if let Some(Err(blamed)) = self.drive(index, |client, now| client.receive(now, body)) {
                self.fail(format!("client {index} blames an early recall: {blamed}"));
            }
        }
    }

    pub(super) fn is_line_stalled(&self, index: usize) -> bool {
        self.paths.get(index).is_some_and(|connection_state| {
            connection_state.stalled_up.max(connection_state.stalled_down) > self.now
        })
    }
}
