//! Problems with values in a scenario file.

use serde::de::Error;
use serde_path_to_error::{Path, Segment};

/// A problem with the value of a key.
#[derive(Debug)]
pub struct Problem {
    /// The key, relative to the file or to the value that is being read. It is empty if the problem
    /// concerns that value itself.
    pub key: String,
    /// The problem, and the valid form.
    pub text: String,
}

/// Separates the key and the text of a problem inside a serde error. No file contains it.
const MARK: char = '\0';

impl Problem {
    /// A problem `text` with the value of `key`, e.g. `path[0].rate`.
    pub fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        Problem { key: key.into(), text: text.into() }
    }

    /// The problem as a serde error. [`describe`] converts it back.
    pub fn raise<E: Error>(self) -> E {
        E::custom(format!("{}{MARK}{}", self.key, self.text))
    }

    /// The problem with its key moved below `key`.
    pub fn below(self, key: &str) -> Self {
        Problem { key: join(key, &self.key), text: self.text }
    }
}

/// The problem that a serde `message` about the value at `path` describes.
pub fn describe(path: &Path, message: &str) -> Problem {
    let keys = keys(path);
    if let Some((key, text)) = message.split_once(MARK) {
        return Problem::new(join(&keys, key), text);
    }
    if let Some((found, valid)) = unknown_field(message) {
        let key = if last_key(path) == Some(found) { keys } else { join(&keys, found) };
        return Problem::new(key, unknown_key(found, &valid, &[]));
    }
    if let Some((found, valid)) = quoted_names(message, "unknown variant `") {
        let noun = last_key(path).map_or_else(|| "name".to_owned(), noun);
        // An element of a list has the name of the list.
        let is_element = matches!(path.iter().next_back(), Some(Segment::Seq { .. }));
        let noun = noun.strip_suffix('s').filter(|_| is_element).unwrap_or(&noun);
        return Problem::new(keys, unknown_name(noun, found, &valid));
    }
    if let Some(missing) = missing_field(message) {
        return Problem::new(join(&keys, missing), "missing; this key is required");
    }
    Problem::new(keys, reword(path, message))
}

/// `unknown scheduler "min_rt"; did you mean "min_rtt"? (valid: min_rtt)`
pub fn unknown_name(noun: &str, found: &str, valid: &[&str]) -> String {
    let hint = nearest(found, valid);
    let hint = hint.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
    format!("unknown {noun} {found:?}{hint} (valid: {})", valid.join(", "))
}

/// `unknown key; did you mean "beta"?` The suggestion may also be one of `others`, which are valid
/// elsewhere.
pub fn unknown_key(found: &str, valid: &[&str], others: &[&str]) -> String {
    match nearest(found, &[valid, others].concat()) {
        Some(name) => format!("unknown key; did you mean {name:?}?"),
        None => format!("unknown key (valid: {})", valid.join(", ")),
    }
}

/// The name that was probably meant: at most a third of its letters differ, or one name contains
/// the other.
fn nearest<'a>(found: &str, valid: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &&str| strsim::damerau_levenshtein(found, name);
    let close = |name: &&str| {
        let part = !found.is_empty() && (name.contains(found) || found.contains(*name));
        part || distance(name) <= found.chars().count().div_ceil(3)
    };
    valid.iter().copied().filter(close).min_by_key(distance)
}

/// The key that serde does not know, and the valid keys.
pub fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    quoted_names(message, "unknown field `")
}

/// The key that serde reports as missing.
pub fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `").map(|missing| missing.trim_end_matches('`'))
}

/// From "unknown field `x`, expected one of `a`, `b`": x, and the list of a and b.
fn quoted_names<'a>(message: &'a str, prefix: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (found, valid) = message.strip_prefix(prefix)?.rsplit_once("`, expected ")?;
    Some((found, valid.split('`').skip(1).step_by(2).collect()))
}

/// Rewords messages such as "invalid type: map, expected a sequence" without Rust terms.
fn reword(path: &Path, message: &str) -> String {
    let mismatch =
        ["invalid type: ", "invalid value: "].iter().find_map(|start| message.strip_prefix(start));
    let Some((found, expected)) = mismatch.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return message.replace('\n', ", ");
    };
    let found = match found {
        "map" => "a table",
        "sequence" => "an array",
        found => found,
    };
    let expected = match expected {
        "a sequence" if found == "a table" => {
            let key = last_key(path).unwrap_or_default();
            return format!("found a table, expected an array; write [[{key}]]");
        }
        "a sequence" => "an array",
        "a nonzero u32" | "a nonzero u64" => "a whole number above zero",
        "u8" => "a whole number from 0 to 255",
        "u32" | "u64" | "usize" => "a whole number",
        "a map" => "a table",
        expected if expected.starts_with("struct ") => "a table",
        expected => expected,
    };
    format!("found {found}, expected {expected}")
}

/// The value in the wording of serde's messages.
pub fn found(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("string {text:?}"),
        toml::Value::Integer(_) => format!("integer `{value}`"),
        toml::Value::Float(_) => format!("floating point `{value}`"),
        toml::Value::Boolean(_) => format!("boolean `{value}`"),
        toml::Value::Array(_) => "an array".to_owned(),
        toml::Value::Table(_) => "a table".to_owned(),
        toml::Value::Datetime(_) => format!("date `{value}`"),
    }
}

/// The noun for the names at `key`.
pub fn noun(key: &str) -> String {
    match key {
        "applies_to" => "direction".to_owned(),
        key => key.replace('_', " "),
    }
}

/// The path in the notation of scenario keys, e.g. `path[0].rate`.
fn keys(path: &Path) -> String {
    path.iter().fold(String::new(), |keys, segment| match segment {
        Segment::Seq { index } => format!("{keys}[{index}]"),
        Segment::Map { key } => join(&keys, key),
        Segment::Enum { .. } | Segment::Unknown => keys,
    })
}

fn join(keys: &str, key: &str) -> String {
    match (keys, key) {
        ("", key) => key.to_owned(),
        (keys, "") => keys.to_owned(),
        (keys, key) if key.starts_with('[') => format!("{keys}{key}"),
        (keys, key) => format!("{keys}.{key}"),
    }
}

/// The innermost key. The problem concerns its value or one of its elements.
fn last_key(path: &Path) -> Option<&str> {
    path.iter().rev().find_map(|segment| match segment {
        Segment::Map { key } => Some(key.as_str()),
        _ => None,
    })
}
