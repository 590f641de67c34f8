//! A first large file, read in sequence over connections of given rates, in virtual time.

use super::{MB, Share, Time, ms, soonest};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use wirefs_cache::ReadAhead;

const SIZE: u64 = 64 * MB;
/// The sizes of a program's read and of one reply.
const PIECE: u64 = 128 * 1024;
/// There and back, without what is sent.
const ROUND_TRIP: Duration = Duration::from_millis(1);
/// The burst of a card that was idle.
const BURST: u64 = 64 * 1024;
/// A connection is dialled in this.
const DIAL: Duration = Duration::from_millis(5);

struct Card {
    rate: u64,
    /// When all that was asked for has been sent.
    sent: Time,
    share: Share,
    to_come: VecDeque<(Time, u64)>,
}

impl Card {
    fn owes(&self) -> u64 {
        self.to_come.len() as u64 * PIECE
    }

    fn span_of(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes * 1_000_000_000 / self.rate)
    }

    fn ask(&mut self, now: Time, from: u64, to: u64) {
        self.share.asks(now, self.owes());
        let asked = now + ROUND_TRIP;
        for piece in (from..to).step_by(PIECE as usize) {
            let begins = Time(asked.0.saturating_sub(self.span_of(BURST).as_nanos() as u64));
            self.sent = self.sent.max(begins) + self.span_of(PIECE);
            self.to_come.push_back((self.sent.max(asked), piece));
        }
    }
}

struct Read {
    cards: Vec<Card>,
    /// When the others may be used.
    dialled: Option<Time>,
    is_spread: bool,
    ahead: ReadAhead,
    /// Up to where it was asked for.
    asked: u64,
    at: u64,
    here: BTreeSet<u64>,
}

impl Read {
    fn ask(&mut self, now: Time, to: u64) {
        while self.asked < to {
            let end = to.min(self.asked + MB);
            let used = if self.is_spread { self.cards.len() } else { 1 };
            let owed = |index: usize| (index, self.cards[index].owes(), self.cards[index].share.rate(now));
            let over = soonest((0..used).map(owed), end - self.asked).unwrap();
            self.cards[over].ask(now, self.asked, end);
            self.asked = end;
            if self.dialled.is_none() && self.cards[0].owes() >= MB {
                self.dialled = Some(now + DIAL);
            }
        }
    }

    /// The program reads as far as it gets.
    fn go_on(&mut self, now: Time) {
        while self.at < SIZE {
            let end = self.at + PIECE;
            let wanted = self.ahead.advance(self.at, end, 0).min(SIZE);
            self.ask(now, end);
            if wanted == SIZE || wanted.saturating_sub(self.asked) >= (wanted - end) / 4 {
                self.ask(now, wanted);
            }
            if !self.here.remove(&self.at) {
                return;
            }
            self.at = end;
        }
    }

    fn next(&self) -> (Time, usize) {
        let coming = |(index, card): (usize, &Card)| Some((card.to_come.front()?.0, index));
        self.cards.iter().enumerate().filter_map(coming).min().unwrap()
    }
}

/// How long it takes over cards that bring so many megabytes a second.
fn read(rates: &[u64]) -> Duration {
    let card = |rate: &u64| Card {
        rate: rate * 1_000_000,
        sent: Time(0),
        share: Share::default(),
        to_come: VecDeque::new(),
    };
    let begun = ms(1_000);
    let mut read = Read {
        cards: rates.iter().map(card).collect(),
        dialled: None,
        is_spread: false,
        ahead: ReadAhead::default(),
        asked: 0,
        at: 0,
        here: BTreeSet::new(),
    };
    let mut now = begun;
    read.go_on(now);
    while read.at < SIZE {
        let (next, over) = read.next();
        now = next;
        if !read.is_spread && read.dialled.is_some_and(|time| time <= now) {
            read.is_spread = true;
            read.cards[0].share = Share::default();
            read.cards[0].share.asks(now, 0);
        }
        let card = &mut read.cards[over];
        card.share.brings(now, PIECE as usize);
        let (_, piece) = card.to_come.pop_front().unwrap();
        read.here.insert(piece);
        read.go_on(now);
    }
    now.since(begun)
}

/// How long it takes, in percent of what the first card alone takes.
fn percent(rates: &[u64]) -> u128 {
    read(rates).as_nanos() * 100 / read(&rates[..1]).as_nanos()
}

#[test]
fn a_first_large_read_over_two_equal_cards_takes_hardly_more_than_half_as_long() {
    for rate in [2, 25, 100] {
        let percent = percent(&[rate, rate]);
        assert!(percent <= 55, "{rate}: {percent} %");
    }
}

#[test]
fn a_first_large_read_over_a_much_slower_card_as_well_takes_hardly_longer() {
    for rates in [[25, 2], [100, 10], [50, 5]] {
        let percent = percent(&rates);
        assert!(percent <= 110, "{rates:?}: {percent} %");
    }
}

#[test]
fn a_first_large_read_over_a_slower_card_as_well_is_faster() {
    for (rates, most) in [([25, 12], 73), ([25, 6], 87), ([100, 25], 87)] {
        let percent = percent(&rates);
        assert!(percent <= most, "{rates:?}: {percent} %");
    }
}
