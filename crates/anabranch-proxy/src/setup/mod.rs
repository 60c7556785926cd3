//! Network of a host whose uplinks carry the engine's packets: a TUN device, routes, address
//! translation. Everything has its own name, so nothing else on the host is touched.

mod client;
mod interfaces;
mod record;
mod relay;
mod step;
mod tun;

pub(crate) use client::{ClientSetup, MOST_UPLINKS};
pub(crate) use interfaces::{Link, default_interface, own_addresses, resolve_ipv4};
pub(crate) use record::Record;
pub(crate) use relay::RelaySetup;
pub(crate) use step::{Setup, Step};

/// Marks routes and rules as this program's, in `ip route show` and `ip rule show`. Numbers from 192
/// on are not assigned.
const PROTOCOL: u8 = 196;
/// Packets that wait in the device at most: 1000 are Linux's default for network cards.
const QUEUE: u32 = 1000;

/// Largest packet in bytes: the MTU of a new TUN device.
const MOST_MTU: u16 = 1500;

/// Commands that make the device of an instance, which the user `owner` may open.
fn device(name: &str, owner: u32) -> Vec<Step> {
    vec![
        Step::ip(format!("tuntap add dev {name} mode tun user {owner}")),
        Step::sysctl(format!("net/ipv6/conf/{name}/disable_ipv6"), "1"),
        Step::ip(format!("link set {name} txqueuelen {QUEUE} up")),
        Step::sysctl(format!("net/ipv4/conf/{name}/forwarding"), "1"),
    ]
}

/// The rules that keep this host from becoming a router for others, if it was none on `interface`.
fn no_router(interface: &str, device: &str) -> String {
    format!("    iifname \"{interface}\" oifname != \"{device}\" drop\n")
}

/// Name of an instance's device.
fn device_name(name: &str) -> String {
    format!("ab-{name}")
}

/// Name of an instance's table in nftables.
fn table_name(name: &str) -> String {
    format!("anabranch_{}", name.replace('-', "_"))
}
