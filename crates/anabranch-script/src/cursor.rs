//! A position in the text of a script.

use thiserror::Error;

/// An error in a script, in one line: its position, its description and a valid form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {message}")]
#[non_exhaustive]
pub struct ScriptError {
    /// Name of the file as given by the caller.
    pub file: String,
    /// Line, starting at 1.
    pub line: u32,
    /// Column in characters, starting at 1.
    pub column: u32,
    /// Description of the error, with a valid form.
    pub message: String,
}

pub(crate) type Parsed<T> = Result<T, ScriptError>;

/// Reads a script character by character. White space and comments only separate words, so an event
/// may span several lines.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    file: &'a str,
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, file: &'a str) -> Self {
        Cursor { file, text, at: 0 }
    }

    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// The text from `start` to the current position, on one line and without comments.
    pub(crate) fn since(&self, start: usize) -> String {
        let mut part = Cursor { file: self.file, text: &self.text[..self.at], at: start };
        let mut plain = String::new();
        loop {
            let before = part.at;
            // The parser has already rejected unterminated comments in this text.
            let _ = part.skip();
            let Some(next) = part.rest().chars().next() else { break };
            if part.at > before && !plain.is_empty() {
                plain.push(' ');
            }
            plain.push(next);
            part.at += next.len_utf8();
        }
        plain
    }

    pub(crate) fn line(&self) -> u32 {
        1 + self.text[..self.at].matches('\n').count() as u32
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> ScriptError {
        self.error_at(self.at, message)
    }

    pub(crate) fn error_at(&self, at: usize, message: impl Into<String>) -> ScriptError {
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        ScriptError {
            file: self.file.to_owned(),
            line: 1 + before.matches('\n').count() as u32,
            column: 1 + before[line_start..].chars().count() as u32,
            message: message.into(),
        }
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The next character, without skipping white space and comments.
    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consume one character.
    pub(crate) fn bump(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// Skip white space and comments.
    pub(crate) fn skip(&mut self) -> Parsed<()> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let rest = self.rest();
            if rest.starts_with("//") || rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let end = rest.find("*/");
                let end =
                    end.ok_or_else(|| self.error("unterminated comment; close it with */"))?;
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    /// Consume `word` if the text continues with it, even as a part of a longer word.
    pub(crate) fn take_exactly(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Skip white space, then consume `word` if the text continues with it.
    pub(crate) fn take(&mut self, word: &str) -> Parsed<bool> {
        self.skip()?;
        Ok(self.take_exactly(word))
    }

    pub(crate) fn expect(&mut self, word: &str, place: &str) -> Parsed<()> {
        if self.take(word)? {
            return Ok(());
        }
        Err(self.error(format!("found {}; {place} needs \"{word}\" here", self.found())))
    }

    /// Skip white space, then consume letters, digits and underscores; empty if there are none.
    pub(crate) fn word(&mut self) -> Parsed<&'a str> {
        self.skip()?;
        Ok(self.take_while(|c| c.is_alphanumeric() || c == '_'))
    }

    /// The next word, without consuming it.
    pub(crate) fn peek_word(&self) -> Parsed<&'a str> {
        self.clone().word()
    }

    pub(crate) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Consume a whole number, in decimal or with 0x in hexadecimal, of at most `most`.
    pub(crate) fn number(&mut self, what: &str, most: u64) -> Parsed<u64> {
        self.skip()?;
        let (start, found) = (self.at, self.found());
        let hexadecimal = self.take_exactly("0x");
        let digits =
            self.take_while(|c| c.is_ascii_hexdigit() && (hexadecimal || !c.is_alphabetic()));
        let number = u64::from_str_radix(digits, if hexadecimal { 16 } else { 10 });
        match number {
            Ok(number) if number <= most => Ok(number),
            Ok(_) => {
                Err(self.error_at(start, format!("{what} {digits} is too large; at most {most}")))
            }
            Err(_) => Err(self.error_at(start, format!("found {found}; {what} is a number"))),
        }
    }

    /// The text at the current position, for a message.
    pub(crate) fn found(&self) -> String {
        let mut ahead = self.clone();
        if ahead.skip().is_err() || ahead.is_at_end() {
            return "the end of the script".to_owned();
        }
        let word = ahead.take_while(|c| c.is_alphanumeric() || c == '_');
        match word {
            "" => format!("\"{}\"", ahead.peek().unwrap_or_default()),
            word => format!("\"{word}\""),
        }
    }
}

/// The names of a choice, for a message: `a, b or c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

/// The message for a name that is not in `names`. It suggests the most similar name and lists all.
pub(crate) fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    let close = names.iter().map(|other| (strsim::jaro_winkler(name, other), other));
    let close = close.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(likeness, _)| *likeness > 0.75);
    let hint = close.map(|(_, other)| format!("; did you mean \"{other}\"?")).unwrap_or_default();
    format!("unknown {what} \"{name}\"{hint} (valid: {})", names.join(", "))
}
