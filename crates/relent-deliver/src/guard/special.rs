//! The registries of special-purpose addresses as tables.
//!
//! # Source
//!
//! IANA's IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its successors), read strictly: a
//! range that is not plainly for hosts on the public internet is denied as a whole, even where the registry
//! carves single public addresses out of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Whether this is an ordinary address of the public internet. One that embeds another must be unpacked
/// first.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !SPECIAL_V4.iter().any(|range| range.contains(&v4)),
        // Everything outside of it is unassigned or special, so what is invented later is denied today.
        IpAddr::V6(v6) => GLOBAL_UNICAST.contains(&v6) && !SPECIAL_V6.iter().any(|range| range.contains(&v6)),
    }
}

/// The IPv4 address inside an IPv6 one, in every form whose packets end there.
pub(super) fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if SIX_TO_FOUR.contains(&address) {
        let [_, _, a, b, c, d, ..] = address.octets();
        return Some(Ipv4Addr::new(a, b, c, d));
    }
    let last = EMBEDDING_LAST.iter().any(|range| range.contains(&address));
    let own_meaning = address == Ipv6Addr::UNSPECIFIED || address == Ipv6Addr::LOCALHOST;
    let [.., a, b, c, d] = address.octets();
    (last && !own_meaning).then_some(Ipv4Addr::new(a, b, c, d))
}

const SPECIAL_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),       // this network; Linux dials 0.0.0.0 as loopback
    v4([10, 0, 0, 0], 8),      // private
    v4([100, 64, 0, 0], 10),   // shared by carriers' NAT; some clouds' metadata
    v4([127, 0, 0, 0], 8),     // loopback
    v4([169, 254, 0, 0], 16),  // link-local; the clouds' metadata, 169.254.169.254
    v4([172, 16, 0, 0], 12),   // private
    v4([192, 0, 0, 0], 24),    // protocol assignments; another cloud's metadata, 192.0.0.192
    v4([192, 0, 2, 0], 24),    // documentation
    v4([192, 88, 99, 0], 24),  // 6to4 relays, given up
    v4([192, 168, 0, 0], 16),  // private
    v4([198, 18, 0, 0], 15),   // benchmarks
    v4([198, 51, 100, 0], 24), // documentation
    v4([203, 0, 113, 0], 24),  // documentation
    v4([224, 0, 0, 0], 4),     // multicast
    v4([240, 0, 0, 0], 4),     // reserved; broadcast
];

/// RFC 4291: what has been given out for hosts. Loopback, `fc00::/7`, `fe80::/10`, `fec0::/10`, `ff00::/8`,
/// `100::/64`, `64:ff9b:1::/48` and `5f00::/16` lie outside.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0], 3);

const SPECIAL_V6: [Ipv6Net; 3] = [
    v6([0x2001, 0], 23),     // protocol assignments: Teredo, benchmarks, ORCHID
    v6([0x2001, 0xdb8], 32), // documentation
    v6([0x3fff, 0], 20),     // documentation
];

const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0], 16);

/// Where the last 32 bits are an IPv4 address.
const EMBEDDING_LAST: [Ipv6Net; 4] = [
    Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 96), // compatible, given up
    Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96), // mapped
    Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96), // translated (RFC 2765)
    Ipv6Net::new_assert(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96), // NAT64
];

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6([a, b]: [u16; 2], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), bits)
}
