//! Test a TCP stack segment by segment, with packet scripts in a subset of packetdrill's language.
//!
//! A script lists system calls, segments that a peer sends to the stack under test (`<`), and
//! segments that the stack must send (`>`), each with its time. [`Script::parse`] reads a script
//! and [`play`] plays it against a [`StackUnderTest`]. The [`EngineStack`] runs the engine in virtual
//! time, and `anabranch-live` adds this host's kernel. docs/conformance.md in the repository
//! describes the language.
//!
//! ```
//! use anabranch_script::{EngineStack, Script, play};
//!
//! // RFC 9293 §3.10.7.1: a closed port answers a SYN with a reset.
//! let script = Script::parse(
//!     "+0 < S 0:0(0) win 65535 <mss 1460>\n\
//!      +0 > R. 0:0(0) ack 1\n",
//!     "closed.pkt",
//! )?;
//! let played = play(&script, &mut EngineStack::new(&script.settings));
//! assert!(played.failure.is_none());
//! # Ok::<(), anabranch_script::ScriptError>(())
//! ```

mod compare;
mod compose;
mod cursor;
mod engine;
mod flows;
mod keys;
mod layout;
mod notation;
mod options;
mod parse;
mod play;
mod report;
mod script;
mod settings;
mod sockets;
mod stack;

pub use cursor::ScriptError;
pub use engine::EngineStack;
pub use layout::{Layout, PEER_PORT, PORT};
pub use play::{Played, play};
pub use report::ScriptFailure;
pub use script::Script;
pub use settings::{Congestion, EndpointUse, ScriptSettings};
pub use stack::{CallState, Handle, SocketOption, StackError, StackInfo, StackUnderTest};
