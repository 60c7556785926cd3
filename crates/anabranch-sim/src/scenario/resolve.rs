//! From what is written to what is meant: defaults filled in, names looked up, limits checked.

use std::path::Path as FilePath;

use anabranch_net::{Capacity, GilbertElliottConfig, LinkChange, StateChange};
use anabranch_wire::Duration;

use super::checks::{
    require_before_end, require_name, require_octets, require_some, require_unique,
};
use super::congestion_control::CongestionControlValue;
use super::error::{Problem, unknown_name};
use super::names::{AppliesTo, Protocol};
use super::table::{BurstLossTable, ChangeTable, ConnectionTable, PathTable, ScenarioTable};
use super::value::Used;
use super::{
    CongestionControl, Connection, Path, PathChange, PathDirection, PathManager, Policy, Scenario,
    SharedBottleneckDetection,
};
use super::{middlebox, trace};

/// Smallest MTU: what every IPv4 host must be able to receive. RFC 791 §3.1.
const MIN_MTU: u64 = 576;
/// Largest MTU: the total length field of IPv4. RFC 791 §3.1.
const MAX_MTU: u64 = 65_535;

/// The scenario that `table` describes. The traces that it names are in `folder`.
pub(super) fn scenario(table: ScenarioTable, folder: &FilePath) -> Result<Scenario, Problem> {
    let duration = table.duration.0;
    require_name("name", &table.name)?;
    require_some("duration", duration)?;
    require_some("sample_interval", table.sample_interval.0)?;
    require_before_end("warm_up", table.warm_up.0, duration)?;
    let names: Vec<String> = table.paths.iter().map(|path| path.name.clone()).collect();
    let paths = each("path", table.paths, |key, index, path| {
        resolve_path(key, path, &names[..index], folder)
    })?;
    require_unique("path", names.iter())?;
    let connections = each("connection", table.connections, |key, index, connection| {
        resolve_connection(key, index, connection, &paths, duration)
    })?;
    require_unique("connection", connections.iter().map(|connection| &connection.name))?;
    let cross_traffic = table
        .cross_traffic
        .into_iter()
        .enumerate()
        .map(|(n, traffic)| traffic.resolve(&format!("cross_traffic[{n}]"), n, &paths));
    let cross_traffic = cross_traffic.collect::<Result<Vec<_>, _>>()?;
    require_unique("cross_traffic", cross_traffic.iter().map(|traffic| &traffic.name))?;
    Ok(Scenario {
        name: table.name,
        description: table.description,
        duration,
        warm_up: table.warm_up.0,
        sample_interval: table.sample_interval.0,
        paths,
        connections,
        cross_traffic,
    })
}

/// `before` are the names of the paths listed before this one.
fn resolve_path(
    key: &str,
    table: PathTable,
    before: &[String],
    folder: &FilePath,
) -> Result<Path, Problem> {
    require_name(&format!("{key}.name"), &table.name)?;
    let mtu = table.mtu.0.as_u64();
    if !(MIN_MTU..=MAX_MTU).contains(&mtu) {
        let problem = format!("\"{mtu}B\": an MTU lies between {MIN_MTU}B and {MAX_MTU}B");
        return Err(Problem::new(format!("{key}.mtu"), problem));
    }
    let capacity = trace::resolve(key, table.rate, table.trace, folder)?.ok_or_else(|| {
        let problem = "missing; write a rate such as \"8Mbit/s\", or a trace";
        Problem::new(format!("{key}.rate"), problem)
    })?;
    let (reverse_key, reverse) = (format!("{key}.reverse"), table.reverse);
    let reverse_capacity = trace::resolve(&reverse_key, reverse.rate, reverse.trace, folder)?;
    let forward = PathDirection {
        capacity,
        delay: table.delay.0,
        limit: table.limit.0,
        jitter: table.jitter.0,
        loss: table.loss.0,
    };
    let reverse = PathDirection {
        capacity: reverse_capacity.unwrap_or_else(|| forward.capacity.clone()),
        delay: reverse.delay.map_or(forward.delay, |delay| delay.0),
        limit: reverse.limit.map_or(forward.limit, |limit| limit.0),
        jitter: reverse.jitter.0,
        loss: reverse.loss.0,
    };
    let changes = table.changes.into_iter().enumerate();
    let changes = changes.map(|(n, change)| {
        let key = format!("{key}.change[{n}]");
        let change = resolve_change(&key, change)?;
        require_rate(&key, &change, &forward, &reverse)?;
        Ok(change)
    });
    let changes = changes.collect::<Result<_, _>>()?;
    Ok(Path {
        name: table.name,
        forward,
        reverse,
        jitter_model: table.jitter_model.into(),
        mtu: mtu as u16,
        family: table.family,
        burst_loss: table.burst_loss.map(burst_loss),
        queue: table.queue.resolve(&format!("{key}.queue"))?,
        via: table.via.map(|name| resolve_via(key, &name, before)).transpose()?,
        middleboxes: middlebox::resolve(&format!("{key}.middlebox"), table.middleboxes)?,
        changes,
    })
}

