//! From what is written to what is meant: defaults filled in, names looked up, limits checked.

use anabranch_net::units::{Octets, format_duration};
use anabranch_net::{LinkChange, StateChange};
use anabranch_wire::Duration;

use super::error::{Problem, unknown_name};
use super::factor::Factor;
use super::names::{CongestionControlName, Protocol, WorkloadKind};
use super::table::{ChangeTable, ConnectionTable, PathTable, ScenarioTable, WorkloadTable};
use super::{Connection, MptBm, Path, PathChange, PathDirection, Scenario, Workload};

/// Smallest MTU: what every IPv4 host must be able to receive. RFC 791 §3.1.
const MIN_MTU: u64 = 576;
/// Largest MTU: the total length field of IPv4. RFC 791 §3.1.
const MAX_MTU: u64 = 65_535;

/// The scenario that `table` describes.
pub(super) fn scenario(table: ScenarioTable) -> Result<Scenario, Problem> {
    let duration = table.duration.0;
    require_name("name", &table.name)?;
    require_some("duration", duration)?;
    require_some("sample_interval", table.sample_interval.0)?;
    require_before_end("warm_up", table.warm_up.0, duration)?;
    let paths = each("path", table.paths, |key, _, path| resolve_path(key, path))?;
    require_unique("path", paths.iter().map(|path| &path.name))?;
    let connections = each("connection", table.connections, |key, index, connection| {
        resolve_connection(key, index, connection, &paths, duration)
    })?;
    require_unique("connection", connections.iter().map(|connection| &connection.name))?;
    Ok(Scenario {
        name: table.name,
        description: table.description,
        duration,
        warm_up: table.warm_up.0,
        sample_interval: table.sample_interval.0,
        paths,
        connections,
    })
}

