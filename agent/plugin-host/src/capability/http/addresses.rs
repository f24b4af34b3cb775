//! Which addresses may be dialled: public ones, and what the operator granted besides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network: an address and how many of its first bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// What stands between the numbers of a network.
const SLASH: char = '/';

/// IPv4 networks that are not of the internet: IANA's registry of special addresses, multicast and what is above it.
const SPECIAL_V4: [(Ipv4Addr, u8); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16), // with the metadata services of clouds
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The part of IPv6 that is of the internet; everything outside it is local, multicast or reserved.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What lies inside it and is special: protocol assignments with Teredo and ORCHID, documentation, and 6to4, which
/// carries an IPv4 address of anybody's choice.
const SPECIAL_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// NAT64: the last four bytes are an IPv4 address.
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether an address is one of the internet. An IPv4 address inside an IPv6 one is judged as what it is.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(address) => {
            !SPECIAL_V4.iter().any(|(network, bits)| shares(address.to_bits(), network.to_bits(), *bits))
        }
        IpAddr::V6(address) => {
            let within = |(network, bits): &(Ipv6Addr, u8)| shares_v6(address, *network, *bits);
            within(&GLOBAL_V6) && !SPECIAL_V6.iter().any(within)
        }
    }
}

/// The IPv4 address inside an IPv6 one, where it has one that packets would reach.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    if let Some(four) = six.to_ipv4_mapped() {
        return IpAddr::V4(four);
    }
    if shares_v6(six, NAT64.0, NAT64.1) {
        let [.., a, b, c, d] = six.octets();
        return IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    }
    address
}

fn shares(one: u32, other: u32, bits: u8) -> bool {
    (one ^ other).checked_shr(32 - u32::from(bits)).unwrap_or(0) == 0
}

fn shares_v6(one: Ipv6Addr, other: Ipv6Addr, bits: u8) -> bool {
    (one.to_bits() ^ other.to_bits()).checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
}

impl Network {
    /// Whether an address lies in it.
    pub(crate) fn holds(self, address: IpAddr) -> bool {
        match (plain(address), self.address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => shares(one.to_bits(), other.to_bits(), self.bits),
            (IpAddr::V6(one), IpAddr::V6(other)) => shares_v6(one, other, self.bits),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    /// Reads `10.0.0.0/8`, or an address alone.
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = text.split_once(SLASH).map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| format!("`{address}` is no IP address"))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(|| {
                format!("`{bits}` is no length of a network's prefix; it is a number from 0 to {most}")
            })?,
        };
        Ok(Self { address, bits })
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{SLASH}{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_of_the_internet_is_known_in_all_its_forms() {
        for special in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.8.9.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "::127.0.0.1",
        ] {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
        for public in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "198.20.0.1", "2606:4700::1111", "64:ff9b::101:101"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn a_network_holds_what_shares_its_first_bits() {
        let network: Network = "10.1.0.0/16".parse().unwrap();
        assert!(network.holds("10.1.255.1".parse().unwrap()) && !network.holds("10.2.0.1".parse().unwrap()));
        assert!(network.holds("::ffff:10.1.0.1".parse().unwrap()));
        let one: Network = "fd00::1".parse().unwrap();
        assert!(one.holds("fd00::1".parse().unwrap()) && !one.holds("fd00::2".parse().unwrap()));
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.holds("255.1.2.3".parse().unwrap()) && !all.holds("::1".parse().unwrap()));
        for wrong in ["10.0.0.0/33", "10.0.0/8", "::/129", "host", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
