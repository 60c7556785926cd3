//! Probes of one uplink: data over a single subflow, whose sender observes it. The relay is the other
//! end. Its services have addresses that no host of the Internet has (RFC 2544).

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anabranch_host::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::{Instant, interval, timeout};

use crate::orders::Observation;

/// Address of the services inside a relay: that of its engine.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 78, 1));
/// Ports, as those of the services for TCP that the Internet once had. RFC 863, RFC 864.
const DISCARD: u16 = 9;
const GENERATE: u16 = 19;
/// Most bytes of a probe, whatever the client asks for (this project).
pub(super) const MOST_BYTES: u64 = 64 << 20;
/// Longest time in which a probe sends (this project).
const MOST_TIME: Duration = Duration::from_secs(10);
/// Longest time of a probe with its handshake and its queues.
pub(super) const MOST_TOTAL: Duration = Duration::from_secs(25);
/// Interval of observations.
const INTERVAL: Duration = Duration::from_millis(20);
/// Data is sent in frames of this size. The first byte of the last one is different.
const FRAME: usize = 4096;
const DATA: u8 = 0;
const REPORT: u8 = 1;
/// Bytes that wait in the send buffer, in addition to two congestion windows.
const AHEAD: u64 = 64 << 10;
/// Bytes of headers in a packet besides the IP header: TCP with timestamps, and a mapping with
/// DATA_ACK (RFC 8684 §3.3).
const HEADERS: f64 = 20.0 + 12.0 + 20.0;
/// The round-trip time with a full queue is this quantile of all samples, and not their maximum, which
/// a single pause of a host or of a link raises (this project).
const FULL: f64 = 0.95;
/// Least number of segments from which a share of losses follows (this project).
const LEAST_SEGMENTS: u64 = 200;

/// Service of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// It reads what the client sends.
    Discard,
    /// It sends as many bytes as the client asks for, and then its observation.
    Generate,
}

impl Service {
    /// The service at an address.
    pub(super) fn at(address: SocketAddr) -> Option<Self> {
        match address.port() {
            _ if address.ip() != ADDRESS => None,
            DISCARD => Some(Service::Discard),
            GENERATE => Some(Service::Generate),
            _ => None,
        }
    }

    /// The address at which clients ask for it.
    pub(super) fn address(self) -> SocketAddr {
        let port = if self == Service::Discard { DISCARD } else { GENERATE };
        SocketAddr::new(ADDRESS, port)
    }

    /// Serve a client, which has sent `first` already.
    ///
    /// # Errors
    /// If the connection fails, or takes too long.
    pub(super) async fn serve(self, mut stream: Stream, first: &[u8]) -> io::Result<()> {
        let served = async {
            match self {
                Service::Discard => discard(&mut stream).await,
                Service::Generate => {
                    let bytes = first.chain(&mut stream).read_u64().await?;
                    let seen = send(&mut stream, bytes.min(MOST_BYTES)).await?;
                    stream.write_u8(REPORT).await?;
                    stream.write_all(&serde_json::to_vec(&seen)?).await?;
                    stream.shutdown().await?;
                    discard(&mut stream).await
                }
            }
        };
        let served = timeout(MOST_TOTAL, served).await;
        served.unwrap_or_else(|_| {
            stream.abort();
            Err(io::ErrorKind::TimedOut.into())
        })
    }
}

async fn discard(stream: &mut Stream) -> io::Result<()> {
    let (mut buffer, mut count) = (vec![0; 1 << 16], 0);
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            more => count += more as u64,
        }
        if count > 2 * MOST_BYTES {
            stream.abort();
            return Ok(());
        }
    }
}

