//! Connections that programs open without a proxy: their packets arrive at a device, where an engine
//! of its own ends them.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anabranch_host::{Host, Incoming, Interceptor, Stream};
use anabranch_live::TunDevice;
use anabranch_proto::config::{ConnectionConfig, Protocol};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tracing::info;

use super::carry::carry;
use super::client::{MOST_OPENING_TIME, RelayAndKey, open};
use super::metrics::RequestOutcome;
use super::{WorkerState, random};
use crate::front::Problem;

/// The result takes the connections that reach the device.
pub(super) fn start(
    device: TunDevice,
    relay: RelayAndKey,
    shared: Arc<WorkerState>,
) -> io::Result<impl Future<Output = io::Result<()>> + Send + use<>> {
    // Programs speak TCP with this end of the host, where nothing is lost.
    let carried = shared.host.config();
    let config = ConnectionConfig::default()
        .protocol(Protocol::Tcp)
        .send_buffer(carried.send_buffer)
        .receive_buffer(carried.receive_buffer)
        .tcp(carried.tcp.clone().fast_open(false));
    let programs = Host::new(device, Vec::new(), random()?, config);
    info!("ready for all TCP connections");
    Ok(serve(programs.intercept(), programs, relay, shared))
}

async fn serve(
    interceptor: Interceptor,
    programs: Host,
    relay: RelayAndKey,
    shared: Arc<WorkerState>,
) -> io::Result<()> {
    let connections = &shared.connections;
    while let Some(incoming) = connections.next(interceptor.next()).await {
        let (incoming, config) = (incoming?, programs.config().clone());
        let (shared, relay) = (Arc::clone(&shared), relay.clone());
        connections.serve(async move { handle(incoming, config, &relay, &shared).await });
    }
    // Without an answer, programs would not try again before their own timeouts.
    loop {
        interceptor.next().await?.refuse();
    }
}

async fn handle(
    incoming: Incoming,
    config: ConnectionConfig,
    relay: &RelayAndKey,
    shared: &Arc<WorkerState>,
) -> io::Result<()> {
    let destination = incoming.destination();
    let opened = timeout(MOST_OPENING_TIME, open(&[destination], relay.as_ref(), shared)).await;
    let opened = opened.unwrap_or(Err(Problem::TimedOut));
    if shared.log_destinations {
        info!(%destination, result = ?opened.as_ref().err(), "connection");
    }
    match opened {
        Ok((far, first)) => join(incoming.accept(config).await?, far, &first, shared).await,
        Err(problem) => {
            shared.metrics.count(RequestOutcome::of(problem));
            match problem {
                // As the destination or the network would do it.
                Problem::TimedOut => drop(incoming),
                _ => incoming.refuse(),
            }
            Err(ErrorKind::ConnectionRefused.into())
        }
    }
}

/// Carry a program's connection, whose destination has sent `first` already.
async fn join(mut near: Stream, far: Stream, first: &[u8], shared: &WorkerState) -> io::Result<()> {
    let metrics = &shared.metrics;
    metrics.count(RequestOutcome::Opened);
    metrics.from_uplinks.fetch_add(first.len() as u64, Ordering::Relaxed);
    near.write_all(first).await?;
    carry(near, far, &metrics.to_uplinks, &metrics.from_uplinks).await
}
