//! The form of Multipath TCP options: lengths, reserved bits, subtypes. RFC 8684 §3.

use std::net::IpAddr;

use anabranch_wire::mptcp::{
    self, AddAddr, Dss, MpCapable, MpFail, MpFastclose, MpJoin, MpPrio, MpTcprst, RemoveAddr,
    Subtype,
};
use anabranch_wire::{CapturedSegment, TcpOptions};

use crate::keys::Version;
use crate::rules::{Clause, Rule};
use crate::words::counted;

/// A fault in the form of an option: the rule, the clause that defines the form, and a description.
pub(crate) type Fault = (Rule, Clause, String);

/// Find the faults in the options of one segment. If the version is unknown, a form is right if any
/// version has it.
pub(crate) fn faults(options: &[u8], version: Option<Version>, mut take: impl FnMut(Fault)) {
    for option in multipath_options(options) {
        check(option, version, &mut take);
    }
}

/// A signal in a form that only version 0 has.
pub(crate) enum Older {
    /// ADD_ADDR without HMAC. RFC 6824 §3.4.1.
    AddAddr { address_id: u8, address: IpAddr, port: Option<u16> },
    /// MP_PRIO for another subflow than its own. RFC 6824 §3.3.8.
    Prio { backup: bool, address_id: u8 },
}

/// The signals of a segment in forms that only version 0 has.
pub(crate) fn older(options: &[u8]) -> impl Iterator<Item = Older> {
    multipath_options(options).filter_map(|option| match *option {
        [_, _, first, address_id, ref rest @ ..] if first >> 4 == Subtype::AddAddr as u8 => {
            older_address(first & 0x0f, address_id, rest)
        }
        [_, 4, first, address_id] if first >> 4 == Subtype::Prio as u8 => {
            Some(Older::Prio { backup: first & 1 != 0, address_id })
        }
        _ => None,
    })
}

/// An address of the family with this IP version, and a port if there is one.
fn older_address(ip_version: u8, address_id: u8, rest: &[u8]) -> Option<Older> {
    let (address, rest) = match ip_version {
        4 => rest.split_first_chunk::<4>().map(|(four, rest)| (IpAddr::from(*four), rest))?,
        6 => rest.split_first_chunk::<16>().map(|(six, rest)| (IpAddr::from(*six), rest))?,
        _ => return None,
    };
    let port = match rest {
        [] => None,
        [high, low] => Some(u16::from_be_bytes([*high, *low])),
        _ => return None,
    };
    Some(Older::AddAddr { address_id, address, port })
}

/// The Multipath TCP options in a list, up to the first option that contradicts the list.
fn multipath_options(options: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = options;
    let each = std::iter::from_fn(move || {
        loop {
            let [kind, after @ ..] = rest else { return None };
            match (*kind, after.first()) {
                (END, _) => return None,
                (NOP, _) => rest = after,
                (_, Some(length)) if (2..=rest.len()).contains(&usize::from(*length)) => {
                    let (option, behind) = rest.split_at(usize::from(*length));
                    rest = behind;
                    return Some(option);
                }
                _ => return None,
            }
        }
    });
    each.filter(|option| option[0] == mptcp::KIND)
}

fn check(option: &[u8], version: Option<Version>, take: &mut impl FnMut(Fault)) {
    let Some(byte) = option.get(2) else {
        let clause = Clause::of(version, "3");
        return take((
            Rule::OptionLength,
            clause,
            format!("option of {}", counted(option.len() as u64, "byte", "bytes")),
        ));
    };
    let Some(subtype) = Subtype::from_value(byte >> 4).filter(|s| is_assigned(*s, version)) else {
        // RFC 8684 §7.2: subtype 0xf is for private experiments.
        if byte >> 4 != 0xf {
            let clause = Rule::UnknownSubtype.clause_in(version);
            take((Rule::UnknownSubtype, clause, format!("subtype {}", byte >> 4)));
        }
        return;
    };
    // MP_CAPABLE names its version.
    let version = match subtype {
        Subtype::Capable => match Version::of(byte & 0x0f) {
            None => return,
            known => known,
        },
        _ => version,
    };
    let clause = Clause::of(version, clause(subtype, version));
    if version != Some(Version::V1) && has_older_form(option, subtype) {
        return;
    }
    if !has_right_length(option, subtype) {
        let text = format!("{subtype} of {}", counted(option.len() as u64, "byte", "bytes"));
        return take((Rule::OptionLength, clause, text));
    }
    for (at, mask) in reserved(option, subtype, version) {
        let found = option[*at] & mask;
        if found != 0 {
            take((
                Rule::ReservedBits,
                clause,
                format!("{subtype}: byte {at} has {found:#04x} set"),
            ));
        }
    }
}

