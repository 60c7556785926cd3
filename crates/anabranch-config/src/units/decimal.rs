//! Decimal numbers with a unit, read and written exactly.

use super::UnitError;

/// A unit, and how many of the quantity's smallest unit it contains.
pub(super) type Unit = (&'static str, u64);

/// A kind of quantity: its name in error messages, and its units.
pub(super) struct Quantity {
    /// Name with its article, e.g. "a rate".
    pub(super) noun: &'static str,
    /// An example value, quoted.
    pub(super) example: &'static str,
    /// The units as a list for error messages.
    pub(super) endings: &'static str,
    /// The indivisible unit in error messages, e.g. "bits per second".
    pub(super) counted_in: &'static str,
    /// Units in ascending order.
    pub(super) units: &'static [Unit],
    /// Largest value, in the smallest unit.
    pub(super) max: u64,
    /// The largest value as text, for error messages.
    pub(super) max_text: &'static str,
}

/// A number and its unit.
pub(super) struct Parts<'a> {
    digits: &'a str,
    fraction: &'a str,
    pub(super) unit: &'a str,
}

impl Quantity {
    /// The value of `text` in the smallest unit.
    pub(super) fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let parts = self.split(text)?;
        match self.units.iter().find(|(name, _)| *name == parts.unit) {
            Some(&(_, factor)) => self.value(text, &parts, factor),
            None => Err(self.unknown_unit(text, parts.unit)),
        }
    }

    /// Split `text` into number and unit.
    pub(super) fn split<'a>(&self, text: &'a str) -> Result<Parts<'a>, UnitError> {
        let trimmed = text.trim();
        if trimmed.strip_prefix('-').is_some_and(|rest| leading_digits(rest) > 0) {
            return Err(refuse(text, format_args!("{} cannot be negative", self.noun)));
        }
        let (digits, rest) = trimmed.split_at(leading_digits(trimmed));
        if digits.is_empty() {
            let (noun, example) = (self.noun, self.example);
            return Err(refuse(text, format_args!("not {noun}; write {noun} such as {example}")));
        }
        let (fraction, unit) = match rest.strip_prefix('.').map(|rest| (leading_digits(rest), rest))
        {
            Some((len, rest)) if len > 0 => rest.split_at(len),
            _ => ("", rest),
        };
        let unit = unit.trim_start();
        if unit.is_empty() {
            let (noun, example) = (self.noun, self.example);
            let message = format!("{text:?} has no unit; write {noun} such as {example}");
            return Err(UnitError(message));
        }
        Ok(Parts { digits, fraction, unit })
    }

    /// The value of `parts`, whose unit contains `factor` smallest units.
    pub(super) fn value(
        &self,
        text: &str,
        parts: &Parts<'_>,
        factor: u64,
    ) -> Result<u64, UnitError> {
        let fraction = parts.fraction.trim_end_matches('0');
        let scaled = format!("{}{fraction}", parts.digits).parse::<u128>().ok();
        let scaled = scaled.and_then(|number| number.checked_mul(u128::from(factor)));
        let divisor = 10u128.checked_pow(fraction.len() as u32);
        let too_large = || refuse(text, format_args!("{} is at most {}", self.noun, self.max_text));
        let too_fine = || {
            let (noun, counted_in) = (self.noun, self.counted_in);
            refuse(text, format_args!("{noun} is a whole number of {counted_in}"))
        };
        let divisor = divisor.ok_or_else(too_fine)?;
        let scaled = scaled.ok_or_else(too_large)?;
        if scaled / divisor > u128::from(self.max) {
            return Err(too_large());
        }
        if scaled % divisor != 0 {
            return Err(too_fine());
        }
        Ok((scaled / divisor) as u64)
    }

    /// The error for an unknown `unit`, with a suggestion if only its case is wrong.
    pub(super) fn unknown_unit(&self, text: &str, unit: &str) -> UnitError {
        let meant = self.units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        match meant {
            Some((name, _)) => {
                refuse(text, format_args!("unknown unit {unit:?}; did you mean {name:?}?"))
            }
            None => {
                let (noun, endings) = (self.noun, self.endings);
                refuse(text, format_args!("unknown unit {unit:?}; {noun} ends in {endings}"))
            }
        }
    }
}

/// An error about `text` as a whole.
pub(super) fn refuse(text: &str, problem: impl core::fmt::Display) -> UnitError {
    UnitError(format!("{text:?}: {problem}"))
}

/// `value` as an exact decimal, in the largest unit of which it is at least one. The factors of the
/// units are powers of ten in ascending order.
pub(super) fn format(value: u64, units: &[Unit]) -> String {
    let (name, factor) =
        *units.iter().rev().find(|(_, factor)| *factor <= value).unwrap_or(&units[0]);
    let (whole, fraction) = (value / factor, value % factor);
    if fraction == 0 {
        return format!("{whole}{name}");
    }
    let width = factor.ilog10() as usize;
    let fraction = format!("{fraction:0width$}");
    format!("{whole}.{}{name}", fraction.trim_end_matches('0'))
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}
