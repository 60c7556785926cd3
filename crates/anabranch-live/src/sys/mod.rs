//! System calls that the standard library lacks. Rustix makes most of them. Those that it lacks are
//! wrapped in safe functions here.

mod descriptors;
mod interfaces;
mod kernel_info;
mod namespaces;
mod packet_socket;
mod processes;
mod sockets;
mod threads;
mod time;
mod tun;

pub(crate) use descriptors::*;
pub(crate) use interfaces::*;
pub(crate) use kernel_info::*;
pub(crate) use namespaces::*;
pub(crate) use packet_socket::*;
pub(crate) use processes::*;
pub use sockets::unacknowledged;
pub(crate) use sockets::*;
pub use threads::stop_preferring;
pub(crate) use threads::*;
pub(crate) use time::*;
pub(crate) use tun::*;

use std::io;

use libc::c_int;

/// The result of a function of the C library.
fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
