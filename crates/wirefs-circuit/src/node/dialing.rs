//! A group that we dial: hello until a reply comes.

use std::time::Duration;

use wirefs_op::Time;

use crate::address::{GroupId, NodeKey, Way};
use crate::cookie::{COOKIE_BYTES, NO_COOKIE};
use crate::counters::Refused;
use crate::group::Group;
use crate::handshake::{self, HandshakeKey, Hello};
use crate::limits::{COOKIES_MAX, HANDSHAKE_MAX, HANDSHAKE_WAIT_MAX, HANDSHAKE_WAIT_MIN, STRANGERS_MAX};
use crate::node::{Node, Slot};
use crate::output::{DialFault, Output};

#[derive(Debug)]
pub(super) struct Dialling {
    ways: Vec<Way>,
    expected: Option<NodeKey>,
    key: Option<HandshakeKey>,
    cookie: [u8; COOKIE_BYTES],
    /// Cookies for which a hello was sent at once.
    cookies: u32,
    /// The way that the next hello takes.
    turn: usize,
    next: Time,
    wait: Duration,
    until: Time,
    /// Answers of others than who was dialled.
    strangers: u32,
}

impl Dialling {
    pub(super) fn new(now: Time, ways: &[Way], expected: Option<NodeKey>) -> Dialling {
        Dialling {
            ways: ways.to_vec(),
            expected,
            key: None,
            cookie: NO_COOKIE,
            cookies: 0,
            turn: 0,
            next: now,
            wait: HANDSHAKE_WAIT_MIN,
            until: now + HANDSHAKE_MAX,
            strangers: 0,
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.next.min(self.until)
    }
}

impl Node {
    pub(super) fn tick_dialling(&mut self, now: Time, id: GroupId) {
        let Some(Slot::Dialling(dialling)) = self.table.slot(id) else {
            return;
        };
        if dialling.until <= now {
            self.table.vacate(id);
            self.outputs.push_back(Output::Failed { group: id, why: DialFault::Silent });
            return;
        }
        if dialling.next > now {
            return;
        }
        dialling.next = now + dialling.wait;
        dialling.wait = (dialling.wait * 2).min(HANDSHAKE_WAIT_MAX);
        if dialling.key.is_none() {
            dialling.key = self.keys.pop();
        }
        let Some(key) = &dialling.key else {
            return;
        };
        let hello = Hello { group: id, public: *key.public(), cookie: dialling.cookie };
        let Some(way) = dialling.ways.get(dialling.turn).copied() else {
            return;
        };
        dialling.turn = (dialling.turn + 1) % dialling.ways.len();
        self.queue(way, hello.encode().into());
    }

    /// The peer wants to see that we receive at our address: the same hello again, with its cookie. Anybody can say so, so it
    /// hurries us a few times only.
    pub(super) fn take_cookie(
        &mut self,
        now: Time,
        way: Way,
        id: GroupId,
        packet: &[u8],
    ) -> Result<(), Refused> {
        let cookie = handshake::decode_cookie(packet).ok_or(Refused::Malformed)?;
        let Some(Slot::Dialling(dialling)) = self.table.slot(id) else {
            return Err(Refused::Unknown);
        };
        let turn = dialling.ways.iter().position(|known| *known == way).ok_or(Refused::Forged)?;
        if dialling.cookie == cookie {
            return Ok(());
        }
        dialling.cookie = cookie;
        // The way that asked is the one that is told.
        dialling.turn = turn;
        if dialling.cookies >= COOKIES_MAX {
            return Ok(());
        }
        dialling.cookies += 1;
        dialling.next = now;
        self.tick_dialling(now, id);
        Ok(())
    }

    /// Who answered is not who was dialled. Somebody else on the segment may only have been faster, so it is asked again a
    /// few times.
    fn meet_stranger(&mut self, id: GroupId, peer: NodeKey) -> Result<(), Refused> {
        if let Some(Slot::Dialling(dialling)) = self.table.slot(id) {
            dialling.strangers += 1;
            if dialling.strangers >= STRANGERS_MAX {
                self.table.vacate(id);
                self.outputs.push_back(Output::Failed { group: id, why: DialFault::Stranger(peer) });
            }
        }
        Err(Refused::Unwelcome)
    }

    pub(super) fn take_reply(
        &mut self,
        now: Time,
        way: Way,
        id: GroupId,
        packet: &[u8],
    ) -> Result<(), Refused> {
        let Some(Slot::Dialling(dialling)) = self.table.slot(id) else {
            return Err(Refused::Unknown);
        };
        let path = dialling.ways.iter().position(|known| *known == way).ok_or(Refused::Forged)?;
        let public = *dialling.key.as_ref().ok_or(Refused::Unknown)?.public();
        let hello = Hello { group: id, public, cookie: NO_COOKIE };
        if !handshake::is_reply_to(&hello, packet) {
            return Err(Refused::Forged);
        }
        // It is used up, whatever comes of it; the next hello has another.
        let key = dialling.key.take().ok_or(Refused::Unknown)?;
        let replied = handshake::take_reply(&hello, key, packet).ok_or(Refused::Forged)?;
        let (peer, expected) = (replied.peer, dialling.expected);
        if peer == self.own {
            // Somebody sent our hello back to us.
            return Err(Refused::Forged);
        }
        if !expected.map_or_else(|| self.trust.covers(peer), |expected| expected == peer) {
            return self.meet_stranger(id, peer);
        }
        let ways = std::mem::take(&mut dialling.ways);
        let Some((finish, secrets)) =
            handshake::finish(&self.identity, &replied.agreed, replied.group, path as u8)
        else {
            self.table.vacate(id);
            self.outputs.push_back(Output::Failed { group: id, why: DialFault::Silent });
            return Err(Refused::Forged);
        };
        self.queue(way, finish.clone().into());
        let mut group = Group::dialler(now, peer, replied.group, secrets, &ways, path, finish, &self.cards);
        group.is_told = true;
        self.table.put(id, Slot::Joined(Box::new(group)));
        self.outputs.push_back(Output::Joined { group: id, peer, is_dialled: true });
        self.listen(id);
        Ok(())
    }
}
