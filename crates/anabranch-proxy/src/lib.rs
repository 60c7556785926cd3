//! A proxy that carries the connections of unmodified programs over several uplinks with Multipath
//! TCP, and the relay at the other end.
//!
//! A **client** is the proxy of programs on a host with several uplinks: they speak SOCKS5 or HTTP
//! CONNECT to it. A **relay** on a host with one address continues the connections towards their
//! destinations, which need not know Multipath TCP. Between the two, the engine of
//! `anabranch-proto` carries the data, and the 0-RTT TCP Convert Protocol (RFC 8803, [`convert`])
//! says where to.
//!
//! Two processes share the work of each end. One has privileges: it makes a TUN device, routes and
//! a table of nftables, and removes them at the end. The other has none, and parses all packets.

#[cfg(target_os = "linux")]
mod capture_files;
#[cfg(target_os = "linux")]
mod clock;
pub mod convert;
#[cfg(target_os = "linux")]
mod destinations;
#[cfg(target_os = "linux")]
mod front;
#[cfg(target_os = "linux")]
mod measurement;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod orders;
#[cfg(target_os = "linux")]
mod part_file;
#[cfg(target_os = "linux")]
mod policies;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod proof;
#[cfg(target_os = "linux")]
mod setup;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod uplinks;
#[cfg(target_os = "linux")]
mod worker;

#[cfg(target_os = "linux")]
pub use supervisor::{Program, main};