/// A trace has no rate that could change.
fn require_rate(
    key: &str,
    change: &PathChange,
    forward: &PathDirection,
    reverse: &PathDirection,
) -> Result<(), Problem> {
    let follows_trace = |direction: &PathDirection, other| {
        change.change.rate.is_some()
            && change.applies_to != other
            && matches!(direction.capacity, Capacity::Trace(_))
    };
    let (name, other) = if follows_trace(forward, AppliesTo::Reverse) {
        ("forward", "reverse")
    } else if follows_trace(reverse, AppliesTo::Forward) {
        ("reverse", "forward")
    } else {
        return Ok(());
    };
    let problem = format!(
        "the {name} direction follows a trace; leave the rate out, or write applies_to = {other:?}"
    );
    Err(Problem::new(format!("{key}.rate"), problem))
}

fn burst_loss(table: BurstLossTable) -> GilbertElliottConfig {
    GilbertElliottConfig {
        to_bad: table.to_bad.0,
        to_good: table.to_good.0,
        loss_in_bad: table.loss_in_bad.0,
        loss_in_good: table.loss_in_good.0,
    }
}

/// The index of the path that another goes via; it is listed before, so no path goes in circles.
fn resolve_via(key: &str, name: &str, before: &[String]) -> Result<usize, Problem> {
    before.iter().position(|path| path == name).ok_or_else(|| {
        let key = format!("{key}.via");
        if before.is_empty() {
            let problem = format!("{name:?}: the path that this one goes via is listed before it");
            return Problem::new(key, problem);
        }
        let valid: Vec<_> = before.iter().map(String::as_str).collect();
        Problem::new(key, unknown_name("path listed before", name, &valid))
    })
}

fn resolve_change(key: &str, table: ChangeTable) -> Result<PathChange, Problem> {
    let change = LinkChange {
        rate: table.rate.map(|rate| rate.0),
        delay: table.delay.map(|delay| delay.0),
        jitter: table.jitter.map(|jitter| jitter.0),
        loss: table.loss.map(|loss| loss.0),
        state: table.state.map(StateChange::from),
    };
    let goes_or_comes = matches!(change.state, Some(StateChange::Down | StateChange::Up));
    if table.noticed && !goes_or_comes {
        let problem = "true: only state = \"down\" and \"up\" can be noticed; leave it out";
        return Err(Problem::new(format!("{key}.noticed"), problem));
    }
    if change == LinkChange::default() {
        let problem = "changes nothing; write at least one of rate, delay, jitter, loss and state";
        return Err(Problem::new(key, problem));
    }
    let (at, applies_to, noticed) = (table.at.0, table.applies_to, table.noticed);
    Ok(PathChange { at, change, applies_to, noticed })
}

/// Those that do not heed announced addresses would leave the paths of one family alone.
fn require_one_family(
    key: &str,
    path_manager: &Policy<PathManager>,
    used: Used<'_>,
) -> Result<(), Problem> {
    let Policy::BuiltIn(chosen) = path_manager else { return Ok(()) };
    let name = chosen.entry.name;
    let heeds = ["full_mesh", "drepas", "initial_only", "ndiffports"].contains(&name);
    let mut families = used.indices.iter().map(|index| used.paths[*index].family);
    let first = families.next();
    if heeds || families.all(|family| Some(family) == first) {
        return Ok(());
    }
    let problem = format!(
        "{name:?}: uses paths of one family only; give all paths of the connection the same family, \
         or write path_manager = \"full_mesh\""
    );
    Err(Problem::new(format!("{key}.path_manager"), problem))
}

