//! The packets of one path that are under way: what was in them, which were acknowledged, which are lost.
//!
//! ```text
//! flying ─ acknowledged ─> done
//!    └──── overtaken, or given up ─> lost ─ acknowledged after all ─> done (the path reorders)
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use wirefs_op::Time;

use crate::address::Number;
use crate::limits::{CONTENTS_MAX, FLIGHT_PACKETS_MAX, OVERTAKING_MAX, OVERTAKING_MIN, PACKET_BYTES_PLAIN};
use crate::rate::Mark;
use crate::rtt::Rtt;
use crate::wire::part::Ack;

/// Something in a packet that must be sent again when it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Data { number: Number, offset: u64, bytes: u64, is_last: bool },
    Credit(Number),
    Reset(Number),
    Free(Number),
}

/// What must be sent again of one packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contents([Option<Content>; CONTENTS_MAX]);

impl Contents {
    pub(crate) fn is_full(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    pub(crate) fn push(&mut self, content: Content) {
        if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(content);
        }
    }

    fn iter(&self) -> impl Iterator<Item = Content> {
        self.0.iter().flatten().copied()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Flying,
    Lost,
    Done,
}

/// What a packet is, beside what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It carries acknowledgements only; nobody acknowledges it.
    Silent,
    /// It wants to be acknowledged.
    Asking,
    /// It asks whether the path carries packets of its size.
    Sizing,
}

#[derive(Debug)]
struct Sent {
    at: Time,
    bytes: u64,
    fate: Fate,
    purpose: Purpose,
    contents: Contents,
    mark: Mark,
}

fn is_large(bytes: u64) -> bool {
    bytes > PACKET_BYTES_PLAIN as u64
}

/// What became of packets.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Contents that arrived.
    pub(crate) arrived: Vec<Content>,
    /// Contents that have to be sent again.
    pub(crate) lost: Vec<Content>,
    /// Bytes of the packets that arrived.
    pub(crate) arrived_bytes: u64,
    /// Bytes of the packets that were lost, those that asked for a size left out.
    pub(crate) lost_bytes: u64,
    /// The newest packet that arrived: when it was sent, and what the rate was then.
    pub(crate) newest: Option<(Time, Mark)>,
    /// The round trip of the largest counter, if that is new.
    pub(crate) rtt: Option<Duration>,
    /// The size of a packet that asked for it, and whether it arrived.
    pub(crate) sized: Option<(u64, bool)>,
    /// Whether a packet larger than plain ones arrived that did not ask for its size.
    pub(crate) has_large_arrived: bool,
    /// How many such were lost.
    pub(crate) large_lost: u32,
}

impl Report {
    /// Whether anything new was acknowledged.
    pub(crate) fn is_news(&self) -> bool {
        self.newest.is_some()
    }
}

/// An acknowledgement of what was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeverSent;

#[derive(Debug)]
pub(crate) struct Flight {
    packets: VecDeque<Sent>,
    /// The counter of the first of them.
    first: u64,
    flying_bytes: u64,
    flying: usize,
    largest_acknowledged: Option<u64>,
    /// So many packets may overtake one before it counts as lost.
    overtaking: u64,
    /// When the next one counts as lost for its age.
    loss_at: Option<Time>,
}

impl Flight {
    pub(crate) fn new() -> Flight {
        Flight {
            packets: VecDeque::new(),
            first: 0,
            flying_bytes: 0,
            flying: 0,
            largest_acknowledged: None,
            overtaking: OVERTAKING_MIN,
            loss_at: None,
        }
    }

