//! Values of parameters as files contain them.

use std::borrow::Cow;

use anabranch_net::units::{ByteCount, Probability, format_duration, parse_duration};
use anabranch_wire::entry::{Kind, Parameter, PathRef, Value};

use crate::written::{Problem, found, noun, unknown_name};

/// Parse `value` as a value of `parameter`. The caller has to find the indices of paths.
pub(super) fn read(parameter: &Parameter, value: &toml::Value) -> Result<Value, Problem> {
    if let Kind::Choices(names) = parameter.kind {
        return choices(parameter.name, names, value);
    }
    one(parameter, value).map_err(|problem| Problem::new("", problem))
}

/// Parse a single value. A problem concerns the value as a whole.
fn one(parameter: &Parameter, value: &toml::Value) -> Result<Value, String> {
    let kind = parameter.kind;
    match (kind, value) {
        (Kind::Count { least, most }, toml::Value::Integer(count)) => {
            let within = u32::try_from(*count).ok().filter(|n| (least..=most).contains(n));
            within.map(Value::Count).ok_or_else(|| match most {
                u32::MAX => format!("{count}: must be {least} or more"),
                _ => format!("{count}: must be between {least} and {most}"),
            })
        }
        (Kind::Flag, toml::Value::Boolean(flag)) => Ok(Value::Flag(*flag)),
        (Kind::Number { least, most }, toml::Value::Integer(_) | toml::Value::Float(_)) => {
            let number = value.as_float().or(value.as_integer().map(|n| n as f64));
            let within = number.filter(|number| (least..=most).contains(number));
            within
                .map(Value::Number)
                .ok_or_else(|| format!("{value}: must be between {least} and {most}"))
        }
        (Kind::Choice(names), toml::Value::String(text)) => {
            named(names, &noun(parameter.name), text).map(Value::Choice)
        }
        (Kind::Path, toml::Value::String(name)) => {
            Ok(Value::Path(PathRef { name: Cow::Owned(name.clone()), index: usize::MAX }))
        }
        (Kind::Time { .. } | Kind::Bytes { .. } | Kind::Probability, _) => quantity(kind, value),
        _ => Err(mismatch(value, &expected(kind))),
    }
}

/// Parse a value that is written as a string with a unit.
fn quantity(kind: Kind, value: &toml::Value) -> Result<Value, String> {
    let text = match value {
        toml::Value::String(text) => text.clone(),
        // A bare number gets the same message as a quoted number: it has no unit.
        toml::Value::Integer(_) | toml::Value::Float(_) => value.to_string(),
        _ => return Err(mismatch(value, &expected(kind))),
    };
    match kind {
        Kind::Bytes { least, most } => {
            let bytes = text.parse::<ByteCount>().map_err(|error| error.to_string())?;
            within(bytes, least, most)
        }
        Kind::Probability => {
            let probability = text.parse::<Probability>().map_err(|error| error.to_string())?;
            Ok(Value::Probability(probability.as_parts_per_billion()))
        }
        _ => {
            let time = parse_duration(&text).map_err(|error| error.to_string())?;
            if time.is_zero() && kind == (Kind::Time { zero: false }) {
                return Err(format!("{text:?}: must be longer than zero"));
            }
            Ok(Value::Time(time))
        }
    }
}

fn within(bytes: ByteCount, least: u64, most: u64) -> Result<Value, String> {
    match bytes.as_u64() {
        0 if least == 1 => Err(format!("\"{bytes}\": must be at least one byte")),
        few if few < least => Err(format!("\"{bytes}\": must be at least {least}B")),
        many if many > most => Err(format!("\"{bytes}\": must be at most {most}B")),
        bytes => Ok(Value::Bytes(bytes)),
    }
}

fn choices(parameter: &str, names: &[&'static str], value: &toml::Value) -> Result<Value, Problem> {
    let Some(list) = value.as_array() else {
        return Err(Problem::new("", mismatch(value, "an array")));
    };
    if list.is_empty() {
        return Err(Problem::new("", "[]: name at least one, or remove this key"));
    }
    let plural = noun(parameter);
    let singular = plural.strip_suffix('s').unwrap_or(&plural);
    let each = list.iter().enumerate().map(|(n, element)| {
        let found = match element.as_str() {
            Some(text) => named(names, singular, text),
            None => Err(mismatch(element, &format!("one of {}", names.join(", ")))),
        };
        found.map_err(|problem| Problem::new(format!("[{n}]"), problem))
    });
    each.collect::<Result<Vec<_>, _>>().map(|found| Value::Choices(Cow::Owned(found)))
}

fn named(names: &[&'static str], noun: &str, text: &str) -> Result<&'static str, String> {
    let found = names.iter().find(|name| **name == text);
    found.copied().ok_or_else(|| unknown_name(noun, text, names))
}

/// The values that a parameter accepts, in the words of messages.
fn expected(kind: Kind) -> String {
    match kind {
        Kind::Count { .. } => "a whole number".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Number { .. } => "a number such as 1.5".to_owned(),
        Kind::Time { .. } => "a duration such as \"20ms\"".to_owned(),
        Kind::Bytes { .. } => "a size such as \"200kB\" or \"200KiB\"".to_owned(),
        Kind::Probability => "a probability such as \"1%\"".to_owned(),
        Kind::Choice(names) => format!("one of {}", names.join(", ")),
        Kind::Choices(names) => format!("some of {}", names.join(", ")),
        Kind::Path => "the name of a path".to_owned(),
    }
}

/// The problem if a parameter without a default is missing.
pub(super) fn missing(kind: Kind) -> String {
    match kind {
        Kind::Choice([names @ .., last]) => {
            format!("missing; write {} or {last}", names.join(", "))
        }
        _ => format!("missing; write {}", expected(kind)),
    }
}

fn mismatch(value: &toml::Value, expected: &str) -> String {
    format!("found {}, expected {expected}", found(value))
}

/// A value as a file contains it, or `None` if the file omits it.
pub(super) fn write(value: &Value) -> Option<toml::Value> {
    let string = |text: &str| toml::Value::String(text.to_owned());
    Some(match value {
        Value::Count(count) => toml::Value::Integer((*count).into()),
        Value::Flag(flag) => toml::Value::Boolean(*flag),
        Value::Number(number) => toml::Value::Float(*number),
        Value::Time(time) => toml::Value::String(format_duration(*time)),
        Value::Choice(name) => string(name),
        Value::Choices(names) => names.iter().map(|name| string(name)).collect::<Vec<_>>().into(),
        Value::Bytes(bytes) => toml::Value::String(ByteCount::new(*bytes).to_string()),
        Value::Probability(parts) => {
            toml::Value::String(Probability::from_parts_per_billion(*parts).to_string())
        }
        Value::Path(path) => string(&path.name),
        Value::Unset | Value::Required => return None,
    })
}