fn resolve_connection(
    key: &str,
    index: usize,
    table: ConnectionTable,
    paths: &[Path],
    duration: Duration,
) -> Result<Connection, Problem> {
    let name = table.name.unwrap_or_else(|| format!("connection-{}", index + 1));
    require_name(&format!("{key}.name"), &name)?;
    require_before_end(&format!("{key}.start"), table.start.0, duration)?;
    require_octets(&format!("{key}.send_buffer"), table.send_buffer.0)?;
    require_octets(&format!("{key}.receive_buffer"), table.receive_buffer.0)?;
    let keep_alive = table.keep_alive.map(|idle| idle.0);
    if let Some(idle) = keep_alive {
        require_some(&format!("{key}.keep_alive"), idle)?;
    }
    let indices = resolve_paths(key, table.paths, table.protocol, paths)?;
    let used = Used { paths, indices: &indices };
    let congestion_control =
        table.congestion_control.unwrap_or_else(|| default_congestion_control(table.protocol));
    let congestion_control = congestion_control
        .try_map(|value| value.resolve(&format!("{key}.congestion_control"), used))?;
    let cubic = matches!(&congestion_control, Policy::BuiltIn(all)
        if all.is_everywhere("cubic") || all.is_everywhere("cubic_linux"));
    let hystart = table.hystart.unwrap_or(cubic);
    if hystart {
        require_hystart(&format!("{key}.hystart"), &congestion_control)?;
    }
    let scheduler =
        table.scheduler.try_map(|value| value.resolve(&format!("{key}.scheduler"), used))?;
    let path_manager =
        table.path_manager.try_map(|value| value.resolve(&format!("{key}.path_manager"), used))?;
    require_one_family(key, &path_manager, used)?;
    let remedies = table.remedies.resolve(&format!("{key}.remedies"), used)?;
    Ok(Connection {
        name,
        protocol: table.protocol,
        direction: table.direction,
        start: table.start.0,
        host: table.host.resolve(&format!("{key}.host"), used)?,
        send_buffer: table.send_buffer.0,
        receive_buffer: table.receive_buffer.0,
        congestion_control,
        scheduler,
        path_manager,
        remedies,
        shared_bottleneck_detection: table
            .shared_bottleneck_detection
            .map(|sbd| SharedBottleneckDetection { loss_threshold: sbd.loss_threshold.0 }),
        nagle: table.nagle,
        keep_alive,
        dss_checksum: table.dss_checksum,
        allow_join_initial_addr_port: table.allow_join_initial_addr_port,
        late_fallback: table.late_fallback,
        ecn: table.ecn,
        sack: table.sack,
        timestamps: table.timestamps,
        hystart,
        workload: table.workload.resolve(&format!("{key}.workload"))?,
        paths: indices,
    })
}

fn default_congestion_control(protocol: Protocol) -> Policy<CongestionControlValue> {
    let name = match protocol {
        Protocol::Mptcp => "lia",
        Protocol::Tcp => "cubic",
    };
    Policy::BuiltIn(CongestionControlValue::Same(name.to_owned()))
}

/// Not every congestion control lets HyStart++ end its slow start.
fn require_hystart(
    key: &str,
    congestion_control: &Policy<CongestionControl>,
) -> Result<(), Problem> {
    let name = match congestion_control {
        Policy::BuiltIn(built_in) => built_in.without_hystart(),
        Policy::Own(name) => Some(name.as_str()),
    };
    let Some(name) = name else { return Ok(()) };
    let problem = format!("true: {name} ends slow start by a rule of its own; leave it out");
    Err(Problem::new(key, problem))
}

/// The indices of the paths that a connection names.
fn resolve_paths(
    key: &str,
    names: Option<Vec<String>>,
    protocol: Protocol,
    paths: &[Path],
) -> Result<Vec<usize>, Problem> {
    let Some(names) = names else {
        let shared = |index| paths.iter().any(|path| path.via == Some(index));
        let usable = if protocol == Protocol::Tcp { 1 } else { paths.len() };
        return Ok((0..paths.len()).filter(|index| !shared(*index)).take(usable).collect());
    };
    let key = format!("{key}.paths");
    if names.is_empty() {
        return Err(Problem::new(key, "[]: a connection needs at least one path"));
    }
    if protocol == Protocol::Tcp && names.len() > 1 {
        let problem = format!("{names:?}: tcp uses one path; write one, or protocol = \"mptcp\"");
        return Err(Problem::new(key, problem));
    }
    let mut indices = Vec::with_capacity(names.len());
    for (n, name) in names.iter().enumerate() {
        let Some(index) = paths.iter().position(|path| path.name == *name) else {
            let valid: Vec<_> = paths.iter().map(|path| path.name.as_str()).collect();
            let problem = unknown_name("path", name, &valid);
            return Err(Problem::new(format!("{key}[{n}]"), problem));
        };
        if indices.contains(&index) {
            let problem = format!("{name:?} is listed twice; a path is listed once");
            return Err(Problem::new(format!("{key}[{n}]"), problem));
        }
        indices.push(index);
    }
    Ok(indices)
}

/// Resolve the elements of the array of tables `name`, of which there must be one at least.
fn each<T, U>(
    name: &str,
    tables: Vec<T>,
    mut resolve: impl FnMut(&str, usize, T) -> Result<U, Problem>,
) -> Result<Vec<U>, Problem> {
    if tables.is_empty() {
        return Err(Problem::new(name, format!("[]: write at least one [[{name}]]")));
    }
    let tables = tables.into_iter().enumerate();
    tables.map(|(n, table)| resolve(&format!("{name}[{n}]"), n, table)).collect()
}
