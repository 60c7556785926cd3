//! System calls: `write(4, ..., 1000) = 1000`.

use super::words::numbered;
use crate::cursor::{Cursor, Parsed, unknown};
use crate::script::{Call, CallResult, SetOption, SystemCall};
use crate::stack::SocketOption;

const NAMES: &[&str] = &[
    "socket",
    "bind",
    "listen",
    "accept",
    "connect",
    "write",
    "send",
    "read",
    "recv",
    "shutdown",
    "close",
    "setsockopt",
    "getsockopt",
    "fcntl",
];

/// Errors that scripts may expect, by their names in errno.h.
const ERRORS: &[&str] = &[
    "EAGAIN",
    "EINPROGRESS",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "EPIPE",
    "ENOTCONN",
    "EISCONN",
    "EALREADY",
    "ECONNABORTED",
    "EINVAL",
    "EADDRINUSE",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "ENETRESET",
    "EOPNOTSUPP",
    "EBADF",
];

/// An argument, with the numbers in its text.
struct Argument<'a> {
    at: Cursor<'a>,
    text: String,
}

impl Argument<'_> {
    fn number(&self) -> Parsed<u32> {
        let text = self.text.trim_start_matches('[').trim_end_matches(']');
        text.trim().parse().map_err(|_| self.at.error(format!("\"{}\" is not a number", self.text)))
    }

    fn is_set(&self) -> Parsed<bool> {
        Ok(self.number()? != 0)
    }

    /// `addr[peer1]`, `addr[peer1]:9000`, or `...` for the first address.
    fn address(&self, side: &str) -> Parsed<Option<(u8, Option<u16>)>> {
        if self.text == "..." {
            return Ok(None);
        }
        let parts = self.text.strip_prefix("addr[").and_then(|rest| rest.split_once(']'));
        let parsed = parts.and_then(|(name, rest)| {
            let port = match rest {
                "" => None,
                rest => Some(rest.strip_prefix(':')?.parse().ok()?),
            };
            Some((numbered(name, side)?, port))
        });
        let right = format!("write ..., addr[{side}1] or addr[{side}1]:9000");
        parsed.map(Some).ok_or_else(|| self.at.error(right))
    }
}

pub(super) fn call(cursor: &mut Cursor<'_>) -> Parsed<Call> {
    let at = cursor.clone();
    let name = cursor.word()?;
    if !NAMES.contains(&name) {
        return Err(at.error(unknown("call", name, NAMES)));
    }
    cursor.expect("(", "a call")?;
    let arguments = arguments(cursor)?;
    cursor.expect("=", "a call")?;
    let result = result(cursor)?;
    Ok(Call { what: what(&at, name, &arguments)?, result })
}

/// The arguments up to the closing parenthesis.
fn arguments<'a>(cursor: &mut Cursor<'a>) -> Parsed<Vec<Argument<'a>>> {
    let mut all = Vec::new();
    cursor.skip()?;
    while !cursor.take(")")? {
        let (at, start) = (cursor.clone(), cursor.offset());
        let mut depth = 0;
        loop {
            match cursor.peek() {
                None | Some('\n') => return Err(at.error("unterminated call; close it with )")),
                Some('[' | '{' | '(') => depth += 1,
                Some(']' | '}') => depth -= 1,
                Some(')') if depth > 0 => depth -= 1,
                Some(')' | ',') if depth == 0 => break,
                Some(_) => {}
            }
            cursor.bump();
        }
        all.push(Argument { at, text: cursor.since(start).trim().to_owned() });
        let _ = cursor.take(",")?;
        cursor.skip()?;
    }
    Ok(all)
}

fn result(cursor: &mut Cursor<'_>) -> Parsed<CallResult> {
    if cursor.take("...")? {
        return Ok(CallResult::Any);
    }
    if !cursor.take("-")? {
        let number = cursor.number("the result", u64::from(u32::MAX))? as u32;
        explanation(cursor)?;
        return Ok(CallResult::Value(number));
    }
    cursor.expect("1", "a failing call")?;
    cursor.skip()?;
    let at = cursor.clone();
    let name = cursor.word()?;
    let known = ERRORS.iter().find(|known| **known == name);
    let error = known.ok_or_else(|| at.error(unknown("error", name, ERRORS)))?;
    explanation(cursor)?;
    Ok(CallResult::Error(error))
}

/// Skip an explanation such as `(Connection refused)`.
fn explanation(cursor: &mut Cursor<'_>) -> Parsed<()> {
    if cursor.take("(")? {
        cursor.take_while(|c| c != ')' && c != '\n');
        cursor.expect(")", "an explanation")?;
    }
    Ok(())
}

