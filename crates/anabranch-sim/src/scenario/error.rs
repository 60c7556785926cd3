//! What is wrong with a scenario file, in one line.

use serde_path_to_error::{Path, Segment};

/// Why a file is not a scenario. Displays as one line: the file, the key (or line and column),
/// the value found, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {place}: {problem}")]
pub struct ScenarioError {
    file: String,
    place: String,
    problem: String,
}

/// A problem with the value of a key; [`in_file`](Problem::in_file) completes it.
#[derive(Debug)]
pub(super) struct Problem {
    key: String,
    text: String,
}

impl Problem {
    /// `text` is wrong with the value of `key`, e.g. `path[0].rate`.
    pub(super) fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        Problem { key: key.into(), text: text.into() }
    }

    pub(super) fn in_file(self, file: &str) -> ScenarioError {
        ScenarioError { file: file.to_owned(), place: self.key, problem: self.text }
    }
}

impl ScenarioError {
    /// `text` is not TOML.
    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |span| span.start);
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        let found = text[line_start..].lines().next().unwrap_or_default().trim();
        ScenarioError {
            file: file.to_owned(),
            place: format!("line {line}, column {column}"),
            problem: format!("{} in `{found}`", error.message().replace('\n', ", ")),
        }
    }
}

/// Keys of earlier versions, and what is written in their place.
const MOVED: [(&str, &str); 2] = [
    ("profile", "host = \"linux\" or host = \"rfc\""),
    ("linux_buffer_accounting", "host = { kind = \"linux\", buffers = \"socket\" }"),
];

/// What serde says about the value at `path`, in the words of this file.
pub(super) fn describe(path: &Path, message: &str) -> Problem {
    let keys = keys(path);
    if let Some((found, valid)) = quoted_names(message, "unknown field `") {
        let key = if last_key(path) == Some(found) { keys } else { join(&keys, found) };
        return Problem::new(key, unknown_key(found, &valid, &[]));
    }
    if let Some((found, valid)) = quoted_names(message, "unknown variant `") {
        let noun = last_key(path).map_or_else(|| "name".to_owned(), noun);
        return Problem::new(keys, unknown_name(&noun, found, &valid));
    }
    if let Some(missing) = message.strip_prefix("missing field `") {
        let missing = missing.trim_end_matches('`');
        return Problem::new(join(&keys, missing), "missing; this key is required");
    }
    Problem::new(keys, reword(path, message))
}

/// `unknown scheduler "min_rt"; did you mean "min_rtt"? (valid: min_rtt)`
pub(super) fn unknown_name(noun: &str, found: &str, valid: &[&str]) -> String {
    let hint = nearest(found, valid);
    let hint = hint.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
    format!("unknown {noun} {found:?}{hint} (valid: {})", valid.join(", "))
}

/// `unknown key; did you mean "beta"?` What was meant may also be one of `others`, which belong
/// elsewhere.
pub(super) fn unknown_key(found: &str, valid: &[&str], others: &[&str]) -> String {
    if let Some((_, now)) = MOVED.iter().find(|(before, _)| *before == found) {
        return format!("this key is gone; write {now}");
    }
    match nearest(found, &[valid, others].concat()) {
        Some(name) => format!("unknown key; did you mean {name:?}?"),
        None => format!("unknown key (valid: {})", valid.join(", ")),
    }
}

/// The name that was probably meant: at most a third of the letters wrong, or one a part of the
/// other.
fn nearest<'a>(found: &str, valid: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &&str| strsim::damerau_levenshtein(found, name);
    let close = |name: &&str| {
        let part = !found.is_empty() && (name.contains(found) || found.contains(*name));
        part || distance(name) <= found.chars().count().div_ceil(3)
    };
    valid.iter().copied().filter(close).min_by_key(distance)
}

/// From "unknown field `x`, expected one of `a`, `b`": x, and a and b.
fn quoted_names<'a>(message: &'a str, prefix: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (found, valid) = message.strip_prefix(prefix)?.rsplit_once("`, expected ")?;
    Some((found, valid.split('`').skip(1).step_by(2).collect()))
}

/// "invalid type: map, expected a sequence" and the like, without the words of Rust.
fn reword(path: &Path, message: &str) -> String {
    let mismatch =
        ["invalid type: ", "invalid value: "].iter().find_map(|start| message.strip_prefix(start));
    let Some((found, expected)) = mismatch.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return message.replace('\n', ", ");
    };
    let found = if found == "map" { "a table" } else { found };
    let expected = match expected {
        "a sequence" if found == "a table" => {
            let key = last_key(path).unwrap_or_default();
            return format!("found a table, expected an array; write [[{key}]]");
        }
        "a sequence" => "an array",
        "a nonzero u32" | "a nonzero u64" => "a whole number above zero",
        "a map" => "a table",
        expected if expected.starts_with("struct ") => "a table",
        expected => expected,
    };
    format!("found {found}, expected {expected}")
}

/// What the names at `key` are names of.
pub(super) fn noun(key: &str) -> String {
    match key {
        "applies_to" => "direction".to_owned(),
        key => key.replace('_', " "),
    }
}

/// The path in the notation of the file's keys, e.g. `path[0].rate`.
fn keys(path: &Path) -> String {
    path.iter().fold(String::new(), |keys, segment| match segment {
        Segment::Seq { index } => format!("{keys}[{index}]"),
        Segment::Map { key } => join(&keys, key),
        Segment::Enum { .. } | Segment::Unknown => keys,
    })
}

fn join(keys: &str, key: &str) -> String {
    if keys.is_empty() { key.to_owned() } else { format!("{keys}.{key}") }
}

/// The innermost key, whose value or one of whose elements is concerned.
fn last_key(path: &Path) -> Option<&str> {
    path.iter().rev().find_map(|segment| match segment {
        Segment::Map { key } => Some(key.as_str()),
        _ => None,
    })
}
