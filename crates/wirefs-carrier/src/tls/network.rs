//! Networks in CIDR notation.

use std::fmt;
use std::net::IpAddr;

/// A network such as `192.168.0.0/16` or `fd00::/8`; an address alone is a network of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// Leading bits that count.
    prefix: u32,
}

impl Network {
    /// Parses `ADDRESS` or `ADDRESS/BITS`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let prefix = prefix.unwrap_or(width(address));
        (prefix <= width(address)).then_some(Self { address, prefix })
    }

    /// Returns whether the address is in this network. An IPv4 address in IPv6 form counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4()
            && leading(address, self.prefix) == leading(self.address, self.prefix)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == width(self.address) {
            return write!(f, "{}", self.address);
        }
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { u32::BITS } else { u128::BITS }
}

/// Returns the first `prefix` bits of the address.
fn leading(address: IpAddr, prefix: u32) -> u128 {
    let (bits, width) = match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), u32::BITS),
        IpAddr::V6(address) => (u128::from(address), u128::BITS),
    };
    bits.checked_shr(width - prefix).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_contains_the_addresses_with_its_prefix() {
        for (network, inside, outside) in [
            ("10.1.0.0/16", "10.1.255.3", "10.2.0.1"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.1.2.3/8", "10.200.0.1", "11.1.2.3"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("fd00::/8", "fdff::1", "fe80::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("192.0.2.0/31", "::ffff:192.0.2.1", "::ffff:192.0.2.2"),
        ] {
            let found = Network::parse(network).unwrap();
            assert!(found.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!found.contains(outside.parse().unwrap()), "{network} {outside}");
            assert_eq!(Network::parse(&found.to_string()), Some(found));
        }
    }

    #[test]
    fn text_that_is_no_network_is_rejected() {
        for text in ["", "10.0.0.0/33", "fd00::/129", "10.0.0/8", "host", "10.0.0.0/", "10.0.0.0/-1"] {
            assert_eq!(Network::parse(text), None, "{text:?}");
        }
    }
}
