//! How a client comes to its server: at first, and again after its connection broke.

use super::kernel::Kernel;
use super::{BOOT, Event, Seat, World};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wirefs_client::{Attachment, Client, Config};
use wirefs_op::message::attach::Tattach;
use wirefs_op::message::version::{
    FEATURE_ALONE, FEATURE_BARRIERS, FEATURE_DATA, FEATURE_LEASES, FEATURE_LEDGER, SessionId, Tversion,
    VERSION,
};
use wirefs_op::wire::Text;
use wirefs_op::{NOTAG, Reply, Request, Tag, TreePath};
use wirefs_server::{ConnectionKey, ServerInput};
use wirefs_virtual::TwoLanes;

/// The answers of a client.
pub(super) struct Joined {
    pub(super) connection: ConnectionKey,
    pub(super) attachment: Attachment,
    pub(super) resumed: bool,
    /// Messages that followed the reply to Tattach.
    pub(super) told: Vec<Reply>,
}

impl World {
    /// A connection to a session: Tversion and Tattach. Where somebody has to give way first, time passes.
    pub(super) fn join(&mut self, session: SessionId, config: &Config) -> Joined {
        self.connections += 1;
        let connection = ConnectionKey(self.connections);
        self.handle(ServerInput::Connected(connection));
        self.arriving = Some((connection, Vec::new()));
        let features = FEATURE_LEDGER
            | FEATURE_DATA
            | if config.mode.takes_leases() { FEATURE_LEASES } else { 0 }
            | if config.journal { FEATURE_ALONE | FEATURE_BARRIERS } else { 0 };
        let hello = Tversion { msize: 1 << 20, version: Text::new(VERSION), features, session };
        let attach = Tattach { uname: Text::new(b"test"), path: TreePath::root() };
        self.handle(ServerInput::Received(connection, Request::Version(hello).encode(NOTAG).to_body()));
        self.handle(ServerInput::Received(connection, Request::Attach(attach).encode(Tag(0)).to_body()));
        let is_in = |replies: &[Reply]| replies.iter().any(|reply| matches!(reply, Reply::Attach(_)));
        while !self.arriving.as_ref().is_some_and(|(_, replies)| is_in(replies)) {
            self.step();
        }
        let (mut resumed, mut number, mut attachment, mut told) = (false, 0, None, Vec::new());
        for reply in self.arriving.take().map(|(_, replies)| replies).unwrap_or_default() {
            match reply {
                Reply::Version(version) => (resumed, number) = (version.resumed, version.number),
                Reply::Attach(attach) => {
                    attachment = Some(Attachment {
                        root: attach.root,
                        uid: attach.uid,
                        gid: attach.gid,
                        acts_for_callers: attach.acts_for_callers,
                        read_only: attach.read_only,
                        boot: BOOT,
                        ledger: Some(number),
                        has_barriers: config.journal && !config.fsync_here,
                        data_connections: 3,
                        leases: attach.leases,
                    });
                }
                other => told.push(other),
            }
        }
        let attachment = attachment.expect("the tree lets itself be attached");
        Joined { connection, attachment, resumed, told }
    }

    /// Sends what the server says right behind the reply to Tattach.
    pub(super) fn tell(&mut self, joined: ConnectionKey, told: Vec<Reply>) {
        for reply in told {
            self.reply(joined, NOTAG, &reply, None);
        }
    }

    /// Another client comes, while others are there.
    pub(crate) fn another(&mut self, config: Config) {
        self.seat(config);
    }

    /// Another client.
    pub(super) fn seat(&mut self, config: Config) {
        let seat = self.seats.len();
        let session = SessionId([seat as u8 + 1; 16]);
        let takes_leases = config.mode.takes_leases();
        let Joined { connection, attachment, told, .. } = self.join(session, &config);
        let now = self.now;
        self.seats.push(Seat {
            client: Client::new(config, attachment, now),
            config,
            connection: Some(connection),
            session,
            up: TwoLanes::default(),
            down: TwoLanes::default(),
            notices: VecDeque::new(),
            noticed: now,
            takes_leases,
            kernel: Kernel::new(self.observer.root()),
            is_mute: false,
            sent: Vec::new(),
            answers: BTreeMap::new(),
            invalidated: Vec::new(),
            hang_ups: 0,
            let_go: Vec::new(),
            awaited: Vec::new(),
            notes: Vec::new(),
            anew: 0,
            journal: Vec::new(),
            refused: Vec::new(),
            disk: BTreeMap::new(),
            in_flight_max: 0,
        });
        self.tell(connection, told);
        self.after(Duration::from_millis(500), Event::Tick(seat));
    }

    /// Cuts the connection of a seat: what is on the wire is lost, in both directions. It is there again after a while,
    /// with the same session (`resumed`) or a new one.
    pub(crate) fn cut(&mut self, seat: usize, back_after: Duration, resumed: bool) {
        let Some(connection) = self.seats[seat].connection.take() else { return };
        self.events.retain(|event| match event {
            Event::Arrive(whose, _) | Event::Deliver(_, whose, ..) => *whose != connection,
            _ => true,
        });
        self.cut_all_data(seat);
        self.handle(ServerInput::Disconnected(connection));
        self.seats[seat].client.lost(self.now);
        self.outputs(seat);
        self.after(back_after, Event::Restore(seat, resumed));
    }

    pub(super) fn restore(&mut self, seat: usize, resumed: bool) {
        if !resumed {
            // A new session: what the old one still had to do is done first.
            let is_job = |event: &Event| matches!(event, Event::Execute(_) | Event::Queue(..));
            if self.events.iter().any(|(_, event)| is_job(event)) {
                self.after(Duration::from_millis(10), Event::Restore(seat, false));
                return;
            }
            self.seats[seat].session.0[1] += 1;
        }
        let config = self.seats[seat].config;
        let joined = self.join(self.seats[seat].session, &config);
        assert!(resumed || !joined.resumed, "another session");
        // Not one over which nothing was asked yet.
        let Joined { connection, attachment, resumed, told } = joined;
        let now = self.now;
        let chair = &mut self.seats[seat];
        chair.connection = Some(connection);
        (chair.up, chair.down) = (TwoLanes::default(), TwoLanes::default());
        chair.client.connected(now, attachment, resumed);
        self.tell(connection, told);
        self.outputs(seat);
    }
}
