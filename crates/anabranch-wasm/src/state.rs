//! Hosts and links at the present, and the scenario, as JSON.

use anabranch_net::network::Paths;
use anabranch_net::units::{FULL_SIZE_PACKET, QueueLimit, Rate};
use anabranch_net::{Link, Side};
use anabranch_proto::view::RecoveryPhase;
use anabranch_proto::{Activity, Contents, Reason, SubflowStats};
use anabranch_sim::driver::{EngineHost, path_of};
use anabranch_sim::scenario::Scenario;
use serde_json::{Value, json};

use crate::session::Engine;

/// The scenario with every default spelled out.
pub(crate) fn scenario(scenario: &Scenario) -> String {
    let mut value = json!(scenario);
    let senders = scenario.connections.iter().map(|connection| {
        let senders = connection.direction.senders().iter();
        senders.map(|side| side.to_string()).collect::<Vec<_>>()
    });
    value["senders"] = json!(senders.collect::<Vec<_>>());
    value.to_string()
}

/// Hosts and links at the present.
pub(crate) fn state(engine: &mut Engine) -> String {
    let limits: Vec<_> = engine.scenario().paths.iter().map(|path| path.limit).collect();
    let links = links(engine.simulation_mut().paths(), &limits);
    let connections = 0..engine.scenario().connections.len();
    let connections: Vec<_> = connections.map(|number| connection(engine, number)).collect();
    let simulation = engine.simulation();
    json!({
        "now": simulation.now().as_nanos(),
        "events": simulation.events(),
        "segments": simulation.segments(),
        "paths": links,
        "connections": connections,
    })
    .to_string()
}

fn links(paths: &Paths, limits: &[QueueLimit]) -> Vec<Value> {
    let directions = [Side::Client, Side::Server];
    let of = |(path, limit): (usize, &QueueLimit)| {
        let [forward, reverse] = directions.map(|side| link(paths.link_of(path, side), *limit));
        json!({ "forward": forward, "reverse": reverse })
    };
    limits.iter().enumerate().map(of).collect()
}

fn link(link: &Link, limit: QueueLimit) -> Value {
    let stats = link.stats();
    json!({
        "rate": link.rate().as_bits_per_second(),
        "delay": link.delay().as_nanos(),
        "up": link.is_up() && !link.is_suspended(),
        "queued": link.queue_packets(),
        "limit": packets(limit, link.rate()),
        "delivered": stats.bytes_delivered,
        "dropped": stats.dropped_by_queue,
        "lost": stats.dropped_by_loss + stats.dropped_too_big,
        "cut": stats.dropped_down,
    })
}

/// A limit in full-size packets; `None` if there is none.
fn packets(limit: QueueLimit, rate: Rate) -> Option<f64> {
    match limit {
        QueueLimit::Packets(packets) => Some(packets as f64),
        QueueLimit::Bytes(bytes) => Some(bytes.as_u64() as f64 / FULL_SIZE_PACKET as f64),
        QueueLimit::Time(time) => {
            let bytes = time.as_secs_f64() * rate.as_bits_per_second() as f64 / 8.0;
            Some((bytes / FULL_SIZE_PACKET as f64).max(1.0))
        }
        QueueLimit::Infinite => None,
    }
}

fn connection(engine: &Engine, number: usize) -> Value {
    let connection = &engine.scenario().connections[number];
    let sender = connection.direction.senders()[0];
    let simulation = engine.simulation();
    let hosts = [sender, sender.opposite()].map(|side| simulation.host(side));
    let [Some(sending), Some(receiving)] = hosts.map(|host| contents(host, number)) else {
        return Value::Null;
    };
    let Some(id) = hosts[0].connection_id(number) else { return Value::Null };
    let stats = hosts.map(|host| {
        let id = host.connection_id(number)?;
        host.endpoint.connection_stats(simulation.now(), id)
    });
    let [Some(stats), Some(receiver)] = stats else { return Value::Null };
    let subflows = hosts[0].endpoint.subflow_stats(id).zip(hosts[0].endpoint.activities(id));
    let subflows: Vec<_> = subflows.map(|both| subflow(engine, number, both)).collect();
    let path_of_slot = |slot: u8| {
        subflows.iter().find(|each| each["slot"] == slot).map(|each| each["path"].clone())
    };
    json!({
        "sender": sender.to_string(),
        "mptcp": stats.is_mptcp,
        "send": {
            "acknowledged": sending.acknowledged,
            "sent": sending.sent,
            "written": sending.written,
            "capacity": stats.send_buffer,
        },
        "receive": {
            "read": receiving.read,
            "delivered": receiving.delivered,
            "capacity": receiver.receive_buffer,
            "outOfOrder": receiving.out_of_order.iter().map(|all| [all.start, all.end]).collect::<Vec<_>>(),
        },
        "window": stats.available_window,
        "blocking": sending.blocking.and_then(|slot| path_of_slot(slot.into())),
        "reinjections": stats.reinjections,
        "subflows": subflows,
    })
}

fn contents(host: &EngineHost, number: usize) -> Option<Contents> {
    host.endpoint.contents(host.connection_id(number)?)
}

fn subflow(engine: &Engine, number: usize, (stats, reason): (SubflowStats, Reason)) -> Value {
    let view = &stats.view;
    let slot = u8::from(view.id.slot);
    let penalties = engine.decisions().penalties.get(&(number, slot));
    json!({
        "slot": slot,
        "path": path_of(stats.local.address).or(path_of(stats.remote.address)),
        "cwnd": view.cwnd,
        "ssthresh": (view.ssthresh != u64::MAX).then_some(view.ssthresh),
        "inFlight": view.bytes_in_flight,
        "mss": view.mss,
        "srtt": view.srtt.map(|srtt| srtt.as_nanos()),
        "recovering": view.phase != RecoveryPhase::Open,
        "backup": view.backup,
        "activity": activity(reason.activity),
        "behind": reason.behind.map(u8::from),
        "retransmitted": stats.segments_retransmitted,
        "reinjected": stats.bytes_reinjected,
        "timeouts": stats.timeouts,
        "penalties": penalties.map_or(0, |(count, _)| *count),
        "penalised": penalties.map(|(_, at)| at.as_nanos()),
    })
}

/// The name of an activity, as in the table `activities`.
fn activity(activity: Activity) -> &'static str {
    match activity {
        Activity::Opening => "opening",
        Activity::CongestionWindow => "congestion_window",
        Activity::Paced => "paced",
        Activity::Remedy => "remedy",
        Activity::Recovery => "recovery",
        Activity::Silent => "silent",
        Activity::Standby => "standby",
        Activity::ReceiveWindow => "receive_window",
        Activity::SendBuffer => "send_buffer",
        Activity::Scheduler => "scheduler",
        Activity::Application => "application",
        Activity::Reader => "reader",
        Activity::FallenBack => "fallen_back",
        Activity::Closed => "closed",
    }
}
