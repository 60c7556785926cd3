//! From what is meant back to what is written, with every default spelled out.

use anabranch_net::GilbertElliottConfig;

use super::chosen::Choice;
use super::congestion_control::CongestionControlValue;
use super::cross_traffic::CrossTrafficTable;
use super::middlebox::MiddleboxTable;
use super::queue::QueueTable;
use super::remedies::RemediesTable;
use super::table::{
    BurstLossTable, ChangeTable, ConnectionTable, PathTable, ReverseTable, ScenarioTable,
    SharedBottleneckDetectionTable,
};
use super::trace;
use super::value::Used;
use super::written::Written;
use super::{Connection, Path, PathChange, Scenario};

/// The table that describes `scenario` in full.
pub(super) fn table(scenario: &Scenario) -> ScenarioTable {
    let connections = scenario.connections.iter();
    ScenarioTable {
        name: scenario.name.clone(),
        description: scenario.description.clone(),
        duration: Written(scenario.duration),
        warm_up: Written(scenario.warm_up),
        sample_interval: Written(scenario.sample_interval),
        paths: scenario.paths.iter().map(|path| path_table(path, &scenario.paths)).collect(),
        connections: connections
            .map(|connection| connection_table(connection, &scenario.paths))
            .collect(),
        cross_traffic: (scenario.cross_traffic.iter())
            .map(|traffic| CrossTrafficTable::new(traffic, &scenario.paths))
            .collect(),
    }
}

fn path_table(path: &Path, paths: &[Path]) -> PathTable {
    let (rate, trace) = trace::write(&path.forward.capacity);
    let (reverse_rate, reverse_trace) = trace::write(&path.reverse.capacity);
    PathTable {
        name: path.name.clone(),
        rate,
        trace,
        delay: Written(path.forward.delay),
        limit: Written(path.forward.limit),
        jitter: Written(path.forward.jitter),
        jitter_model: path.jitter_model.into(),
        loss: Written(path.forward.loss),
        mtu: Written(anabranch_net::units::Octets::new(path.mtu.into())),
        family: path.family,
        burst_loss: path.burst_loss.map(burst_loss_table),
        queue: QueueTable::new(&path.queue),
        via: path.via.map(|index| paths[index].name.clone()),
        reverse: ReverseTable {
            rate: reverse_rate,
            trace: reverse_trace,
            delay: Some(Written(path.reverse.delay)),
            limit: Some(Written(path.reverse.limit)),
            jitter: Written(path.reverse.jitter),
            loss: Written(path.reverse.loss),
        },
        middleboxes: path.middleboxes.iter().map(MiddleboxTable::new).collect(),
        changes: path.changes.iter().map(change_table).collect(),
    }
}

fn burst_loss_table(channel: GilbertElliottConfig) -> BurstLossTable {
    BurstLossTable {
        to_bad: Written(channel.to_bad),
        to_good: Written(channel.to_good),
        loss_in_bad: Written(channel.loss_in_bad),
        loss_in_good: Written(channel.loss_in_good),
    }
}

fn change_table(change: &PathChange) -> ChangeTable {
    ChangeTable {
        at: Written(change.at),
        rate: change.change.rate.map(Written),
        delay: change.change.delay.map(Written),
        jitter: change.change.jitter.map(Written),
        loss: change.change.loss.map(Written),
        state: change.change.state.map(Into::into),
        applies_to: change.applies_to,
        noticed: change.noticed,
    }
}

fn connection_table(connection: &Connection, paths: &[Path]) -> ConnectionTable {
    let used = Used { paths, indices: &connection.paths };
    let congestion_control =
        connection.congestion_control.map(|each| CongestionControlValue::spelled_out(each, used));
    ConnectionTable {
        name: Some(connection.name.clone()),
        paths: Some(used.names().map(str::to_owned).collect()),
        protocol: connection.protocol,
        direction: connection.direction,
        start: Written(connection.start),
        host: Choice::spelled_out(&connection.host, used),
        send_buffer: Written(connection.send_buffer),
        receive_buffer: Written(connection.receive_buffer),
        congestion_control: Some(congestion_control),
        scheduler: connection.scheduler.map(|chosen| Choice::spelled_out(chosen, used)),
        path_manager: connection.path_manager.map(|chosen| Choice::spelled_out(chosen, used)),
        remedies: RemediesTable::spelled_out(&connection.remedies, used),
        shared_bottleneck_detection: connection.shared_bottleneck_detection.map(|sbd| {
            SharedBottleneckDetectionTable { loss_threshold: Written(sbd.loss_threshold) }
        }),
        nagle: connection.nagle,
        keep_alive: connection.keep_alive.map(Written),
        dss_checksum: connection.dss_checksum,
        allow_join_initial_addr_port: connection.allow_join_initial_addr_port,
        late_fallback: connection.late_fallback,
        ecn: connection.ecn,
        sack: connection.sack,
        timestamps: connection.timestamps,
        hystart: Some(connection.hystart),
        workload: connection.workload.into(),
    }
}
