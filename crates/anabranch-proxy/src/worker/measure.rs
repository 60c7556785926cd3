//! Measurement of uplinks towards the relay, one after the other.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_host::Stream;
use anabranch_proto::path_manager::InitialOnly;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tracing::info;

use super::client::{read_answer, request};
use super::probe::{self, MOST_BYTES, MOST_TOTAL, Service};
use super::{OpenUplink, WorkerState};
use crate::front::Problem;
use crate::orders::{Measured, Observation};
use crate::proof::ProofKey;

/// Share of the budget for payload. The rest is for headers and retransmissions.
const PAYLOAD_SHARE: f64 = 0.85;

/// Measure all uplinks with at most `budget` bytes, and write a line of JSON for each to the standard
/// output.
pub(super) async fn run(
    relay: Vec<SocketAddr>,
    key: ProofKey,
    budget: u64,
    shared: Arc<WorkerState>,
) -> io::Result<()> {
    let probes = 2 * shared.uplinks.len() as u64;
    let bytes = ((budget / probes) as f64 * PAYLOAD_SHARE) as u64;
    for uplink in &shared.uplinks {
        let measured = match measure(uplink, &relay, &key, bytes.min(MOST_BYTES), &shared).await {
            Ok((down, up)) => Measured::Links { down, up },
            Err(problem) => Measured::Problem(problem),
        };
        let mut line = serde_json::to_string(&measured)?;
        line.push('\n');
        io::stdout().write_all(line.as_bytes())?;
    }
    Ok(())
}

async fn measure(
    uplink: &OpenUplink,
    relay: &[SocketAddr],
    key: &ProofKey,
    bytes: u64,
    shared: &WorkerState,
) -> Result<(Observation, Observation), String> {
    let mut seen = Vec::new();
    for (service, direction) in [(Service::Generate, "down"), (Service::Discard, "up")] {
        info!(uplink = uplink.interface, direction, "probing");
        let probe = async {
            let mut stream = open(uplink, relay, key, service, shared).await?;
            let sent = match service {
                Service::Discard => probe::send(&mut stream, bytes).await,
                Service::Generate => match stream.write_u64(bytes).await {
                    Ok(()) => probe::receive(&mut stream).await,
                    Err(error) => Err(error),
                },
            };
            sent.map_err(|error| error.to_string())
        };
        let done = timeout(MOST_TOTAL, probe).await;
        seen.push(done.map_err(|_| "the probe takes too long".to_owned())??);
    }
    Ok((seen[0], seen[1]))
}

/// Open a connection to a service of the relay, over this uplink only.
async fn open(
    uplink: &OpenUplink,
    relay: &[SocketAddr],
    key: &ProofKey,
    service: Service,
    shared: &WorkerState,
) -> Result<Stream, String> {
    let (address, remote) = uplink.way(relay).ok_or("no link, or no route to the relay")?;
    let config = shared.host.config().clone().local_addresses(Some(vec![address]));
    let config = config.path_manager(|| Box::new(InitialOnly));
    let opened = shared.host.connect_with(*remote, config).await;
    let mut stream = opened.map_err(|error| format!("the relay does not answer: {error}"))?;
    let asked = request(service.address(), key).map_err(|_| "no random numbers")?;
    stream.write_all(&asked).await.map_err(|error| error.to_string())?;
    match read_answer(&mut stream).await {
        Ok(_) => Ok(stream),
        Err(Problem::NotAllowed) => {
            Err("the relay refuses: another secret, another time, or a version without probes"
                .into())
        }
        Err(Problem::NoNetwork) => Err("the relay is busy with another probe; try again".into()),
        Err(_) => Err("the relay does not answer as one".into()),
    }
}
