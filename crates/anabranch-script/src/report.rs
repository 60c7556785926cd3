//! The report of a failed script.

use std::fmt;

/// Width of a report in columns.
const WIDTH: usize = 80;

/// Reason for the failure of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptFailure {
    /// Name of the script's file.
    pub file: String,
    /// The line that failed.
    pub line: u32,
    /// Summary of the failure.
    pub what: String,
    /// The expected event, with its time.
    pub expected: Option<String>,
    /// The actual event, with its time.
    pub came: Option<String>,
    /// Differences between the two events.
    pub differences: Vec<String>,
    /// The last segments and calls before the failure, with their times.
    pub before: Vec<String>,
}

impl fmt::Display for ScriptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}: {}", self.file, self.line, self.what)?;
        let mut part = |title: &str, lines: &[String]| {
            for (number, line) in lines.iter().enumerate() {
                let title = if number == 0 { title } else { "" };
                wrap(f, title, line)?;
            }
            Ok(())
        };
        part("expected", self.expected.as_slice())?;
        part("actual", self.came.as_slice())?;
        part("differs", &self.differences)?;
        part("before", &self.before)
    }
}

/// Number of columns before the text.
const INDENT: usize = 12;

/// Write one entry, wrapped between words. Lines after the first are indented further.
fn wrap(f: &mut fmt::Formatter<'_>, title: &str, text: &str) -> fmt::Result {
    let mut line = format!("  {title:<width$}", width = INDENT - 2);
    let mut at_start = true;
    for word in pieces(text) {
        if !at_start && line.trim_end().len() + 1 + word.trim_end().len() > WIDTH {
            writeln!(f, "{}", line.trim_end())?;
            line = " ".repeat(INDENT + 11);
            line += word.trim_start();
        } else {
            line += word;
        }
        at_start = false;
    }
    writeln!(f, "{}", line.trim_end())
}

/// Words with the spaces before them.
fn pieces(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut start = 0;
    let mut in_word = false;
    for (at, c) in text.char_indices() {
        if c == ' ' && in_word {
            all.push(&text[start..at]);
            start = at;
            in_word = false;
        } else if c != ' ' {
            in_word = true;
        }
    }
    all.push(&text[start..]);
    all
}
