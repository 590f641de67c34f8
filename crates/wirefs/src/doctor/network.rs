//! Checks of the network.

use std::path::Path;

use super::Finding;

/// The minimum MTU of IPv6, in bytes.
const MTU_MIN: u32 = 1280;
/// The MTU of Ethernet, in bytes.
const MTU_ETHERNET: u32 = 1500;

pub(super) fn checks() -> Vec<Finding> {
    vec![mtu(), raw_sockets()]
}

/// Checks whether ether:// addresses work.
fn raw_sockets() -> Finding {
    const CHECK: &str = "raw sockets";
    if wirefs_carrier::ether::has_right() {
        return Finding::ok(CHECK, "can be opened: ether:// addresses work");
    }
    // Few users need them, so a missing capability is no problem.
    Finding::ok(
        CHECK,
        "may not be opened by this user; for ether:// addresses run wirefs as root, or as root once: \
         setcap cap_net_raw+ep $(command -v wirefs)",
    )
}

/// Checks the MTU of the default route's interface.
fn mtu() -> Finding {
    const CHECK: &str = "MTU";
    let Some(interface) = default_interface() else {
        return Finding::warn(
            CHECK,
            "no default route; other machines can be reached on this network only",
            "connect to a network, or add a route with `ip route add default via ADDRESS`",
        );
    };
    let file = Path::new("/sys/class/net").join(&interface).join("mtu");
    let mtu: u32 = match std::fs::read_to_string(file).map(|text| text.trim().parse()) {
        Ok(Ok(mtu)) => mtu,
        Ok(Err(_)) | Err(_) => {
            return Finding::warn(CHECK, format!("unknown on {interface}"), "look at `ip link`");
        }
    };
    let found = format!("{mtu} bytes on {interface}");
    match mtu {
        0..MTU_MIN => Finding::bad(
            CHECK,
            format!("{found}; IPv6 needs {MTU_MIN}, and small packets are slow"),
            format!("ip link set {interface} mtu {MTU_ETHERNET}, or correct the tunnel's setting"),
        ),
        MTU_MIN..MTU_ETHERNET => {
            Finding::ok(CHECK, format!("{found}, less than Ethernet's {MTU_ETHERNET}: a tunnel"))
        }
        MTU_ETHERNET.. => Finding::ok(CHECK, found),
    }
}

fn default_interface() -> Option<String> {
    let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
    let routes6 = std::fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    routes.lines().find_map(v4).or_else(|| routes6.lines().find_map(v6)).map(str::to_owned)
}

/// `interface destination gateway flags refcnt use metric mask …`, numbers in hexadecimal.
fn v4(line: &str) -> Option<&str> {
    let mut fields = line.split_whitespace();
    let (interface, destination, mask) = (fields.next()?, fields.next()?, fields.nth(5)?);
    (destination == "00000000" && mask == "00000000").then_some(interface)
}

/// `destination prefix source prefix gateway metric refcnt use flags interface`. The loopback has one that rejects.
fn v6(line: &str) -> Option<&str> {
    let mut fields = line.split_whitespace();
    let (destination, prefix) = (fields.next()?, fields.next()?);
    let interface = fields.last()?;
    let is_default = destination.bytes().all(|byte| byte == b'0') && prefix == "00" && interface != "lo";
    is_default.then_some(interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_is_found_in_both_tables() {
        assert_eq!(v4("eth0 00000000 0102A8C0 0003 0 0 100 00000000 0 0 0"), Some("eth0"));
        assert_eq!(v4("eth0 0002A8C0 00000000 0001 0 0 100 00FFFFFF 0 0 0"), None);
        assert_eq!(v4("Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"), None);
        let zero = "0".repeat(32);
        assert_eq!(v6(&format!("{zero} 00 {zero} 00 {zero} 0400 1 0 00000003     wg0")), Some("wg0"));
        assert_eq!(v6(&format!("{zero} 00 {zero} 00 {zero} ffffffff 1 0 00200200       lo")), None);
    }
}