/// Returns `true` if a version has this subtype. RFC 6824 §8 has no MP_TCPRST.
fn is_assigned(subtype: Subtype, version: Option<Version>) -> bool {
    subtype != Subtype::Tcprst || version != Some(Version::V0)
}

/// Returns `true` if the option has a form that only version 0 has.
fn has_older_form(option: &[u8], subtype: Subtype) -> bool {
    matches!(subtype, Subtype::AddAddr | Subtype::Prio) && older(option).next().is_some()
}

fn has_right_length(option: &[u8], subtype: Subtype) -> bool {
    match subtype {
        Subtype::Capable => MpCapable::parse(option).is_ok(),
        Subtype::Join => MpJoin::parse(option).is_ok(),
        Subtype::Dss => Dss::parse(option).is_ok(),
        Subtype::AddAddr => AddAddr::parse(option).is_ok(),
        Subtype::RemoveAddr => RemoveAddr::parse(option).is_ok(),
        Subtype::Prio => MpPrio::parse(option).is_ok(),
        Subtype::Fail => MpFail::parse(option).is_ok(),
        Subtype::Fastclose => MpFastclose::parse(option).is_ok(),
        Subtype::Tcprst => MpTcprst::parse(option).is_ok(),
    }
}

const fn clause(subtype: Subtype, version: Option<Version>) -> &'static str {
    match subtype {
        // RFC 6824 §3.6: MP_FAIL is part of the fallback.
        Subtype::Fail if matches!(version, Some(Version::V0)) => "3.6",
        Subtype::Capable => "3.1",
        Subtype::Join => "3.2",
        Subtype::Dss => "3.3",
        Subtype::AddAddr => "3.4.1",
        Subtype::RemoveAddr => "3.4.2",
        Subtype::Prio => "3.3.8",
        Subtype::Fail => "3.7",
        Subtype::Fastclose => "3.5",
        Subtype::Tcprst => "3.6",
    }
}

/// Indices of bytes, and the bits in them that must be 0. The option must have a valid length.
fn reserved(option: &[u8], subtype: Subtype, version: Option<Version>) -> &'static [(usize, u8)] {
    match subtype {
        // RFC 6824 §3.1: flag B. The others name algorithms.
        Subtype::Capable if version == Some(Version::V0) => &[(3, 0x40)],
        // RFC 8684 §3.1: flags B and D to G.
        Subtype::Capable => &[(3, 0x5e)],
        // RFC 8684 §3.2: three flags in the SYNs, and all twelve bits in the third ACK.
        Subtype::Join if option.len() == 24 => &[(2, 0x0f), (3, 0xff)],
        Subtype::Join => &[(2, 0x0e)],
        // RFC 8684 §3.3: all flags except F, m, M, a, A.
        Subtype::Dss => &[(2, 0x0f), (3, 0xe0)],
        // RFC 8684 §3.4.1: all flags except E.
        Subtype::AddAddr => &[(2, 0x0e)],
        Subtype::RemoveAddr => &[],
        Subtype::Prio => &[],
        Subtype::Fail | Subtype::Fastclose => &[],
        // RFC 8684 §3.6: flags U, V, W.
        Subtype::Tcprst => &[(2, 0x0e)],
    }
}

