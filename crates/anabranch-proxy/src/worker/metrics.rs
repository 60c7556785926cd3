//! Counters, and their text for Prometheus.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_proto::SubflowStats;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::WorkerState;
use crate::front::Problem;

/// Longest request for metrics in bytes, and longest time for it (this project).
const MOST_REQUEST: usize = 4096;
const MOST_REQUEST_TIME: Duration = Duration::from_secs(5);
/// Pause after the system refuses to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestOutcome {
    /// The connection was opened.
    Opened,
    /// The request is no valid one.
    Malformed,
    /// The proof is missing or wrong.
    Unproved,
    /// The destination is not allowed.
    NotAllowed,
    /// There are too many connections.
    Overload,
    /// The destination does not answer, or refuses.
    Unreachable,
    /// There is no way to the relay, or it fails.
    NoRelay,
}

impl RequestOutcome {
    const ALL: [(RequestOutcome, &'static str); 7] = [
        (RequestOutcome::Opened, "opened"),
        (RequestOutcome::Malformed, "malformed"),
        (RequestOutcome::Unproved, "unproved"),
        (RequestOutcome::NotAllowed, "not_allowed"),
        (RequestOutcome::Overload, "overload"),
        (RequestOutcome::Unreachable, "unreachable"),
        (RequestOutcome::NoRelay, "no_relay"),
    ];

    pub(super) fn of(problem: Problem) -> Self {
        match problem {
            Problem::NotAllowed => RequestOutcome::NotAllowed,
            Problem::Unreachable | Problem::Refused => RequestOutcome::Unreachable,
            Problem::NoNetwork | Problem::TimedOut | Problem::Other => RequestOutcome::NoRelay,
        }
    }
}

/// Counters of the process.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    outcomes: [AtomicU64; RequestOutcome::ALL.len()],
    /// Bytes written to connections over the uplinks.
    pub(super) to_uplinks: AtomicU64,
    /// Bytes read from connections over the uplinks.
    pub(super) from_uplinks: AtomicU64,
}

impl Metrics {
    pub(super) fn count(&self, outcome: RequestOutcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Serve the metrics to every client that connects.
pub(super) async fn serve(address: SocketAddr, shared: Arc<WorkerState>) -> io::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("metrics: {address}: {error}")))?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                // One at a time is enough for a collector.
                Ok((peer, _)) => drop(timeout(MOST_REQUEST_TIME, answer(peer, &shared)).await),
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    });
    Ok(())
}

async fn answer(mut peer: TcpStream, shared: &WorkerState) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() >= MOST_REQUEST || peer.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let text = text(shared);
    let header = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        text.len()
    );
    peer.write_all(header.as_bytes()).await?;
    peer.write_all(text.as_bytes()).await?;
    peer.shutdown().await
}

/// State of an uplink.
#[derive(Default)]
struct UplinkState {
    subflows: u64,
    srtt_ns: Option<u64>,
}

fn text(shared: &WorkerState) -> String {
    let metrics = &shared.metrics;
    let mut out = String::new();
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    family(&mut out, "connections", "gauge", "Open connections.");
    let _ = writeln!(out, "anabranch_proxy_connections {}", shared.connections.open());
    family(&mut out, "requests_total", "counter", "Requests by outcome.");
    for (outcome, name) in RequestOutcome::ALL {
        let count = load(&metrics.outcomes[outcome as usize]);
        let _ = writeln!(out, "anabranch_proxy_requests_total{{outcome=\"{name}\"}} {count}");
    }
    family(&mut out, "bytes_total", "counter", "Bytes of connections over the uplinks.");
    for (direction, counter) in [("sent", &metrics.to_uplinks), ("received", &metrics.from_uplinks)]
    {
        let count = load(counter);
        let _ = writeln!(out, "anabranch_proxy_bytes_total{{direction=\"{direction}\"}} {count}");
    }
    traffic(&mut out, shared);
    of_uplinks(&mut out, shared);
    out
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP anabranch_proxy_{name} {help}");
    let _ = writeln!(out, "# TYPE anabranch_proxy_{name} {kind}");
}

fn traffic(out: &mut String, shared: &WorkerState) {
    family(out, "uplink_bytes_total", "counter", "Bytes over the uplink, with headers.");
    for uplink in &shared.uplinks {
        let (interface, traffic) = (&uplink.interface, &uplink.traffic);
        for (direction, counter) in [("sent", &traffic.sent), ("received", &traffic.received)] {
            let count = counter.load(Ordering::Relaxed);
            let labels = format!("uplink=\"{interface}\",direction=\"{direction}\"");
            let _ = writeln!(out, "anabranch_proxy_uplink_bytes_total{{{labels}}} {count}");
        }
    }
}

fn of_uplinks(out: &mut String, shared: &WorkerState) {
    let states: Vec<_> =
        shared.uplinks.iter().map(|uplink| (uplink, state(shared, uplink))).collect();
    let mut gauge =
        |name: &str,
         help: &str,
         value: &dyn Fn(&super::OpenUplink, &UplinkState) -> Option<f64>| {
            family(out, name, "gauge", help);
            for (uplink, state) in &states {
                if let Some(value) = value(uplink, state) {
                    let interface = &uplink.interface;
                    let _ =
                        writeln!(out, "anabranch_proxy_{name}{{uplink=\"{interface}\"}} {value}");
                }
            }
        };
    gauge("uplink_usable", "Whether the uplink is up and has a route.", &|uplink, _| {
        Some(f64::from(u8::from(uplink.is_usable())))
    });
    gauge("uplink_budget_left_bytes", "Bytes that the uplink may still carry.", &|uplink, _| {
        uplink.traffic.left().map(|left| left as f64)
    });
    gauge("uplink_subflows", "Subflows on the uplink.", &|_, state| Some(state.subflows as f64));
    gauge("uplink_srtt_seconds", "Smallest smoothed round-trip time.", &|_, state| {
        state.srtt_ns.map(|ns| ns as f64 * 1e-9)
    });
}

fn state(shared: &WorkerState, uplink: &super::OpenUplink) -> UplinkState {
    shared.host.inspect(|_, endpoint, _| {
        let mut state = UplinkState::default();
        let all = endpoint.connections().flat_map(|id| endpoint.subflow_stats(id));
        let open = all.filter(SubflowStats::is_open);
        for subflow in open.filter(|subflow| uplink.has(subflow.local.address)) {
            state.subflows += 1;
            let srtt = subflow.view.srtt.map(|srtt| srtt.as_nanos());
            state.srtt_ns = [state.srtt_ns, srtt].into_iter().flatten().min();
        }
        state
    })
}
