//! Uplinks as users name them.

use std::str::FromStr;

use anabranch_net::units::ByteCount;

/// An uplink: `wwan0`, or `wwan0,budget=500MB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedUplink {
    /// Name of the interface.
    pub(crate) interface: String,
    /// Bytes that it may carry in both directions; `None` sets no limit.
    pub(crate) budget: Option<u64>,
}

impl FromStr for NamedUplink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let interface = parts.next().unwrap_or_default().to_owned();
        // The kernel's rule (IFNAMSIZ), without what nftables and ip would take for more than a
        // name.
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
        if !(1..16).contains(&interface.len())
            || !interface.bytes().all(is_name)
            || interface.starts_with(['-', '.'])
        {
            return Err(format!("uplink: {interface:?} is no name of an interface"));
        }
        let mut budget = None;
        for part in parts {
            let Some(size) = part.strip_prefix("budget=").filter(|_| budget.is_none()) else {
                return Err(format!("uplink: {part:?} is unknown; write {interface},budget=500MB"));
            };
            let named = |problem: &dyn std::fmt::Display| format!("uplink: budget: {problem}");
            let size: ByteCount = size.parse().map_err(|error| named(&error))?;
            if size.as_u64() == 0 {
                return Err(named(&"0 bytes carry nothing; omit the uplink"));
            }
            budget = Some(size.as_u64());
        }
        Ok(NamedUplink { interface, budget })
    }
}

/// Read the uplinks of the options.
///
/// # Errors
/// One line that names the option, its value, and what would be right.
pub(crate) fn parse<'a>(
    written: impl IntoIterator<Item = &'a String>,
) -> Result<Vec<NamedUplink>, String> {
    let mut all = Vec::<NamedUplink>::new();
    for text in written {
        let uplink: NamedUplink = text.parse()?;
        if all.iter().any(|other| other.interface == uplink.interface) {
            return Err(format!("uplink: {} is named twice", uplink.interface));
        }
        all.push(uplink);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_follows_the_name() {
        let all = parse(&["eth0".to_owned(), "wwan0,budget=500MB".to_owned()]).expect("right");
        let budgets: Vec<_> = all.iter().map(|it| (it.interface.as_str(), it.budget)).collect();
        assert_eq!(budgets, [("eth0", None), ("wwan0", Some(500_000_000))]);
    }

    #[test]
    fn mistakes_in_budgets_are_named() {
        for (text, start) in [
            ("wwan0,budget=much", "uplink: budget: "),
            ("wwan0,budget=0B", "uplink: budget: 0 bytes"),
            ("wwan0,limit=5MB", "uplink: \"limit=5MB\" is unknown"),
            ("wwan0,budget=5MB,budget=6MB", "uplink: \"budget=6MB\" is unknown"),
        ] {
            let message = text.parse::<NamedUplink>().expect_err("a mistake");
            assert!(message.starts_with(start), "{text}: {message}");
        }
    }
}