/// The options of a segment, and whether these are all. A capture may cut the list, or a length in it
/// may be wrong; the options before are returned.
pub(crate) fn read(segment: &CapturedSegment<'_>) -> (TcpOptions, bool) {
    let whole = whole_options(segment.options);
    let is_whole = !segment.has_cut_options() && whole.len() == segment.options.len();
    match TcpOptions::parse(whole) {
        Ok(options) => (options, is_whole),
        Err(_) => (TcpOptions::default(), false),
    }
}

/// The part of a list of options that ends with a whole option.
fn whole_options(options: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some(kind) = options.get(at) {
        let length = match *kind {
            END => return options,
            NOP => 1,
            _ => options.get(at + 1).map_or(0, |length| usize::from(*length)),
        };
        let fits = if *kind == NOP { 1 } else { 2 };
        if length < fits || at + length > options.len() {
            return &options[..at];
        }
        at += length;
    }
    options
}

const END: u8 = 0;
const NOP: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(options: &[u8], version: Option<Version>) -> Vec<(Rule, String)> {
        let mut found = Vec::new();
        faults(options, version, |(rule, clause, _)| found.push((rule, clause.to_string())));
        found
    }

    fn found(options: &[u8]) -> Vec<(Rule, String)> {
        found_in(options, Some(Version::V1))
    }

    fn of(rule: Rule, section: &str) -> Vec<(Rule, String)> {
        vec![(rule, format!("RFC 8684 §{section}"))]
    }

    #[test]
    fn lengths_subtypes_and_reserved_bits_are_checked() {
        // RFC 8684 §3.1 and §3.3
        assert_eq!(found(&[1, 1, 30, 4, 0x01, 0x01]), []);
        assert_eq!(found(&[30, 5, 0x01, 0x01, 0]), of(Rule::OptionLength, "3.1"));
        assert_eq!(found(&[30, 4, 0x01, 0x41]), of(Rule::ReservedBits, "3.1"));
        assert_eq!(found(&[30, 8, 0x20, 0x21, 0, 0, 0, 0]), of(Rule::ReservedBits, "3.3"));
        assert_eq!(found(&[30, 4, 0x90, 0]), of(Rule::UnknownSubtype, "7.2"));
        assert_eq!(found(&[30, 4, 0xf0, 0]), []);
        assert_eq!(found(&[30, 2]), of(Rule::OptionLength, "3"));
    }

    #[test]
    fn a_list_is_read_up_to_its_last_whole_option() {
        assert_eq!(whole_options(&[1, 1, 8, 10, 0, 0]), [1, 1]);
        assert_eq!(whole_options(&[3, 3, 7, 30]), [3, 3, 7]);
        assert_eq!(whole_options(&[3, 1, 7]), []);
        assert_eq!(whole_options(&[3, 3, 7, 0, 9]), [3, 3, 7, 0, 9]);
        assert_eq!(whole_options(&[1, 1]), [1, 1]);
    }

    #[test]
    fn version_0_has_its_own_forms() {
        // RFC 6824 §3.1, §3.4.1 and §3.3.8
        let capable = [30, 12, 0x00, 0xbf, 1, 2, 3, 4, 5, 6, 7, 8];
        let address = [30, 8, 0x34, 1, 10, 0, 0, 1];
        let with_port = [30, 10, 0x34, 1, 10, 0, 0, 1, 0, 80];
        let prio = [30, 4, 0x51, 2];
        assert_eq!(found(&capable), []);
        for option in [&address[..], &with_port, &prio] {
            assert_eq!(found_in(option, Some(Version::V0)), []);
            assert_eq!(found_in(option, None), []);
            assert_eq!(found(option).len(), 1);
        }
        let extensible = [30, 12, 0x00, 0x41, 1, 2, 3, 4, 5, 6, 7, 8];
        let expected = [(Rule::ReservedBits, "RFC 6824 §3.1".to_owned())];
        assert_eq!(found(&extensible), expected);
        // MP_TCPRST came with version 1.
        let reset = [30, 4, 0x80, 0];
        assert_eq!((found(&reset).len(), found_in(&reset, Some(Version::V0)).len()), (0, 1));
    }
}
