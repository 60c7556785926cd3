//! The host's interfaces and routes, from iproute2.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::process::Command;

use serde::Deserialize;

use super::Family;
use super::step::run;

/// An interface that packets can leave through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The next router; `None` on a point-to-point link.
    pub(crate) gateway: Option<IpAddr>,
    /// Largest IP packet in bytes.
    pub(crate) mtu: u16,
}

#[derive(Deserialize)]
struct InterfaceJson {
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    mtu: u32,
    #[serde(default)]
    addr_info: Vec<AddressJson>,
}

#[derive(Deserialize)]
struct AddressJson {
    local: Option<IpAddr>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    tentative: bool,
}

#[derive(Deserialize)]
struct RouteJson {
    gateway: Option<IpAddr>,
    dev: Option<String>,
    #[serde(default)]
    metric: u32,
}

#[derive(Deserialize)]
struct RuleJson {
    table: Option<String>,
    priority: u32,
}

fn ip<T: serde::de::DeserializeOwned>(arguments: &[&str]) -> io::Result<Vec<T>> {
    let text = run(Command::new("ip").arg("-j").args(arguments), "")?;
    let text = if text.trim().is_empty() { "[]" } else { &text };
    // Some versions write empty objects for what they filter out.
    let values: Vec<serde_json::Value> = serde_json::from_str(text)?;
    let full = values.into_iter().filter(|value| value.as_object().is_none_or(|it| !it.is_empty()));
    full.map(|value| Ok(serde_json::from_value(value)?)).collect()
}

/// The way to `target`, or else to everywhere, through an interface, with addresses of this family.
/// `None` if the interface does not exist, is down, or has no such route.
///
/// # Errors
/// If `ip` is missing.
pub(crate) fn link(
    interface: &str,
    family: Family,
    target: Option<IpAddr>,
) -> io::Result<Option<Link>> {
    let shown = match ip::<InterfaceJson>(&["addr", "show", "dev", interface]) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
        shown => shown.unwrap_or_default(),
    };
    let has = |shown: &InterfaceJson, flag| shown.flags.iter().any(|it| it == flag);
    let Some(shown) = shown.first().filter(|it| has(it, "UP") && has(it, "LOWER_UP")) else {
        return Ok(None);
    };
    // Without an address, `route get` takes any target for a neighbour.
    if !has_global_address(shown, family) {
        return Ok(None);
    }
    let mtu = u16::try_from(shown.mtu).unwrap_or(u16::MAX);
    let routes = match target {
        Some(target) => {
            ip::<RouteJson>(&[family.flag(), "route", "get", &target.to_string(), "oif", interface])
        }
        None => ip(&[family.flag(), "route", "show", "default", "dev", interface]),
    };
    let mut routes = routes.unwrap_or_default();
    // `route show dev` does not repeat the device.
    routes.retain(|route| route.dev.as_deref().is_none_or(|dev| dev == interface));
    let best = routes.into_iter().min_by_key(|route| route.metric);
    Ok(best.map(|route| Link { gateway: route.gateway, mtu }))
}

/// The interface of the default route.
///
/// # Errors
/// If `ip` is missing.
pub(crate) fn default_interface() -> io::Result<Option<String>> {
    for family in Family::ALL {
        let routes: Vec<RouteJson> = ip(&[family.flag(), "route", "show", "default"])?;
        let best = routes.into_iter().min_by_key(|route| route.metric);
        if let Some(dev) = best.and_then(|route| route.dev) {
            return Ok(Some(dev));
        }
    }
    Ok(None)
}

/// Returns `true` if an interface has an IPv6 address that others reach.
///
/// # Errors
/// If `ip` is missing.
pub(crate) fn has_ipv6(interface: &str) -> io::Result<bool> {
    match ip::<InterfaceJson>(&["addr", "show", "dev", interface]) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        shown => Ok(shown.unwrap_or_default().iter().any(|it| has_global_address(it, Family::V6))),
    }
}

/// Returns `true` if an interface has an address that is of use beyond its link.
fn has_global_address(shown: &InterfaceJson, family: Family) -> bool {
    shown.addr_info.iter().any(|address| {
        let is_of_family = address.local.is_some_and(|local| Family::of(local) == family);
        is_of_family && address.scope == "global" && !address.tentative
    })
}

/// The first number from which on `count` routing tables and priorities are unused.
pub(super) fn free_tables(count: u32) -> io::Result<u32> {
    let mut rules: Vec<RuleJson> = ip(&["-4", "rule", "show"])?;
    // A kernel without IPv6 has no rules for it.
    rules.extend(ip(&["-6", "rule", "show"]).unwrap_or_default());
    let is_used = |number: u32| {
        let table = number.to_string();
        rules
            .iter()
            .any(|rule| rule.priority == number || rule.table.as_deref() == Some(table.as_str()))
    };
    let first = (FIRST_TABLE..FIRST_TABLE + 1000 * count.max(1))
        .step_by(count.max(1) as usize)
        .find(|first| !(*first..*first + count).any(is_used));
    first.ok_or_else(|| io::Error::other("no routing tables are free"))
}

/// First table and priority of the search for unused ones (this project). Priorities of the main
/// table (32766) come later.
const FIRST_TABLE: u32 = 7300;

/// The addresses and the port of `HOST:PORT`, from this system's resolver: the first of each family.
///
/// # Errors
/// If there is none.
pub(crate) fn resolve(text: &str) -> Result<Vec<SocketAddr>, String> {
    let found = text.to_socket_addrs().map_err(|error| format!("{text:?}: {error}"))?;
    let mut addresses = Vec::<SocketAddr>::new();
    for address in found {
        if addresses.iter().all(|other| other.is_ipv4() != address.is_ipv4()) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(format!("{text:?} has no address")) } else { Ok(addresses) }
}