/// Read the frames of the service [`Service::Generate`], and return its observation.
///
/// # Errors
/// If the connection fails, or the report is invalid.
pub(super) async fn receive(stream: &mut Stream) -> io::Result<Observation> {
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    let mut rest = [0; FRAME - 1];
    while reader.read_u8().await? == DATA {
        reader.read_exact(&mut rest).await?;
    }
    let mut report = Vec::new();
    reader.take(FRAME as u64).read_to_end(&mut report).await?;
    Ok(serde_json::from_slice(&report)?)
}

/// Send about `bytes` bytes for a limited time, and observe the subflow.
///
/// # Errors
/// If the connection fails.
pub(super) async fn send(stream: &mut Stream, bytes: u64) -> io::Result<Observation> {
    let (frame, frames) = ([DATA; FRAME], bytes.div_ceil(FRAME as u64).max(1));
    let total = frames * FRAME as u64;
    let begin = stream.stats().map_or(0, |stats| stats.bytes_acknowledged);
    let mut observer = Observer::new(Instant::now());
    let (mut ticks, mut written) = (interval(INTERVAL), 0);
    loop {
        ticks.tick().await;
        let late = observer.started.elapsed() >= MOST_TIME;
        let Some(sample) = Sample::of(stream, begin) else {
            // Another subflow may replace the one that has ended.
            if late || stream.stats().is_none() {
                break;
            }
            continue;
        };
        observer.on_sample(sample);
        if sample.acknowledged >= written && (late || written == total) {
            break;
        }
        let room = 2 * sample.window + AHEAD;
        while !late && written < total && written - sample.acknowledged.min(written) < room {
            stream.write_all(&frame).await?;
            written += FRAME as u64;
        }
    }
    Ok(observer.result(stream.peer_addr().is_ipv4()))
}

/// State of the subflow at a time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    acknowledged: u64,
    window: u64,
    sent: u64,
    lost: u64,
    srtt: f64,
    min_rtt: f64,
    segment: f64,
}

impl Sample {
    fn of(stream: &Stream, begin: u64) -> Option<Self> {
        let stats = stream.stats()?;
        let subflow = stream.subflows().into_iter().next()?;
        let seconds = |time: anabranch_wire::Duration| time.as_nanos() as f64 * 1e-9;
        Some(Sample {
            at: Instant::now(),
            acknowledged: stats.bytes_acknowledged - begin,
            window: subflow.view.cwnd,
            sent: subflow.segments_sent,
            lost: subflow.segments_retransmitted,
            srtt: seconds(subflow.view.srtt?),
            min_rtt: seconds(subflow.view.min_rtt),
            segment: f64::from(subflow.view.mss),
        })
    }
}

/// All samples of a probe.
#[derive(Debug)]
struct Observer {
    started: Instant,
    samples: Vec<Sample>,
}

impl Observer {
    fn new(started: Instant) -> Self {
        Observer { started, samples: Vec::new() }
    }

