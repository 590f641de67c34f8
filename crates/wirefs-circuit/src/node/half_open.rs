//! A stranger's hello, and what becomes of it.

use bytes::Bytes;
use wirefs_op::Time;

use crate::address::{GroupId, Way};
use crate::counters::Refused;
use crate::group::Group;
use crate::handshake::{self, Agreed, Hello};
use crate::limits::{HALF_OPEN_FREE, HALF_OPEN_MAX, HALF_OPEN_PER_ADDRESS_MAX, HANDSHAKE_MAX};
use crate::node::{Node, Slot};
use crate::output::{Lost, Output};

#[derive(Debug)]
pub(super) struct HalfOpen {
    way: Way,
    hello: Hello,
    reply: Bytes,
    agreed: Agreed,
    pub(super) until: Time,
}

impl Node {
    /// Answers a hello; when many strangers wait, only one that shows a cookie.
    ///
    /// # Cost
    /// A hash and a packet for a stranger without cookie; else one agreement and one signature.
    pub(super) fn take_hello(
        &mut self,
        now: Time,
        way: Way,
        group: GroupId,
        packet: &[u8],
    ) -> Result<(), Refused> {
        let hello = Hello::decode(group, packet).ok_or(Refused::Malformed)?;
        let (mut strangers, mut of_way, mut oldest, mut known) = (0, 0, None, None);
        for (id, slot) in self.table.entries() {
            match slot {
                Slot::HalfOpen(half) => {
                    strangers += 1;
                    if half.way != way {
                        continue;
                    }
                    of_way += 1;
                    if oldest.is_none_or(|(until, _)| half.until < until) {
                        oldest = Some((half.until, id));
                    }
                    if half.hello.public == hello.public && half.hello.group == group {
                        known = Some(half.reply.clone());
                    }
                }
                // One that was not let in is still being told so.
                Slot::Joined(group) => strangers += usize::from(group.lost().is_some()),
                Slot::Vacant | Slot::Dialling(_) => {}
            }
        }
        if let Some(reply) = known {
            self.queue(way, reply);
            return Ok(());
        }
        let is_crowded = strangers >= HALF_OPEN_FREE || of_way >= HALF_OPEN_PER_ADDRESS_MAX;
        if is_crowded && !self.baker.is_good(now, way.card, way.remote, &hello.public, &hello.cookie) {
            let cookie = self.baker.bake(now, way.card, way.remote, &hello.public);
            self.queue(way, handshake::encode_cookie(group, &cookie).into());
            self.counters.cookies += 1;
            return Ok(());
        }
        // It showed that it is there: what somebody else began in its name makes room for it.
        if let Some((_, id)) = oldest.filter(|_| of_way >= HALF_OPEN_PER_ADDRESS_MAX) {
            self.table.vacate(id);
            strangers -= 1;
        }
        if strangers >= HALF_OPEN_MAX {
            return Err(Refused::Unwelcome);
        }
        let own = self.table.take().ok_or(Refused::Unwelcome)?;
        let key = self.keys.pop().ok_or(Refused::Unwelcome)?;
        let (reply, agreed) = handshake::reply(&self.identity, &hello, own, key).ok_or(Refused::Forged)?;
        let reply = Bytes::from(reply);
        let half = HalfOpen { way, hello, reply: reply.clone(), agreed, until: now + HANDSHAKE_MAX };
        self.table.put(own, Slot::HalfOpen(Box::new(half)));
        self.queue(way, reply);
        Ok(())
    }

    /// The stranger proves who it is.
    pub(super) fn take_finish(
        &mut self,
        now: Time,
        way: Way,
        id: GroupId,
        packet: &[u8],
    ) -> Result<(), Refused> {
        let half = match self.table.slot(id) {
            Some(Slot::HalfOpen(half)) if half.way == way => half,
            Some(Slot::HalfOpen(_)) => return Err(Refused::Forged),
            // Sent again, since our first packet is still on its way.
            Some(Slot::Joined(_)) => return Ok(()),
            Some(Slot::Vacant | Slot::Dialling(_)) | None => return Err(Refused::Unknown),
        };
        let (peer, path, secrets) = handshake::take_finish(&half.agreed, packet).ok_or(Refused::Forged)?;
        let remote = half.hello.group;
        let mut group = Group::dialled(now, peer, remote, secrets, way, path, &self.cards);
        if self.trust.covers(peer) {
            group.is_told = true;
            self.outputs.push_back(Output::Joined { group: id, peer, is_dialled: false });
            self.table.put(id, Slot::Joined(Box::new(group)));
            self.listen(id);
            return Ok(());
        }
        group.close(now, Lost::Closed);
        self.table.put(id, Slot::Joined(Box::new(group)));
        Err(Refused::Unwelcome)
    }
}
