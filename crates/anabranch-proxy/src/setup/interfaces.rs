//! The host's interfaces and routes, from iproute2.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::process::Command;

use serde::Deserialize;

use super::step::run;
use super::{Family, PROTOCOL};

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
    protocol: Option<String>,
    table: Option<String>,
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
    let has = |shown: &InterfaceJson, flag| shown.flags.iter().any(|it| it == flag);
    let Some(shown) = show(interface)?.filter(|it| has(it, "UP") && has(it, "LOWER_UP")) else {
        return Ok(None);
    };
    // Without an address, `route get` takes any target for a neighbour.
    if !has_global_address(&shown, family) {
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
    let Some(best) = best else { return Ok(None) };
    if let (None, Some(target)) = (best.gateway, target)
        && !has_route(interface, family, target)?
    {
        return Ok(None);
    }
    Ok(Some(Link { gateway: best.gateway, mtu }))
}

/// Returns `true` if a route of this host leads to `target` through an interface. Without a route,
/// `route get` with an output interface takes any IPv4 target for a neighbour.
///
/// # Errors
/// If `ip` is missing.
fn has_route(interface: &str, family: Family, target: IpAddr) -> io::Result<bool> {
    let target = target.to_string();
    let arguments =
        ["-N", family.flag(), "route", "show", "table", "all", "match", &target, "dev", interface];
    match ip::<RouteJson>(&arguments) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        shown => Ok(shown.unwrap_or_default().iter().any(|route| !is_own(route))),
    }
}

/// Returns `true` if this program has made a route.
fn is_own(route: &RouteJson) -> bool {
    route.protocol.as_deref() == Some(PROTOCOL.to_string().as_str())
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

/// Returns `true` if this host has an interface.
///
/// # Errors
/// If `ip` is missing.
pub(crate) fn exists(interface: &str) -> io::Result<bool> {
    Ok(show(interface)?.is_some())
}

/// Returns `true` if an interface has an IPv6 address that others reach.
///
/// # Errors
/// If `ip` is missing.
pub(crate) fn has_ipv6(interface: &str) -> io::Result<bool> {
    Ok(show(interface)?.is_some_and(|shown| has_global_address(&shown, Family::V6)))
}

/// An interface; `None` if there is none with this name.
fn show(interface: &str) -> io::Result<Option<InterfaceJson>> {
    match ip::<InterfaceJson>(&["addr", "show", "dev", interface]) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        shown => Ok(shown.unwrap_or_default().pop()),
    }
}

/// Returns `true` if a table of this program has a default route through an interface. The kernel
/// removes the routes of an interface that goes down or loses its last address.
pub(super) fn has_own_route(interface: &str, family: Family, table: u32) -> bool {
    let (table, protocol) = (table.to_string(), PROTOCOL.to_string());
    let arguments = [
        family.flag(),
        "route",
        "show",
        "default",
        "table",
        &table,
        "proto",
        &protocol,
        "dev",
        interface,
    ];
    ip::<RouteJson>(&arguments).is_ok_and(|routes| !routes.is_empty())
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
    // Names of tables would hide their numbers.
    let mut rules: Vec<RuleJson> = ip(&["-N", "-4", "rule", "show"])?;
    // A kernel without IPv6 has no rules for it.
    rules.extend(ip(&["-N", "-6", "rule", "show"]).unwrap_or_default());
    // Routes of both families.
    let routes: Vec<RouteJson> = ip(&["-N", "route", "show", "table", "all"])?;
    let first = first_free(count, &rules, &routes);
    first.ok_or_else(|| io::Error::other("no routing tables are free"))
}

/// The first number from which on no rule has one of `count` numbers as its priority or its table, and
/// no route is in a table with such a number.
fn first_free(count: u32, rules: &[RuleJson], routes: &[RouteJson]) -> Option<u32> {
    let tables = rules.iter().map(|rule| &rule.table);
    let tables = tables.chain(routes.iter().map(|route| &route.table)).flatten();
    let numbers = tables.filter_map(|table| table.parse::<u32>().ok());
    let used: BTreeSet<u32> = numbers.chain(rules.iter().map(|rule| rule.priority)).collect();
    (FIRST_TABLE..FIRST_TABLE + 1000 * count.max(1))
        .step_by(count.max(1) as usize)
        .find(|first| used.range(*first..*first + count).next().is_none())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_rules_or_routes_are_not_free() {
        let rules = r#"[{"priority":0,"src":"all","table":"255"},
            {"priority":32766,"src":"all","table":"254"},
            {"priority":7302,"src":"all","table":"100"},
            {"priority":100,"src":"all","table":"7306"},
            {"priority":200,"action":"unreachable"}]"#;
        let routes = r#"[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","protocol":"16"},
            {"dst":"10.0.0.0/8","dev":"eth0","table":"7309","protocol":"4","scope":"253"},
            {"type":"2","dst":"::1","dev":"lo","table":"255","protocol":"2","metric":0}]"#;
        let rules: Vec<RuleJson> = serde_json::from_str(rules).expect("ip writes it");
        let routes: Vec<RouteJson> = serde_json::from_str(routes).expect("ip writes it");
        assert_eq!(first_free(1, &rules, &routes), Some(7300));
        assert_eq!(first_free(2, &rules, &routes), Some(7300));
        assert_eq!(first_free(3, &rules, &routes), Some(7303));
        assert_eq!(first_free(4, &rules, &routes), Some(7312));
        assert_eq!(first_free(3, &[], &routes), Some(7300));
    }

    #[test]
    fn own_routes_do_not_make_an_uplink_usable() {
        let own = r#"{"dst":"default","dev":"ppp0","table":"7300","protocol":"196"}"#;
        let other = r#"{"dst":"default","dev":"ppp0","protocol":"3","scope":"253"}"#;
        let route = |text| serde_json::from_str::<RouteJson>(text).expect("ip writes it");
        assert!(is_own(&route(own)) && !is_own(&route(other)));
    }
}
