//! Checks of values that several tables hold.

use anabranch_net::units::{Octets, format_duration};
use anabranch_wire::Duration;

use super::error::Problem;

/// A name has a letter.
pub(super) fn require_name(key: &str, name: &str) -> Result<(), Problem> {
    if name.trim().is_empty() {
        return Err(Problem::new(key, format!("{name:?}: a name needs at least one letter")));
    }
    Ok(())
}

/// No two elements of the array of tables `noun` have the same name.
pub(super) fn require_unique<'a>(
    noun: &str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), Problem> {
    let names: Vec<_> = names.collect();
    for (n, name) in names.iter().enumerate() {
        if let Some(first) = names[..n].iter().position(|other| other == name) {
            let problem =
                format!("{name:?} is already the name of {noun}[{first}]; choose another");
            return Err(Problem::new(format!("{noun}[{n}].name"), problem));
        }
    }
    Ok(())
}

/// The duration is above zero.
pub(super) fn require_some(key: &str, time: Duration) -> Result<(), Problem> {
    if time.is_zero() {
        return Err(Problem::new(key, "\"0s\": must be longer than zero"));
    }
    Ok(())
}

/// The time is before the end of a run of this `duration`.
pub(super) fn require_before_end(
    key: &str,
    time: Duration,
    duration: Duration,
) -> Result<(), Problem> {
    if time < duration {
        return Ok(());
    }
    let (time, duration) = (format_duration(time), format_duration(duration));
    let problem = format!("{time:?}: must be less than the duration, {duration:?}");
    Err(Problem::new(key, problem))
}

/// The size is above zero.
pub(super) fn require_octets(key: &str, octets: Octets) -> Result<(), Problem> {
    if octets == Octets::default() {
        return Err(Problem::new(key, "\"0B\": must be at least one octet"));
    }
    Ok(())
}
