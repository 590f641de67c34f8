//! `ether` addresses, as users write them.

use std::fmt;

use wirefs_circuit::limits::CARDS_MAX;
use wirefs_raw::HardwareAddress;

/// Cards of this machine, and the hardware addresses of the peer's cards: none for listening.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EtherAddress {
    /// The peer's cards: one that all our cards reach, or one for each of ours, in the same order.
    pub remotes: Vec<HardwareAddress>,
    /// The names of our cards.
    pub cards: Vec<String>,
}

type Wrong = (&'static str, &'static str);

const EXAMPLE: &str = "write ether://52:54:00:12:34:56@eth0/path, or ether://eth0 to listen";
/// The longest interface name, in bytes.
const CARD_NAME_MAX: usize = 15;

impl EtherAddress {
    /// Parses `[MAC[,MAC]@]CARD[,CARD]`.
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        let (remotes, cards) = match text.split_once('@') {
            Some((remotes, cards)) => (remotes.split(',').map(parse_hardware).collect(), cards),
            None => (Some(Vec::new()), text),
        };
        let remotes = remotes.ok_or(("has a hardware address that is none", EXAMPLE))?;
        let cards: Vec<String> = cards.split(',').map(str::to_owned).collect();
        let is_name = |card: &String| {
            let is_sane = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'@');
            (1..=CARD_NAME_MAX).contains(&card.len()) && card.bytes().all(is_sane)
        };
        if !cards.iter().all(is_name) {
            return Err(("names no network card", EXAMPLE));
        }
        let is_twice =
            cards.iter().enumerate().any(|(at, card)| cards.iter().skip(at + 1).any(|it| it == card));
        if cards.len() > CARDS_MAX || is_twice {
            return Err(("names more than eight cards, or one twice", EXAMPLE));
        }
        if remotes.len() > 1 && remotes.len() != cards.len() {
            return Err((
                "has another number of hardware addresses than of cards",
                "write one address for all cards, or one for each: ether://MAC1,MAC2@eth0,eth1/path",
            ));
        }
        Ok(Self { remotes, cards })
    }

    /// Returns the peer's card that our card number `index` reaches.
    pub(crate) fn remote(&self, index: usize) -> Option<HardwareAddress> {
        self.remotes.get(index).or_else(|| self.remotes.first()).copied()
    }

    /// Returns the peer's name in known-hosts files: its first card.
    pub fn peer_name(&self) -> String {
        match self.remotes.first() {
            Some(remote) => format!("ether://{}", MacAddress(*remote)),
            None => "ether://".to_owned(),
        }
    }
}

fn parse_hardware(text: &str) -> Option<HardwareAddress> {
    let mut bytes = [0; 6];
    let mut fields = text.split(':');
    for byte in &mut bytes {
        let field = fields.next().filter(|field| field.len() == 2)?;
        *byte = u8::from_str_radix(field, 16).ok().filter(|_| !field.starts_with('+'))?;
    }
    // The lowest bit of the first byte marks multicast addresses.
    let is_one = bytes.first().is_some_and(|first| first & 1 == 0) && bytes != [0; 6];
    (fields.next().is_none() && is_one).then_some(HardwareAddress(bytes))
}

/// A hardware address in text form.
pub(crate) struct MacAddress(pub(crate) HardwareAddress);

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HardwareAddress([a, b, c, d, e, g]) = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Display for EtherAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ether://")?;
        for (at, remote) in self.remotes.iter().enumerate() {
            let before = if at == 0 { "" } else { "," };
            write!(f, "{before}{}", MacAddress(*remote))?;
        }
        if !self.remotes.is_empty() {
            f.write_str("@")?;
        }
        f.write_str(&self.cards.join(","))
    }
}
