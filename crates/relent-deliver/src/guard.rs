//! Which addresses may be dialled: public ones, and those that the operator named.
//!
//! Whoever may choose a URL chooses what this machine talks to, and this machine can reach what they cannot:
//! the cloud's metadata service, a database without a password, itself. A check of the URL's text does not
//! help, since a name can be made to resolve to anything, to something else a second later, and an address
//! can be written in a dozen ways. So the one place that counts is just before the dial, on the address that
//! will be dialled.

mod special;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Judges addresses. Everything that is not public is denied unless a range that was allowed contains it.
///
/// # Examples
///
/// ```
/// use relent_deliver::Guard;
///
/// let guard = Guard::new(vec!["10.1.0.0/16".parse()?]);
/// assert!(guard.allows("93.184.215.14".parse()?));
/// assert!(guard.allows("10.1.2.3".parse()?));
/// assert!(!guard.allows("10.2.0.1".parse()?));
/// assert!(!guard.allows("::ffff:169.254.169.254".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Guard {
    allowed: Vec<IpNet>,
}

impl Guard {
    /// A guard that lets public addresses pass, and these. An IPv4 range also lets pass the IPv6 forms in which
    /// its addresses can be written; an IPv6 range says nothing about IPv4.
    pub const fn new(allow: Vec<IpNet>) -> Self {
        Self { allowed: allow }
    }

    /// Whether this address may be dialled.
    ///
    /// An address that carries another one is judged by the one where the packets end: `::ffff:127.0.0.1` is
    /// loopback, and so are its likes behind 6to4 and NAT64.
    pub fn allows(&self, address: IpAddr) -> bool {
        let target = destination(address);
        let named = |address: &IpAddr| self.allowed.iter().any(|range| range.contains(address));
        let tunnelled =
            matches!((address, target), (IpAddr::V6(outer), IpAddr::V4(_)) if !is_notation(outer));
        special::is_public(target) || named(&target) || (tunnelled && named(&address))
    }
}

/// Where packets to this address end: the IPv4 address inside an IPv6 one, or the address itself.
pub(crate) fn destination(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => special::embedded_v4(v6).map_or(address, IpAddr::V4),
    }
}

/// Whether this is only another way to write an IPv4 address: what goes over the wire is IPv4.
fn is_notation(address: Ipv6Addr) -> bool {
    address.to_ipv4().is_some_and(|v4| v4 != Ipv4Addr::UNSPECIFIED && v4 != Ipv4Addr::new(0, 0, 0, 1))
}
