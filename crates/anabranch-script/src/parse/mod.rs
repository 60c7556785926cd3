//! The parser of scripts: a header, then events.

mod call;
mod header;
mod options;
mod segment;
mod words;

use anabranch_wire::Duration;

use crate::cursor::{Cursor, Parsed, ScriptError};
use crate::script::{Action, Fact, FactValue, Moment, Relation, Script, ScriptEvent, Time};

impl Script {
    /// Parse the text of a script. `file` is its name in messages.
    ///
    /// # Errors
    /// If the text is not a valid script. The error is one line with the position, the reason and a
    /// valid form.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScriptError> {
        script(text, file)
    }
}

fn script(text: &str, file: &str) -> Parsed<Script> {
    let mut cursor = Cursor::new(text, file);
    let settings = header::settings(&mut cursor)?;
    let mut events = Vec::new();
    cursor.skip()?;
    while !cursor.is_at_end() {
        events.push(event(&mut cursor)?);
        cursor.skip()?;
    }
    if events.is_empty() {
        return Err(cursor.error("the script has no events; write one: +0 < S 0:0(0) win 65535"));
    }
    Ok(Script { file: file.to_owned(), shows: first_comment(text), settings, events })
}

/// The comment at the start of a script, on one line.
fn first_comment(text: &str) -> String {
    let lines = text.trim_start().lines().map(str::trim);
    let comment = lines
        .map_while(|line| line.strip_prefix("//").or_else(|| line.strip_prefix('#')))
        .map(str::trim);
    comment.collect::<Vec<_>>().join(" ")
}

fn event(cursor: &mut Cursor<'_>) -> Parsed<ScriptEvent> {
    let (line, start) = (cursor.line(), cursor.offset());
    let time = time(cursor)?;
    let time_text = cursor.since(start);
    cursor.skip()?;
    let (start, at) = (cursor.offset(), cursor.clone());
    let action = action(cursor)?;
    match (&action, time) {
        (Action::Call(_), _) | (_, Time::Exactly(_)) => {}
        (Action::Outbound(_), Time::Any | Time::Within(..)) => {}
        (Action::Outbound(_), Time::Blocking(..)) => {
            return Err(at.error("a segment has no duration; write a range such as +0.1~+0.3"));
        }
        _ => {
            return Err(at.error(
                "only outgoing segments and calls may have such a time; write +0.1 or 0.1",
            ));
        }
    }
    if matches!((&action, time), (Action::Call(_), Time::Any | Time::Within(..))) {
        return Err(at.error("a call starts at one time; write +0...+0.2 for a call that blocks"));
    }
    Ok(ScriptEvent { line, time, text: cursor.since(start), time_text, action })
}

/// `*`, `0.1`, `+0.1`, `+0.1~+0.3` or `+0...+0.2`.
fn time(cursor: &mut Cursor<'_>) -> Parsed<Time> {
    if cursor.take_exactly("*") {
        return Ok(Time::Any);
    }
    let from = moment(cursor)?;
    if cursor.take_exactly("...") {
        let end = end_of(from, moment(cursor)?);
        return Ok(Time::Blocking(from, end));
    }
    if cursor.take_exactly("~") {
        let end = end_of(from, moment(cursor)?);
        return Ok(Time::Within(from, end));
    }
    Ok(Time::Exactly(from))
}

/// The second time of a pair is relative if the first is.
fn end_of(from: Moment, to: Moment) -> Moment {
    Moment { relative: from.relative || to.relative, offset: to.offset }
}

