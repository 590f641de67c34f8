//! Tversion and Tattach, and what comes before they are answered.

use super::{Line, Seat};
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
use wirefs_server::{ConnectionKey, Input};

/// How long the server may take over both answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first wait before dialling again, in milliseconds; each further one is twice as long.
const RETRY_FIRST: u64 = 100;
/// Data connections of a client, at most.
const DATA_CONNECTIONS_MAX: usize = 3;
/// How often that doubles.
const RETRY_DOUBLES: u32 = 5;

/// What the answer to Tversion says.
#[derive(Clone, Copy, Debug)]
struct Welcome {
    boot: BootId,
    resumed: bool,
    leases: bool,
    data: bool,
    /// Where the numbers of changes go on, if they have any.
    ledger: Option<u64>,
}

/// What was heard before the tree was attached.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    version: Option<Welcome>,
    /// Recalls.
    early: Vec<Bytes>,
}

impl World {
    pub(crate) fn dials_again(&mut self, index: usize) {
        let wait = self.dice.below(RETRY_FIRST / 2);
        let Some(seat) = self.seats.get_mut(index) else { return };
        let wait = (RETRY_FIRST << seat.dials.min(RETRY_DOUBLES)) + wait;
        seat.dials += 1;
        let life = seat.life;
        self.after(Duration::from_millis(wait), Event::Dial(index, life));
    }

    pub(crate) fn dial(&mut self, index: usize, life: u64) {
        let Some(seat) = self.seats.get(index) else { return };
        if seat.life != life || seat.is_down || !matches!(seat.line, Line::Waiting) {
            return;
        }
        let (own, takes_leases) = (seat.session, seat.takes_leases());
        let session = self.ahead.as_ref().map_or(own, |ahead| ahead.session(own));
        if !self.server.is_up || self.is_line_stalled(index) {
            self.record.refused += 1;
            return self.dials_again(index);
        }
        let connection = self.server.new_connection();
        self.wires.insert(connection, Wire::new(index, life));
        if let Some(seat) = self.seats.get_mut(index) {
            seat.line = Line::Dialling(connection, Greeting::default());
        }
        self.note(|| format!("client {index} dials: connection {}", connection.0));
        self.tell_server(Input::Connected(connection));
        let features = FEATURE_LEDGER | if takes_leases { FEATURE_LEASES } else { 0 };
        let features = if self.plan.is_ahead() { features | FEATURE_ALONE } else { features };
        let features = if self.plan.is_narrow { features | FEATURE_DATA } else { features };
        let msize = MESSAGE_BYTES_MAX as u32;
        let version = Tversion { msize, version: Text::new(VERSION), features, session };
        let attach = Tattach { uname: Text::new(b"sim"), path: TreePath::root() };
        for frame in [Request::Version(version).encode(NOTAG), Request::Attach(attach).encode(Tag(0))] {
            self.send_up(connection, frame.to_body(), Lane::Changes);
        }
        self.after(PATIENCE, Event::Impatient(index, connection));
    }

    /// The server takes too long.
    pub(crate) fn impatient(&mut self, index: usize, connection: ConnectionKey) {
        let waits = |seat: &Seat| matches!(seat.line, Line::Dialling(dialled, _) if dialled == connection);
        if self.seats.get(index).is_some_and(waits) {
            self.seat_loses(connection);
        }
    }

    /// A message before the tree is attached.
    pub(super) fn greeted(&mut self, index: usize, connection: ConnectionKey, body: Bytes) {
        let Some(seat) = self.seats.get_mut(index) else { return };
        let Line::Dialling(dialled, greeting) = &mut seat.line else { return };
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
            Ok((_, Reply::Error(_))) => self.seat_loses(connection),
            other => self.fail(format!("client {index} is greeted with {other:?}")),
        }
    }

    /// The tree is attached.
    fn attached(&mut self, index: usize, connection: ConnectionKey, greeting: Greeting, attach: Rattach) {
        let Some(Welcome { boot, resumed, leases, data, ledger }) = greeting.version else {
            return self.fail(format!("client {index} was attached before it was greeted"));
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
        // While what goes first goes over it, it is not the client's.
        if let Some(seat) = self.seats.get_mut(index) {
            seat.line = Line::Bringing(connection);
        }
        if self.begins_to_bring(connection, &attachment) {
            return;
        }
        if let Some(seat) = self.seats.get_mut(index) {
            seat.line = Line::Up(connection);
        }
        let kept = attachment.leases.as_ref().map(|leases| leases.kept);
        self.note(|| format!("client {index} is attached, resumed {resumed}, leases kept {kept:?}"));
        let (now, told) = (self.now, self.now + self.plan.lost_is_told());
        let Some(seat) = self.seats.get_mut(index) else { return };
        (seat.up_since, seat.dials) = (Some(now), 0);
        // Of a boot before nothing is left but a ledger that has counted changes.
        let first = if seat.boot.replace(boot) == Some(boot) { 0 } else { 1 };
        let knows_changes = first == 0 && resumed || attachment.ledger.is_some_and(|number| number > first);
        if seat.client.is_some() && !knows_changes {
            seat.last_unknown = Some(now);
        }
        let local = seat.clock(now);
        let life = seat.life;
        match &mut seat.client {
            None => {
                let session = seat.session;
                seat.client = Some(Client::new(seat.config, attachment, local));
                self.begin_journal(session, boot);
                self.drive(index, Client::greet);
                self.begin_programs(index);
            }
            Some(_) => {
                self.record.resumed += u64::from(resumed);
                self.record.unknown += u64::from(!resumed);
                self.record.kept += u64::from(kept == Some(true));
                self.record.unkept += u64::from(kept == Some(false));
                self.truth.tells_lost(index, life, told);
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
        self.lines.get(index).is_some_and(|line| line.stalled_up.max(line.stalled_down) > self.now)
    }
}
