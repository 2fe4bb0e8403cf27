//! Which addresses the guard lets pass.

use std::net::IpAddr;

use relent_deliver::Guard;

#[test]
fn nothing_but_public_addresses_passes_by_default() {
    let guard = Guard::default();
    let passed: Vec<_> = DENIED.iter().filter(|text| guard.allows(address(text))).collect();
    assert!(passed.is_empty(), "{passed:?}");
}

#[test]
fn public_addresses_pass() {
    let guard = Guard::default();
    let denied: Vec<_> = PUBLIC.iter().filter(|text| !guard.allows(address(text))).collect();
    assert!(denied.is_empty(), "{denied:?}");
}

#[test]
fn ranges_end_where_they_say() {
    let guard = Guard::default();
    for (last_denied, first_public) in [
        ("10.255.255.255", "11.0.0.0"),
        ("100.127.255.255", "100.128.0.0"),
        ("127.255.255.255", "128.0.0.0"),
        ("169.254.255.255", "169.255.0.0"),
        ("172.31.255.255", "172.32.0.0"),
        ("192.0.0.255", "192.0.1.0"),
        ("192.0.2.255", "192.0.3.0"),
        ("192.88.99.255", "192.88.100.0"),
        ("192.168.255.255", "192.169.0.0"),
        ("198.19.255.255", "198.20.0.0"),
        ("198.51.100.255", "198.51.101.0"),
        ("203.0.113.255", "203.0.114.0"),
        ("2001:1ff:ffff::", "2001:200::"),
        ("2001:db8:ffff::", "2001:db9::"),
    ] {
        assert!(!guard.allows(address(last_denied)), "{last_denied}");
        assert!(guard.allows(address(first_public)), "{first_public}");
    }
}

#[test]
fn an_address_inside_another_is_judged_by_where_the_packets_end() {
    let guard = Guard::default();
    for outer in ["::ffff:{}", "::{}", "::ffff:0:{}", "64:ff9b::{}"] {
        for (inner, passes) in
            [("127.0.0.1", false), ("169.254.169.254", false), ("10.0.0.1", false), ("8.8.8.8", true)]
        {
            let text = outer.replace("{}", inner);
            assert_eq!(guard.allows(address(&text)), passes, "{text}");
        }
    }
    assert!(!guard.allows(address("2002:7f00:1::1")), "6to4 of 127.0.0.1");
    assert!(!guard.allows(address("2002:a9fe:a9fe::")), "6to4 of 169.254.169.254");
    assert!(guard.allows(address("2002:808:808::1")), "6to4 of 8.8.8.8");
}

#[test]
fn an_allowed_range_passes_and_nothing_beside_it() {
    let guard = allowing(&["10.1.0.0/16", "fd00::/64"]);
    for text in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::", "fd00::7", "8.8.8.8"] {
        assert!(guard.allows(address(text)), "{text}");
    }
    for text in ["10.2.0.0", "::ffff:10.2.0.0", "fd00:0:0:1::7", "127.0.0.1", "169.254.169.254"] {
        assert!(!guard.allows(address(text)), "{text}");
    }
}

#[test]
fn an_allowed_range_of_one_family_opens_nothing_in_the_other() {
    let all_of_v6 = allowing(&["::/0"]);
    for text in ["::1", "fe80::1", "fd00:ec2::254"] {
        assert!(all_of_v6.allows(address(text)), "{text}");
    }
    for text in ["127.0.0.1", "::ffff:127.0.0.1", "::127.0.0.1"] {
        assert!(!all_of_v6.allows(address(text)), "{text} is IPv4 on the wire");
    }
    let all_of_v4 = allowing(&["0.0.0.0/0"]);
    assert!(all_of_v4.allows(address("169.254.169.254")));
    assert!(!all_of_v4.allows(address("::1")));
}

#[test]
fn a_translators_own_prefix_can_be_allowed() {
    let guard = allowing(&["64:ff9b::/96", "2002::/16"]);
    assert!(guard.allows(address("64:ff9b::10.0.0.1")));
    assert!(guard.allows(address("2002:a00:1::")));
    assert!(!guard.allows(address("10.0.0.1")));
}

fn allowing(ranges: &[&str]) -> Guard {
    Guard::new(ranges.iter().map(|range| range.parse().expect("a range")).collect())
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| panic!("{text} is not an address"))
}

const DENIED: [&str; 43] = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::ffff:0.0.0.0",
    "100::1",
    "100:0:0:1::1",
    "64:ff9b:1::1",
    "64:ff9b:1:7f00:0:100::",
    "2001::1",
    "2001:2::1",
    "2001:20::1",
    "2001:db8::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
];

const PUBLIC: [&str; 9] = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "99.255.255.255",
    "172.15.255.255",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001:830::200e",
];