fn moment(cursor: &mut Cursor<'_>) -> Parsed<Moment> {
    let at = cursor.clone();
    let relative = cursor.take_exactly("+");
    let whole = cursor.take_while(|c| c.is_ascii_digit());
    let mut ahead = cursor.clone();
    let mut digits = "";
    // "0...0.2" is not "0." and "..0.2".
    if ahead.take_exactly(".") && ahead.peek().is_some_and(|c| c.is_ascii_digit()) {
        digits = ahead.take_while(|c| c.is_ascii_digit());
        *cursor = ahead;
    }
    if whole.is_empty() && digits.is_empty() {
        let found = at.found();
        return Err(at.error(format!("found {found}; an event starts with a time: +0.1, 0.1 or *")));
    }
    if digits.len() > 9 || whole.len() > 6 {
        return Err(at.error("time out of range; write at most 999999 s with nine decimals"));
    }
    let seconds: u64 = whole.parse().unwrap_or(0);
    let nanos: u64 = format!("{digits:0<9}").parse().expect("nine digits");
    let offset = Duration::from_nanos(seconds * 1_000_000_000 + nanos);
    Ok(Moment { relative, offset })
}

fn action(cursor: &mut Cursor<'_>) -> Parsed<Action> {
    if cursor.take_exactly("<") {
        return Ok(Action::Inbound(segment::segment(cursor, true)?));
    }
    if cursor.take_exactly(">?") {
        return Ok(Action::Permitted(segment::segment(cursor, false)?));
    }
    if cursor.take_exactly(">") {
        return Ok(Action::Outbound(segment::segment(cursor, false)?));
    }
    if cursor.take_exactly("%{") || cursor.peek() == Some('`') {
        return Err(
            cursor.error("Python and shell code are not supported; use assert and --endpoint")
        );
    }
    match cursor.peek_word()? {
        "assert" => assertion(cursor),
        "address" => address(cursor),
        "" => Err(cursor.error(format!(
            "found {}; write < or > and a segment, a call, assert or address after the time",
            cursor.found()
        ))),
        _ => Ok(Action::Call(call::call(cursor)?)),
    }
}

/// `assert connection == mptcp`, `assert subflows == 2`, `assert cwnd <= 10`.
fn assertion(cursor: &mut Cursor<'_>) -> Parsed<Action> {
    cursor.word()?;
    cursor.skip()?;
    let at = cursor.clone();
    let fact = match cursor.word()? {
        "connection" => Fact::Connection,
        "subflows" => Fact::Subflows,
        "cwnd" => Fact::Cwnd,
        name => {
            let names = ["connection", "subflows", "cwnd"];
            return Err(at.error(crate::cursor::unknown("fact", name, &names)));
        }
    };
    cursor.skip()?;
    let at_most = fact != Fact::Connection && cursor.take_exactly("<=");
    let at_least = fact != Fact::Connection && cursor.take_exactly(">=");
    let relation = match (at_most, at_least) {
        (true, _) => Relation::AtMost,
        (_, true) => Relation::AtLeast,
        _ => {
            cursor.expect("==", "an assertion")?;
            Relation::Equal
        }
    };
    let expected = if fact == Fact::Connection {
        cursor.skip()?;
        let at = cursor.clone();
        match cursor.word()? {
            "tcp" => FactValue::Tcp,
            "mptcp" => FactValue::Mptcp,
            name => {
                return Err(at.error(crate::cursor::unknown("protocol", name, &["tcp", "mptcp"])));
            }
        }
    } else {
        FactValue::Number(cursor.number("the value", u64::MAX)?)
    };
    Ok(Action::Assert { fact, relation, expected })
}

/// `address host1 down`, `address host1 up`.
fn address(cursor: &mut Cursor<'_>) -> Parsed<Action> {
    cursor.word()?;
    cursor.skip()?;
    let at = cursor.clone();
    let host = match words::numbered(cursor.word()?, "host") {
        Some(host) => host,
        None => return Err(at.error("address needs an address of the host: host0 to host3")),
    };
    cursor.skip()?;
    let at = cursor.clone();
    match cursor.word()? {
        "up" => Ok(Action::Address { host, up: true }),
        "down" => Ok(Action::Address { host, up: false }),
        name => Err(at.error(crate::cursor::unknown("state", name, &["up", "down"]))),
    }
}