fn resolve_path(key: &str, table: PathTable) -> Result<Path, Problem> {
    require_name(&format!("{key}.name"), &table.name)?;
    let mtu = table.mtu.0.as_u64();
    if !(MIN_MTU..=MAX_MTU).contains(&mtu) {
        let problem = format!("\"{mtu}B\": an MTU lies between {MIN_MTU}B and {MAX_MTU}B");
        return Err(Problem::new(format!("{key}.mtu"), problem));
    }
    let forward = PathDirection {
        rate: table.rate.0,
        delay: table.delay.0,
        limit: table.limit.0,
        jitter: table.jitter.0,
        loss: table.loss.0,
    };
    let reverse = PathDirection {
        rate: table.reverse.rate.map_or(forward.rate, |rate| rate.0),
        delay: table.reverse.delay.map_or(forward.delay, |delay| delay.0),
        limit: table.reverse.limit.map_or(forward.limit, |limit| limit.0),
        jitter: table.reverse.jitter.0,
        loss: table.reverse.loss.0,
    };
    let changes = table.changes.into_iter().enumerate();
    let changes = changes.map(|(n, change)| resolve_change(&format!("{key}.change[{n}]"), change));
    Ok(Path {
        name: table.name,
        forward,
        reverse,
        jitter_model: table.jitter_model.into(),
        mtu: mtu as u16,
        changes: changes.collect::<Result<_, _>>()?,
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
    if change == LinkChange::default() {
        let problem = "changes nothing; write at least one of rate, delay, jitter, loss and state";
        return Err(Problem::new(key, problem));
    }
    Ok(PathChange { at: table.at.0, change, applies_to: table.applies_to })
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
    require_one(&format!("{key}.cwnd_cap"), table.cwnd_cap)?;
    require_one(&format!("{key}.mpt_bm.lambda"), table.mpt_bm.map(|bm| bm.lambda))?;
    let congestion_control =
        table.congestion_control.unwrap_or_else(|| default_congestion_control(table.protocol));
    let hystart = table.hystart.unwrap_or(congestion_control == CongestionControlName::Cubic);
    if hystart && congestion_control == CongestionControlName::Wvegas {
        let problem = "true: wvegas ends slow start by a rule of its own; leave it out";
        return Err(Problem::new(format!("{key}.hystart"), problem));
    }
    Ok(Connection {
        name,
        paths: resolve_paths(key, table.paths, table.protocol, paths)?,
        protocol: table.protocol,
        direction: table.direction,
        start: table.start.0,
        send_buffer: table.send_buffer.0,
        receive_buffer: table.receive_buffer.0,
        congestion_control,
        scheduler: table.scheduler.0.resolve(&format!("{key}.scheduler"))?,
        path_manager: table.path_manager,
        opportunistic_retransmission: table.opportunistic_retransmission,
        penalisation: table.penalisation,
        cwnd_cap: table.cwnd_cap,
        mpt_bm: table.mpt_bm.map(|bm| MptBm { lambda: bm.lambda, theta: bm.theta.0 }),
        buffer_autotuning: table.buffer_autotuning,
        profile: table.profile,
        nagle: table.nagle,
        hystart,
        workload: resolve_workload(&format!("{key}.workload"), table.workload)?,
    })
}

fn default_congestion_control(protocol: Protocol) -> CongestionControlName {
    match protocol {
        Protocol::Mptcp => CongestionControlName::Lia,
        Protocol::Tcp => CongestionControlName::Cubic,
    }
}

/// The indices of the paths that a connection names.
fn resolve_paths(
    key: &str,
    names: Option<Vec<String>>,
    protocol: Protocol,
    paths: &[Path],
) -> Result<Vec<usize>, Problem> {
    let Some(names) = names else {
        let usable = if protocol == Protocol::Tcp { 1 } else { paths.len() };
        return Ok((0..usable).collect());
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

fn resolve_workload(key: &str, table: WorkloadTable) -> Result<Workload, Problem> {
    let foreign = |name: &str, kind: &str, other: &str| {
        let problem =
            format!("a {kind} workload has no {name}; leave it out or write kind = {other:?}");
        Err(Problem::new(format!("{key}.{name}"), problem))
    };
    match table.kind {
        WorkloadKind::Bulk if table.block_size.is_some() => foreign("block_size", "bulk", "blocks"),
        WorkloadKind::Bulk if table.count.is_some() => foreign("count", "bulk", "blocks"),
        WorkloadKind::Bulk => {
            let size = table.size.map(|size| size.0);
            size.map_or(Ok(()), |size| require_octets(&format!("{key}.size"), size))?;
            Ok(Workload::Bulk { size })
        }
        WorkloadKind::Blocks if table.size.is_some() => foreign("size", "blocks", "bulk"),
        WorkloadKind::Blocks => {
            let block_size = table.block_size.map_or(Octets::new(8 << 10), |size| size.0);
            require_octets(&format!("{key}.block_size"), block_size)?;
            Ok(Workload::Blocks { block_size, count: table.count.map(|count| count.get()) })
        }
    }
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

fn require_name(key: &str, name: &str) -> Result<(), Problem> {
    if name.trim().is_empty() {
        return Err(Problem::new(key, format!("{name:?}: a name needs at least one letter")));
    }
    Ok(())
}

fn require_unique<'a>(noun: &str, names: impl Iterator<Item = &'a String>) -> Result<(), Problem> {
    let names: Vec<_> = names.collect();
    for (n, name) in names.iter().enumerate() {
        if let Some(first) = names[..n].iter().position(|other| other == name) {
            let problem =
                format!("{name:?} is already the name of {noun}[{first}]; choose another");
            return Err(Problem::new(format!("{noun}[{n}].name"), problem));
        }
    }
    Ok(())
}

fn require_some(key: &str, time: Duration) -> Result<(), Problem> {
    if time.is_zero() {
        return Err(Problem::new(key, "\"0s\": must be longer than zero"));
    }
    Ok(())
}

fn require_before_end(key: &str, time: Duration, duration: Duration) -> Result<(), Problem> {
    if time < duration {
        return Ok(());
    }
    let (time, duration) = (format_duration(time), format_duration(duration));
    let problem = format!("{time:?}: must be less than the duration, {duration:?}");
    Err(Problem::new(key, problem))
}

/// A multiple of the smallest RTT, which no RTT is below.
fn require_one(key: &str, factor: Option<Factor>) -> Result<(), Problem> {
    match factor.filter(|factor| *factor < Factor::from_thousandths(1_000)) {
        Some(factor) => Err(Problem::new(key, format!("{factor}: must be 1 or more"))),
        None => Ok(()),
    }
}

fn require_octets(key: &str, octets: Octets) -> Result<(), Problem> {
    if octets == Octets::default() {
        return Err(Problem::new(key, "\"0B\": must be at least one octet"));
    }
    Ok(())
}