    fn on_sample(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    fn result(&self, is_ipv4: bool) -> Observation {
        let Some(last) = self.samples.last() else { return Observation::default() };
        let mut rtts: Vec<_> = self.samples.iter().map(|sample| sample.srtt).collect();
        rtts.sort_by(f64::total_cmp);
        let most = rtts[rtts.len() - 1];
        let full = rtts[((rtts.len() - 1) as f64 * FULL).round() as usize];
        let queue = (full - last.min_rtt).max(0.0);
        let deep = last.min_rtt + queue / 2.0;
        let header = if is_ipv4 { 20.0 } else { 40.0 } + HEADERS;
        Observation {
            rate: self.goodput(deep) * (last.segment + header) / last.segment,
            min_rtt: last.min_rtt,
            queue,
            loss: self.loss(deep, most),
        }
    }

    /// Bits of payload per second from the first sample with a deep queue on, because the link is busy
    /// from then on.
    fn goodput(&self, deep: f64) -> f64 {
        let busy: Vec<_> = self.samples.iter().skip_while(|sample| sample.srtt < deep).collect();
        // The end of the data is not part of it: then the queue drains.
        let all = busy.last().map_or(0, |last| last.acknowledged);
        let end = busy.iter().rev().find(|sample| sample.acknowledged < all);
        match (busy.first(), end) {
            (Some(first), Some(end)) if end.at > first.at => {
                let seconds = (end.at - first.at).as_secs_f64();
                (end.acknowledged - first.acknowledged) as f64 * 8.0 / seconds
            }
            _ => 0.0,
        }
    }

    /// Share of lost segments, without those that a full queue may have dropped: retransmissions
    /// follow two round trips later at most.
    fn loss(&self, deep: f64, longest: f64) -> Option<f64> {
        let (mut sent, mut lost, mut full) = (0, 0, None::<Instant>);
        for pair in self.samples.windows(2) {
            let [before, now] = pair else { continue };
            if now.srtt >= deep {
                full = Some(now.at);
            }
            if full.is_none_or(|full| (now.at - full).as_secs_f64() > 2.0 * longest) {
                // The totals of a subflow that has replaced another begin anew.
                sent += now.sent.saturating_sub(before.sent);
                lost += now.lost.saturating_sub(before.lost);
            }
        }
        (sent >= LEAST_SEGMENTS).then(|| lost as f64 / sent as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples every 20 ms of a link with 10 Mbit/s of payload and 20 ms, from these round-trip times
    /// and losses.
    fn observe(rtts: &[(f64, u64)]) -> Observation {
        let started = Instant::now();
        let mut observer = Observer::new(started);
        let mut lost = 0;
        for (index, (rtt, more)) in rtts.iter().enumerate() {
            lost += more;
            observer.on_sample(Sample {
                at: started + INTERVAL * index as u32,
                acknowledged: 25_000 * index as u64,
                window: 50_000,
                sent: 20 * index as u64,
                lost,
                srtt: *rtt,
                min_rtt: 0.02,
                segment: 1400.0,
            });
        }
        observer.result(true)
    }

    #[tokio::test]
    async fn rate_delay_and_queue_follow_from_the_samples() {
        let mut rtts = vec![(0.02, 0); 10];
        rtts.extend([(0.1, 0); 40]);
        let seen = observe(&rtts);
        // 72 bytes of headers for 1400 of payload.
        assert!((seen.rate / 1e7 - 1472.0 / 1400.0).abs() < 0.01, "{seen:?}");
        assert!((seen.min_rtt - 0.02).abs() < 1e-9 && (seen.queue - 0.08).abs() < 1e-9, "{seen:?}");
    }

    #[tokio::test]
    async fn a_pause_is_no_queue() {
        let rtts = [vec![(0.02, 0); 10], vec![(0.1, 9); 90], vec![(0.3, 0); 4]].concat();
        let seen = observe(&rtts);
        assert!(
            (seen.queue - 0.08).abs() < 1e-9 && (seen.rate / 1e7 - 1.05).abs() < 0.01,
            "{seen:?}"
        );
        assert_eq!(seen.loss, None, "the full queue dropped them");
    }

    #[tokio::test]
    async fn losses_of_a_full_queue_are_not_those_of_the_path() {
        let quiet = [vec![(0.02, 0); 20], vec![(0.03, 1); 20], vec![(0.1, 50); 3]].concat();
        assert_eq!(observe(&quiet).loss, Some(20.0 / (39.0 * 20.0)));
        let full = [vec![(0.1, 10); 20], vec![(0.02, 5); 5]].concat();
        assert_eq!(observe(&full).loss, None);
    }

    #[test]
    fn services_have_addresses_of_their_own() {
        for service in [Service::Discard, Service::Generate] {
            assert_eq!(Service::at(service.address()), Some(service));
        }
        let other = SocketAddr::new(ADDRESS, 80);
        assert_eq!(Service::at(other), None);
        assert_eq!(Service::at(SocketAddr::new([198, 18, 77, 1].into(), GENERATE)), None);
    }
}