fn what(at: &Cursor<'_>, name: &str, arguments: &[Argument<'_>]) -> Parsed<SystemCall> {
    let needed = match name {
        "listen" | "shutdown" => 2,
        "socket" | "bind" | "accept" | "connect" | "write" | "read" | "fcntl" => 3,
        "send" | "recv" => 4,
        "close" => 1,
        _ => 5,
    };
    let optional = usize::from(name == "fcntl");
    if !(needed - optional..=needed).contains(&arguments.len()) {
        let found = arguments.len();
        return Err(at.error(format!("{name} has {needed} arguments, not {found}")));
    }
    if name == "socket" {
        return socket(&arguments[2]);
    }
    let socket = arguments[0].number()?;
    Ok(match name {
        "bind" => match arguments[1].address("host")? {
            Some((host, port)) => SystemCall::Bind { socket, host: Some(host), port },
            None => SystemCall::Bind { socket, host: None, port: None },
        },
        "listen" => SystemCall::Listen { socket },
        "accept" => SystemCall::Accept { socket },
        "connect" => {
            let (peer, port) = arguments[1].address("peer")?.unwrap_or((0, None));
            SystemCall::Connect { socket, peer, port }
        }
        "write" | "send" => SystemCall::Write { socket, len: arguments[2].number()? },
        "read" | "recv" => SystemCall::Read { socket, len: arguments[2].number()? },
        "shutdown" if arguments[1].text == "SHUT_WR" => SystemCall::Shutdown { socket },
        "shutdown" => return Err(arguments[1].at.error("unsupported direction; write SHUT_WR")),
        "close" => SystemCall::Close { socket },
        "setsockopt" => set_option(socket, arguments)?,
        "getsockopt" if arguments[2].text == "SO_ERROR" => SystemCall::GetError { socket },
        "getsockopt" => return Err(arguments[2].at.error("unsupported option; write SO_ERROR")),
        _ => fcntl(socket, arguments),
    })
}

fn socket(protocol: &Argument<'_>) -> Parsed<SystemCall> {
    match protocol.text.as_str() {
        "IPPROTO_TCP" | "0" => Ok(SystemCall::Socket { mptcp: false }),
        "IPPROTO_MPTCP" => Ok(SystemCall::Socket { mptcp: true }),
        _ => Err(protocol.at.error("unknown protocol; write IPPROTO_TCP or IPPROTO_MPTCP")),
    }
}

fn set_option(socket: u32, arguments: &[Argument<'_>]) -> Parsed<SystemCall> {
    const NAMES: &[&str] =
        &["SO_REUSEADDR", "SO_RCVBUF", "SO_SNDBUF", "SO_LINGER", "TCP_NODELAY", "TCP_USER_TIMEOUT"];
    let (name, value) = (&arguments[2], &arguments[3]);
    let known = match name.text.as_str() {
        "SO_REUSEADDR" => return Ok(SystemCall::Set { socket, option: SetOption::Ignored }),
        "SO_RCVBUF" => SocketOption::ReceiveBuffer(value.number()?),
        "SO_SNDBUF" => SocketOption::SendBuffer(value.number()?),
        "SO_LINGER" => SocketOption::Abort(linger(value)?),
        "TCP_NODELAY" => SocketOption::NoDelay(value.is_set()?),
        "TCP_USER_TIMEOUT" => SocketOption::UserTimeout(value.number()?),
        other => return Err(name.at.error(unknown("socket option", other, NAMES))),
    };
    Ok(SystemCall::Set { socket, option: SetOption::Known(known) })
}

/// `{onoff=1, linger=0}` makes `close` reset the connection.
fn linger(value: &Argument<'_>) -> Parsed<bool> {
    let plain: String = value.text.chars().filter(|c| !c.is_whitespace()).collect();
    match plain.as_str() {
        "{onoff=1,linger=0}" | "{1,0}" => Ok(true),
        "{onoff=0,linger=0}" | "{0,0}" => Ok(false),
        _ => Err(value
            .at
            .error("unsupported value; write {onoff=1, linger=0} or {onoff=0, linger=0}")),
    }
}

fn fcntl(socket: u32, arguments: &[Argument<'_>]) -> SystemCall {
    if arguments[1].text != "F_SETFL" {
        return SystemCall::Nothing;
    }
    let blocking = !arguments.last().is_some_and(|flags| flags.text.contains("O_NONBLOCK"));
    SystemCall::SetBlocking { socket, blocking }
}