    /// The counter of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    pub(crate) fn flying_bytes(&self) -> u64 {
        self.flying_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flying == 0
    }

    /// Whether no more asking packets should be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.packets.len() + 1 >= FLIGHT_PACKETS_MAX
    }

    /// Entries held, for the account of memory.
    pub(crate) fn held(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn loss_at(&self) -> Option<Time> {
        self.loss_at
    }

    /// Notes that the packet with the next counter was sent.
    pub(crate) fn push(
        &mut self,
        at: Time,
        bytes: u64,
        purpose: Purpose,
        contents: Contents,
        mark: Mark,
        report: &mut Report,
    ) {
        while self.packets.len() >= FLIGHT_PACKETS_MAX {
            self.lose(0, report);
            self.packets.pop_front();
            self.first += 1;
        }
        let fate = match purpose {
            Purpose::Silent => Fate::Done,
            Purpose::Asking | Purpose::Sizing => {
                self.flying += 1;
                self.flying_bytes += bytes;
                Fate::Flying
            }
        };
        self.packets.push_back(Sent { at, bytes, fate, purpose, contents, mark });
        self.trim(at, Duration::MAX);
    }

    /// Takes an acknowledgement.
    ///
    /// # Errors
    /// It acknowledges what was never sent: its sender lies.
    pub(crate) fn acknowledge(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        rtt: &Rtt,
        report: &mut Report,
    ) -> Result<(), NeverSent> {
        if ack.largest >= self.next() {
            return Err(NeverSent);
        }
        for (first, last) in ack.runs() {
            for counter in (first.max(self.first)..=last).rev() {
                self.arrive(now, counter, counter == ack.largest, report);
            }
        }
        if report.is_news() {
            self.largest_acknowledged = self.largest_acknowledged.max(Some(ack.largest));
            self.detect(now, rtt, report);
        }
        self.trim(now, rtt.patience());
        Ok(())
    }

    fn arrive(&mut self, now: Time, counter: u64, is_largest: bool, report: &mut Report) {
        let next = self.next();
        let Some(sent) = self.packets.get_mut((counter - self.first) as usize) else {
            return;
        };
        match sent.fate {
            Fate::Done => return,
            Fate::Flying => {
                self.flying -= 1;
                self.flying_bytes -= sent.bytes;
            }
            Fate::Lost => self.overtaking = (next - counter).clamp(self.overtaking, OVERTAKING_MAX),
        }
        sent.fate = Fate::Done;
        report.arrived.extend(sent.contents.iter());
        report.arrived_bytes += sent.bytes;
        if report.newest.is_none_or(|(at, _)| at < sent.at) {
            report.newest = Some((sent.at, sent.mark));
        }
        if is_largest {
            report.rtt = Some(now.since(sent.at));
        }
        match sent.purpose {
            Purpose::Sizing => report.sized = Some((sent.bytes, true)),
            Purpose::Silent | Purpose::Asking => report.has_large_arrived |= is_large(sent.bytes),
        }
    }

    /// Finds those that count as lost, since later ones arrived.
    ///
    /// # Source
    /// RFC 9002, section 6.1: by count of later packets, and by age.
    pub(crate) fn detect(&mut self, now: Time, rtt: &Rtt, report: &mut Report) {
        self.loss_at = None;
        let Some(largest) = self.largest_acknowledged.filter(|largest| *largest >= self.first) else {
            return;
        };
        let overtaken = rtt.overtaken();
        for index in 0..=(largest - self.first) as usize {
            let Some(sent) = self.packets.get(index).filter(|sent| sent.fate == Fate::Flying) else {
                continue;
            };
            let due = sent.at + overtaken;
            if self.first + index as u64 + self.overtaking <= largest || due <= now {
                self.lose(index, report);
            } else {
                self.loss_at = Some(self.loss_at.map_or(due, |at| at.min(due)));
            }
        }
        self.trim(now, rtt.patience());
    }

    fn lose(&mut self, index: usize, report: &mut Report) {
        let Some(sent) = self.packets.get_mut(index).filter(|sent| sent.fate == Fate::Flying) else {
            return;
        };
        sent.fate = Fate::Lost;
        self.flying -= 1;
        self.flying_bytes -= sent.bytes;
        report.lost.extend(sent.contents.iter());
        match sent.purpose {
            Purpose::Sizing => report.sized = Some((sent.bytes, false)),
            Purpose::Silent | Purpose::Asking => {
                report.lost_bytes += sent.bytes;
                report.large_lost += u32::from(is_large(sent.bytes));
            }
        }
    }

    /// Gives up so many of the oldest that fly.
    pub(crate) fn give_up(&mut self, most: usize, report: &mut Report) {
        let mut left = most;
        for index in 0..self.packets.len() {
            if left == 0 {
                break;
            }
            if self.packets.get(index).is_some_and(|sent| sent.fate == Fate::Flying) {
                self.lose(index, report);
                left -= 1;
            }
        }
        if self.flying == 0 {
            self.loss_at = None;
        }
        self.trim(Time::default(), Duration::MAX);
    }

    /// Forgets the oldest that are done with. A lost one is remembered for a while, should it arrive after all; but not so
    /// many that no room is left for new ones.
    fn trim(&mut self, now: Time, memory: Duration) {
        while let Some(sent) = self.packets.front() {
            let is_over = match sent.fate {
                Fate::Done => true,
                Fate::Lost => self.packets.len() > FLIGHT_PACKETS_MAX / 2 || now.since(sent.at) / 2 > memory,
                Fate::Flying => false,
            };
            if !is_over {
                break;
            }
            self.packets.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests;
