//! The sockets of a script by number, and the pending calls.

use std::collections::BTreeMap;

use anabranch_wire::Payload;

use crate::layout::{PEER_PORT, PORT};
use crate::script::{CallResult, SetOption, SystemCall};
use crate::stack::{CallState, Handle, StackUnderTest};

/// A socket of the script.
#[derive(Clone, Copy, Debug)]
struct ScriptSocket {
    handle: Handle,
    blocking: bool,
    /// Numbers of bytes that the script has written and (`read`) read.
    written: u64,
    read: u64,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    Value(u32),
    Error(&'static str),
    /// The call read other bytes than the peer sent.
    Corrupt,
    /// The call is impossible.
    Impossible(String),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sockets {
    by_number: BTreeMap<u32, ScriptSocket>,
    /// Number of bytes that the pending write has already placed.
    placed: u32,
    /// The socket that was last connected or accepted.
    newest: Option<Handle>,
}

impl Sockets {
    pub(crate) fn newest(&self) -> Option<Handle> {
        self.newest
    }

    /// Make a call, or check whether it can return now; `None` while it blocks.
    pub(crate) fn advance(
        &mut self,
        stack: &mut dyn StackUnderTest,
        call: &SystemCall,
        result: &CallResult,
    ) -> Option<Returned> {
        match *call {
            SystemCall::Nothing => Some(match result {
                CallResult::Value(value) => Returned::Value(*value),
                _ => Returned::Value(0),
            }),
            SystemCall::Socket { mptcp } => {
                let progress = stack.socket(mptcp);
                self.opened(progress, result)
            }
            _ => {
                let number = number(call);
                let Some(socket) = self.by_number.get(&number).copied() else {
                    return Some(Returned::Impossible(format!(
                        "no socket has the number {number}"
                    )));
                };
                self.on_socket(stack, call, result, number, socket)
            }
        }
    }

    fn on_socket(
        &mut self,
        stack: &mut dyn StackUnderTest,
        call: &SystemCall,
        result: &CallResult,
        number: u32,
        socket: ScriptSocket,
    ) -> Option<Returned> {
        let handle = socket.handle;
        let blocked = |progress| match progress {
            CallState::Blocked if !socket.blocking => CallState::Failed("EAGAIN"),
            other => other,
        };
        match *call {
            SystemCall::Bind { host, port, .. } => {
                plain(stack.bind(handle, host, port.unwrap_or(PORT)))
            }
            SystemCall::Listen { .. } => plain(stack.listen(handle)),
            SystemCall::Shutdown { .. } => plain(stack.shutdown(handle)),
            SystemCall::Close { .. } => {
                self.by_number.remove(&number);
                plain(stack.close(handle))
            }
            SystemCall::Set { option: SetOption::Known(option), .. } => {
                plain(stack.set_option(handle, option))
            }
            SystemCall::SetBlocking { blocking, .. } => {
                self.by_number.insert(number, ScriptSocket { blocking, ..socket });
                Some(Returned::Value(0))
            }
            SystemCall::GetError { .. } => {
                Some(stack.take_error(handle).map_or(Returned::Value(0), Returned::Error))
            }
            SystemCall::Connect { peer, port, .. } => {
                self.newest = Some(handle);
                match stack.connect(handle, peer, port.unwrap_or(PEER_PORT)) {
                    CallState::Blocked if !socket.blocking => Some(Returned::Error("EINPROGRESS")),
                    other => plain(other),
                }
            }
            SystemCall::Accept { .. } => {
                let progress = match stack.accept(handle) {
                    CallState::Blocked if !socket.blocking => CallState::Failed("EAGAIN"),
                    other => other,
                };
                self.opened(progress, result)
            }
            SystemCall::Write { len, .. } => {
                let progress = stack.write(handle, socket.written, len - self.placed);
                self.wrote(number, socket, len, progress)
            }
            SystemCall::Read { len, .. } => match blocked(stack.read(handle, len)) {
                CallState::Done(payload) => Some(self.took(number, socket, &payload)),
                CallState::Blocked => None,
                CallState::Failed(error) => Some(Returned::Error(error)),
            },
            _ => Some(Returned::Value(0)),
        }
    }

    /// Give a new socket the number that the script expects.
    fn opened(&mut self, progress: CallState<Handle>, result: &CallResult) -> Option<Returned> {
        let handle = match progress {
            CallState::Done(handle) => handle,
            CallState::Blocked => return None,
            CallState::Failed(error) => return Some(Returned::Error(error)),
        };
        let lowest = (3..).find(|number| !self.by_number.contains_key(number));
        let number = match result {
            CallResult::Value(number) => *number,
            _ => lowest.expect("numbers do not run out"),
        };
        if self.by_number.contains_key(&number) {
            return Some(Returned::Impossible(format!("the socket number {number} is taken")));
        }
        self.newest = Some(handle);
        let socket = ScriptSocket { handle, blocking: true, written: 0, read: 0 };
        self.by_number.insert(number, socket);
        Some(Returned::Value(number))
    }

    /// A blocking write returns when all data is placed.
    fn wrote(
        &mut self,
        number: u32,
        socket: ScriptSocket,
        len: u32,
        progress: CallState<u32>,
    ) -> Option<Returned> {
        let bytes = match progress {
            CallState::Done(bytes) => bytes,
            CallState::Blocked => 0,
            CallState::Failed(error) if self.placed == 0 => return Some(Returned::Error(error)),
            CallState::Failed(_) => {
                return Some(Returned::Value(std::mem::take(&mut self.placed)));
            }
        };
        self.placed += bytes;
        let written = socket.written + u64::from(bytes);
        self.by_number.insert(number, ScriptSocket { written, ..socket });
        if self.placed < len && socket.blocking {
            return None;
        }
        match std::mem::take(&mut self.placed) {
            0 if len > 0 => Some(Returned::Error("EAGAIN")),
            all => Some(Returned::Value(all)),
        }
    }

    fn took(&mut self, number: u32, socket: ScriptSocket, payload: &Payload) -> Returned {
        let read = socket.read + payload.len() as u64;
        self.by_number.insert(number, ScriptSocket { read, ..socket });
        if payload.matches_pattern(socket.read) {
            Returned::Value(payload.len() as u32)
        } else {
            Returned::Corrupt
        }
    }
}

fn plain(progress: CallState<()>) -> Option<Returned> {
    match progress {
        CallState::Done(()) => Some(Returned::Value(0)),
        CallState::Blocked => None,
        CallState::Failed(error) => Some(Returned::Error(error)),
    }
}

fn number(call: &SystemCall) -> u32 {
    match *call {
        SystemCall::Bind { socket, .. }
        | SystemCall::Listen { socket }
        | SystemCall::Accept { socket }
        | SystemCall::Connect { socket, .. }
        | SystemCall::Write { socket, .. }
        | SystemCall::Read { socket, .. }
        | SystemCall::Shutdown { socket }
        | SystemCall::Close { socket }
        | SystemCall::Set { socket, .. }
        | SystemCall::GetError { socket }
        | SystemCall::SetBlocking { socket, .. } => socket,
        SystemCall::Socket { .. } | SystemCall::Nothing => 0,
    }
}
