//! The form of Multipath TCP options: lengths, reserved bits, subtypes. RFC 8684 §3.

use anabranch_wire::mptcp::{
    self, AddAddr, Dss, MpCapable, MpFail, MpFastclose, MpJoin, MpPrio, MpTcprst, RemoveAddr,
    Subtype,
};

use crate::rules::Rule;
use crate::words::counted;

/// A fault in the form of an option: the rule, the clause that defines the form, and a description.
pub(crate) type Fault = (Rule, &'static str, String);

/// Find the faults in the options of one segment.
pub(crate) fn faults(options: &[u8], mut take: impl FnMut(Fault)) {
    let mut rest = options;
    while let [kind, after @ ..] = rest {
        match (*kind, after.first()) {
            (END, _) => return,
            (NOP, _) => rest = after,
            (kind, Some(length)) if (2..=rest.len()).contains(&usize::from(*length)) => {
                let (option, behind) = rest.split_at(usize::from(*length));
                if kind == mptcp::KIND {
                    check(option, &mut take);
                }
                rest = behind;
            }
            _ => return,
        }
    }
}

fn check(option: &[u8], take: &mut impl FnMut(Fault)) {
    let Some(byte) = option.get(2) else {
        return take((
            Rule::OptionLength,
            "3",
            format!("option of {}", counted(option.len() as u64, "byte")),
        ));
    };
    let Some(subtype) = Subtype::from_value(byte >> 4) else {
        // RFC 8684 §7.2: subtype 0xf is for private experiments.
        if byte >> 4 != 0xf {
            take((Rule::UnknownSubtype, "7.2", format!("subtype {}", byte >> 4)));
        }
        return;
    };
    if is_older(option, subtype) {
        return;
    }
    let clause = clause(subtype);
    if !has_right_length(option, subtype) {
        let text = format!("{subtype} of {}", counted(option.len() as u64, "byte"));
        return take((Rule::OptionLength, clause, text));
    }
    for (at, mask) in reserved(option, subtype) {
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

/// Whether the option is an MP_CAPABLE of another version, whose form is not checked.
fn is_older(option: &[u8], subtype: Subtype) -> bool {
    subtype == Subtype::Capable && option[2] & 0x0f != mptcp::VERSION
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

const fn clause(subtype: Subtype) -> &'static str {
    match subtype {
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
fn reserved(option: &[u8], subtype: Subtype) -> &'static [(usize, u8)] {
    match subtype {
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

const END: u8 = 0;
const NOP: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(options: &[u8]) -> Vec<(Rule, &'static str)> {
        let mut found = Vec::new();
        faults(options, |(rule, clause, _)| found.push((rule, clause)));
        found
    }

    #[test]
    fn lengths_subtypes_and_reserved_bits_are_checked() {
        // RFC 8684 §3.1 and §3.3
        assert_eq!(found(&[1, 1, 30, 4, 0x01, 0x01]), []);
        assert_eq!(found(&[30, 5, 0x01, 0x01, 0]), [(Rule::OptionLength, "3.1")]);
        assert_eq!(found(&[30, 4, 0x01, 0x41]), [(Rule::ReservedBits, "3.1")]);
        assert_eq!(found(&[30, 8, 0x20, 0x21, 0, 0, 0, 0]), [(Rule::ReservedBits, "3.3")]);
        assert_eq!(found(&[30, 4, 0x90, 0]), [(Rule::UnknownSubtype, "7.2")]);
        assert_eq!(found(&[30, 4, 0xf0, 0]), []);
        assert_eq!(found(&[30, 2]), [(Rule::OptionLength, "3")]);
    }

    #[test]
    fn version_0_is_not_judged() {
        assert_eq!(found(&[30, 12, 0x00, 0xff, 1, 2, 3, 4, 5, 6, 7, 8]), []);
    }
}
