//! Network of a host whose uplinks carry the engine's packets: a TUN device, routes, address
//! translation. Everything has its own name, so nothing else on the host is touched.

mod client;
mod family;
mod interfaces;
mod neighbours;
mod record;
mod relay;
mod step;
mod sysctl;
mod tun;

pub(crate) use client::{ClientSetup, MOST_UPLINKS, Ways};
pub(crate) use family::{Family, NO_IPV6};
pub(crate) use interfaces::{default_interface, exists, has_ipv6, resolve};
pub(crate) use neighbours::Neighbours;
pub(crate) use record::{InstanceRecord, RecordError, others};
pub(crate) use relay::RelaySetup;
pub(crate) use step::{Setup, SetupStep};

/// Marks routes and rules as this program's, in `ip route show` and `ip rule show`. Numbers from 192
/// on are not assigned.
const PROTOCOL: u8 = 196;
/// Packets that wait in the device at most: 1000 are Linux's default for network cards.
const QUEUE: u32 = 1000;

/// Largest packet in bytes: the MTU of a new TUN device.
const MOST_MTU: u16 = 1500;

/// Commands that make the device of an instance, which the user `owner` may open, for packets of these
/// families.
fn device(name: &str, owner: u32, families: &[Family]) -> Vec<SetupStep> {
    let mut steps = vec![SetupStep::ip(format!("tuntap add dev {name} mode tun user {owner}"))];
    let has_ipv6 = families.contains(&Family::V6);
    if Family::V6.exists() {
        let disabled = if has_ipv6 { "0" } else { "1" };
        steps.push(SetupStep::sysctl(format!("net/ipv6/conf/{name}/disable_ipv6"), disabled));
    }
    if has_ipv6 {
        // Without link-local addresses, the kernel sends nothing of its own.
        steps.push(SetupStep::sysctl(format!("net/ipv6/conf/{name}/addr_gen_mode"), "1"));
    }
    steps.push(SetupStep::ip(format!("link set {name} txqueuelen {QUEUE} up")));
    let keys = families.iter().filter_map(|family| family.forwarding(name));
    steps.extend(keys.map(|key| SetupStep::sysctl(key, "1")));
    steps
}

/// Rules that keep this host from becoming a router for others on these interfaces, which forwarded
/// nothing before. Packets for the device of another instance are left to its table.
fn no_router(closed: &[&str]) -> String {
    let rule = |interface| format!("    iifname \"{interface}\" oifname != {DEVICES} drop\n");
    closed.iter().map(rule).collect()
}

/// Name of an instance's device.
fn device_name(name: &str) -> String {
    format!("ab-{name}")
}

/// The devices of all instances, in nftables.
const DEVICES: &str = "\"ab-*\"";

/// Name of an instance's table in nftables.
fn table_name(name: &str) -> String {
    format!("anabranch_{}", name.replace('-', "_"))
}
