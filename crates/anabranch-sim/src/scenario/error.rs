//! Errors in scenario files, in one line.

use anabranch_config::written::Problem;

/// Keys whose tables have a header in double brackets.
pub(super) const ARRAYS: [&str; 3] = ["path", "connection", "cross_traffic"];

/// An error in a scenario file. It displays as one line: the file, the key (or line and column), the
/// value found, and a valid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {place}: {problem}")]
pub struct ScenarioError {
    file: String,
    place: String,
    problem: String,
}

impl ScenarioError {
    /// An error for a problem in `file`.
    pub(super) fn new(file: &str, problem: Problem) -> Self {
        let Problem { key: place, text: problem } = problem;
        ScenarioError { file: file.to_owned(), place: visible(&place), problem: visible(&problem) }
    }

    /// The key with the mistake, with indices of tables: `path[0].rate`; or line and column.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The value found, and a valid value.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// An error because `text` is not TOML.
    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |span| span.start);
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        let found = text[line_start..].lines().next().unwrap_or_default().trim();
        let hint = ARRAYS
            .iter()
            .find(|name| found == format!("[{name}]"))
            .map_or_else(String::new, |name| format!("; write [[{name}]]"));
        ScenarioError {
            file: file.to_owned(),
            place: format!("line {line}, column {column}"),
            problem: visible(&format!(
                "{} in `{found}`{hint}",
                error.message().replace('\n', ", ")
            )),
        }
    }
}

/// The text with escapes such as `\u{1b}` for characters that a terminal would obey.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for each in text.chars() {
        if each.is_control() {
            shown.extend(each.escape_default());
        } else {
            shown.push(each);
        }
    }
    shown
}
